"""Damaged parts of an archive -> records that have their bytes as they lie, so that a new archive lacks nothing of the old one.

WARC    a metadata record without a URL, which gets no index line. WARC-Damaged-Range says where the bytes were
ARC     a record like the first one of a file, `filedesc://damaged/OFFSET-LENGTH`, which gets no line either
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cdxmill.capture import Damage
from cdxmill.regex import regex
from cdxmill.stages.records.read_contents import HELD, Content
from cdxmill.stages.records.write_record import END, record_id
from cdxmill.stages.window import ReadAt

_PIECE = 1 << 18
_START = b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Damaged-Range: bytes=%d-%d\r\n"
_WARC_PART = regex(
    rb"WARC/1\.0\r\nWARC-Type: metadata\r\nWARC-Damaged-Range: bytes=(\d{1,18})-(\d{1,18})\r\n"
)
_ARC_PART = regex(
    rb"filedesc://damaged/(\d{1,18})-(\d{1,18}) 0\.0\.0\.0 \d{14} application/octet-stream \d+\n"
)
_NO_DATE = "1970-01-01T00:00:00Z"
"""When the part was archived is not known."""


class DamagedPart(NamedTuple):
    """A damaged part: its offset and its length in the old archive."""

    offset: int
    length: int


def with_damage(
    contents: Iterable[Content | Damage], read_at: ReadAt, name: str, end: Callable[[], int]
) -> Iterator[Content | Damage]:
    """The items, and after each damaged part of the archive `name` a content with its bytes. `end` is asked for the file's size.

    Where the content of a member or frame with many records is damaged, its bytes are those of all of it: that some of its
    records are sound, too, does no harm.
    """
    start, is_damaged = 0, False
    for item in contents:
        if is_damaged and item.offset > start:
            yield _content(DamagedPart(start, item.offset - start), read_at, name)
            is_damaged = False
        start = item.offset
        is_damaged = is_damaged or isinstance(item, Damage)
        yield item
    if is_damaged and end() > start:
        yield _content(DamagedPart(start, end() - start), read_at, name)


def _content(part: DamagedPart, read_at: ReadAt, name: str) -> Content:
    is_arc = bool(re.search(r"\.arc(\.|$)", name, re.I))
    head, tail = (_arc_head(part), b"\n") if is_arc else (_warc_head(part, read_at, name), END)

    def pieces() -> Iterator[bytes]:
        yield head
        yield from raw(part, read_at)
        yield tail

    size = len(head) + part.length + len(tail)
    data = b"".join(pieces()) if size <= HELD else None
    return Content(part.offset, part.length, size, data, pieces, records=0)


def _warc_head(part: DamagedPart, read_at: ReadAt, name: str) -> bytes:
    fields = (
        b"WARC-Record-ID: " + record_id("damaged", name, *part),
        b"WARC-Date: " + _NO_DATE.encode(),
        b"WARC-Block-Digest: sha256:" + sha256_of_part(part, read_at).encode(),
        b"Content-Type: application/octet-stream",
        b"Content-Length: %d" % part.length,
    )
    first = _START % (part.offset, part.offset + part.length - 1)
    return first + b"".join(b"%b\r\n" % field for field in fields) + b"\r\n"


def _arc_head(part: DamagedPart) -> bytes:
    url = b"filedesc://damaged/%d-%d" % (part.offset, part.offset + part.length - 1)
    return b"%b 0.0.0.0 19700101000000 application/octet-stream %d\n" % (url, part.length)


def part_in(content: Content) -> DamagedPart | None:
    """The damaged part whose bytes a content has; None if it is another record."""
    start = next(content.pieces(), b"")[:200]
    found = _WARC_PART.match(start) or _ARC_PART.match(start)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2])
    return DamagedPart(first, last - first + 1) if last >= first else None


def has_part(content: Content, part: DamagedPart, read_at: ReadAt) -> bool:
    """Whether a content has exactly the bytes of a part of the archive that `read_at` reads."""
    import hashlib

    own, skip, left = hashlib.sha256(), -1, part.length
    for piece in content.pieces():
        if skip < 0:
            end = piece.find(b"\r\n\r\n") + 4 if piece.startswith(b"WARC/") else piece.find(b"\n") + 1
            piece, skip = piece[end:], end
        own.update(piece[:left])
        left -= min(left, len(piece))
    return not left and own.hexdigest() == sha256_of_part(part, read_at)


def raw(part: DamagedPart, read_at: ReadAt) -> Iterator[bytes]:
    """The bytes of a part."""
    pos, end = part.offset, part.offset + part.length
    while pos < end and (piece := read_at(pos, min(_PIECE, end - pos))):
        yield piece
        pos += len(piece)


def sha256_of_part(part: DamagedPart, read_at: ReadAt) -> str:
    """The SHA-256 of the bytes of a part."""
    import hashlib

    digest = hashlib.sha256()
    for piece in raw(part, read_at):
        digest.update(piece)
    return digest.hexdigest()
