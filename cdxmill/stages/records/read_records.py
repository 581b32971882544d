"""Any archive -> its records. The first bytes of the file decide which reader is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import TypeVar

from cdxmill.capture import CrawlNotes, Damage, Note, Record
from cdxmill.formats.archives.framing import GZIP_MAGIC, ZSTD_MAGIC, is_skippable
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.records.parse_header import NOT_AN_ARCHIVE, starts_record
from cdxmill.stages.records.read_units import GZIP_START, Members, read_units
from cdxmill.stages.records.resync import Probe, Resync
from cdxmill.stages.records.take_record import ReadCommon
from cdxmill.stages.window import CHUNK, ReadAt, Window

Common = TypeVar("Common")
_UNPACK = "decompress it and index the result"
_FOREIGN = {
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ": ("xz", _UNPACK),
    b"\x04\x22\x4d\x18": ("lz4", _UNPACK),
    b"PK\x03\x04": ("zip", "unpack it and index its files, or, if it is a WACZ, let its name end in .wacz"),
}


class Container(Enum):
    """How the records of an archive are compressed."""

    GZIP = "gz"
    ZST = "zst"
    PLAIN = "plain"


def read_records(
    read_at: ReadAt,
    lineless: frozenset[bytes] = frozenset(),
    chunk: int = CHUNK,
    read_common: ReadCommon[Common] | None = None,
    max_window: int | None = None,
) -> Iterator[Record | Common | CrawlNotes | Damage | Note]:
    """Every complete record of the archive that `read_at(offset, size)` reads, after all checks. All else is Damage.

    Memory does not grow with the size of records. `lineless` and `read_common`: see `read_units`. The file is read in
    chunks of `chunk` bytes. Zstandard frames may need a window of `max_window` bytes.
    """
    window = Window(read_at, chunk)
    head = window.get(0, 16)
    if not head:
        return iter((Damage(0, "the file is empty", "fetch the file again"),))
    for magic, (name, hint) in _FOREIGN.items():
        if head.startswith(magic):
            return iter((Damage(0, f"{name} files cannot be indexed", hint),))
    container = container_of(window)
    if container is Container.GZIP:
        return read_units(Members(window), 0, HeaderShapes(), lineless, read_common)
    if container is Container.ZST:
        from cdxmill.stages.records.read_zst import read_zst  # the library is slow to import

        return read_zst(window, lineless, read_common, max_window)
    if container is Container.PLAIN:
        from cdxmill.stages.records.read_plain import read_plain  # most archives are compressed, as below

        return read_plain(window)
    return iter((Damage(0, "no WARC or ARC record found", NOT_AN_ARCHIVE),))


def container_of(window: Window) -> Container | None:
    """How the records of an archive are compressed; None if the file has no record."""
    head = window.get(_start(window), 4)
    if head.startswith(GZIP_MAGIC):
        return Container.GZIP
    if head == ZSTD_MAGIC or is_skippable(head):
        return Container.ZST
    return Container.PLAIN if head else None


def _start(window: Window) -> int:
    """The offset of the first record: 0, or more if the file starts with damage."""
    head = window.get(0, 4)
    if head.startswith(GZIP_MAGIC) or head == ZSTD_MAGIC or is_skippable(head):
        return 0
    if starts_record(lambda size: window.get(0, size).lstrip(), is_certain=False):
        return 0
    from cdxmill.stages.records.read_plain import PLAIN_START

    starts = (GZIP_START.pattern, re.escape(ZSTD_MAGIC), PLAIN_START.pattern)
    any_start = re.compile(b"|".join(starts), PLAIN_START.flags)
    return Resync(window, any_start, lambda pos: _probe(window, pos)).first(0)


def _probe(window: Window, pos: int) -> Probe:
    """Whether a record starts at `pos`, in any container."""
    head = window.get(pos, 4)
    if head.startswith(GZIP_MAGIC):
        return Members(window).probe(pos)
    if head == ZSTD_MAGIC:
        from cdxmill.stages.records.read_zst import Frames

        return Frames(window).probe(pos)
    from cdxmill.stages.records.read_plain import probe_header

    return probe_header(window, pos)
