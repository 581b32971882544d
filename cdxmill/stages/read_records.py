"""Any archive -> its records: looks at the first bytes and picks the reader for them."""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.capture import Damage, Note, Record
from cdxmill.formats import gzip_member, zstd_frame
from cdxmill.stages.read_gzip import read_gzip
from cdxmill.stages.read_plain import read_plain
from cdxmill.stages.read_zst import read_zst
from cdxmill.stages.take_record import RECOMPRESS
from cdxmill.stages.window import ReadAt, Window

_FOREIGN = {
    b"BZh": ("bzip2", RECOMPRESS),
    b"\xfd7zXZ": ("xz", RECOMPRESS),
    b"\x04\x22\x4d\x18": ("lz4", RECOMPRESS),
    b"PK\x03\x04": ("zip", "unpack it (a WACZ has its WARCs under archive/), then index these"),
}


def read_records(
    read_at: ReadAt, unwanted: frozenset[bytes] = frozenset()
) -> Iterator[Record | Damage | Note]:
    """Every record of the archive that `read_at(offset, size)` gives, whole and checked.

    Whatever gets no record is told: as Damage where something may be lost (cut, damaged,
    not an archive), as a Note for an empty file. Memory is bounded whatever the size of
    records. Records of `unwanted` types are checked like all, but may be left out.
    """
    window = Window(read_at)
    head = window.get(0, 16)
    if not head:
        yield Note(0, "the file is empty")
        return
    for magic, (name, hint) in _FOREIGN.items():
        if head.startswith(magic):
            yield Damage(0, f"{name} files have no records that can be read singly", hint)
            return
    yield from _reader(head, window, unwanted)


def _reader(head: bytes, window: Window, unwanted: frozenset[bytes]) -> Iterator[Record | Damage]:
    if head.startswith(gzip_member.MAGIC):
        return read_gzip(window, unwanted)
    if head.startswith(zstd_frame.MAGIC) or zstd_frame.is_skippable(head[:4]):
        return read_zst(window)
    return read_plain(window)
