"""Any archive -> its records: looks at the first bytes and picks the reader for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdxmill.capture import CommonLine, CrawlNotes, Damage, Note, Record
from cdxmill.formats import gzip_member, zstd_frame
from cdxmill.stages.records.read_gzip import GZIP_START, looked_at_member, read_gzip
from cdxmill.stages.records.read_plain import PLAIN_START, looked_at_header, read_plain
from cdxmill.stages.records.resync import Resync
from cdxmill.stages.records.take_record import NO_ARCHIVE, ReadCommon, starts_record
from cdxmill.stages.window import CHUNK, ReadAt, Window

_UNPACK = "unpack it, then index that"
_FOREIGN = {
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ": ("xz", _UNPACK),
    b"\x04\x22\x4d\x18": ("lz4", _UNPACK),
    b"PK\x03\x04": ("zip", "unpack it (a WACZ has its WARCs under archive/), then index these"),
}


def read_records(
    read_at: ReadAt,
    lineless: frozenset[bytes] = frozenset(),
    chunk: int = CHUNK,
    read_common: ReadCommon | None = None,
) -> Iterator[Record | CommonLine | CrawlNotes | Damage | Note]:
    """Every record of the archive that `read_at(offset, size)` gives, whole and checked.

    Whatever gets no record is told: as Damage where something may be lost (cut, damaged,
    not an archive), as a Note for an empty file. Memory is bounded whatever the size of
    records. Records of `lineless` types are checked like all, but may be left out.
    `chunk` bytes are read at a time. What `read_common` can read comes as it reads it.
    """
    window = Window(read_at, chunk)
    head = window.get(0, 16)
    if not head:
        return iter((Note(0, "the file is empty"),))
    for magic, (name, hint) in _FOREIGN.items():
        if head.startswith(magic):
            return iter((Damage(0, f"{name} files have no records that can be read singly", hint),))
    return _reader(window, lineless, read_common)


def _reader(
    window: Window, lineless: frozenset[bytes], read_common: ReadCommon | None
) -> Iterator[Record | CommonLine | CrawlNotes | Damage]:
    head = window.get(_start(window), 4)
    if head.startswith(gzip_member.MAGIC):
        return read_gzip(window, lineless, read_common)
    if head == zstd_frame.MAGIC or zstd_frame.is_skippable(head):
        from cdxmill.stages.records.read_zst import (
            read_zst,  # slow to import: the library has tables of its own
        )

        return read_zst(window)
    if head:
        return read_plain(window)
    return iter((Damage(0, "no WARC or ARC record is in the file", NO_ARCHIVE),))


def _start(window: Window) -> int:
    """Where the first record seems to be: at once, or where the file begins with damage, behind that."""
    head = window.get(0, 4)
    if head.startswith(gzip_member.MAGIC) or head == zstd_frame.MAGIC or zstd_frame.is_skippable(head):
        return 0
    if starts_record(lambda size: window.get(0, size).lstrip()):
        return 0
    starts = (GZIP_START.pattern, re.escape(zstd_frame.MAGIC), PLAIN_START.pattern)
    any_start = re.compile(b"|".join(starts), PLAIN_START.flags)
    return Resync(window, any_start, lambda pos: _looked_at(window, pos)).first(0)


def _looked_at(window: Window, pos: int) -> int:
    """0 where a record starts at `pos` in whichever container; else the bytes looked at."""
    head = window.get(pos, 4)
    if head.startswith(gzip_member.MAGIC):
        return looked_at_member(window, pos)
    if head == zstd_frame.MAGIC:
        from cdxmill.stages.records.read_zst import Frames

        return Frames(window).looked_at(pos)
    return looked_at_header(window, pos)
