"""One gzip member, inflated piece by piece in bounded memory, with all checks of RFC 1952."""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Iterator
from typing import Any

from cdxmill.formats.archives.gzip_member import MAX_HEADER, TRAILER_SIZE, header_size
from cdxmill.stages.window import Window

_MEMBER_PIECE = 1 << 16
_ALWAYS = re.compile(r"^error -?\d+ (?:while decompressing data: )?")
_FIRST = 1 << 9
"""Compressed bytes that are enough for the first bytes of content: deflate's longest tables are smaller."""


class MemberError(ValueError):
    """A compressed member is corrupt.

    `reached` is the offset up to which it was read. `truncated`: the file ends inside the member.
    `ended`: the member was read to its end, which is at `reached`, and only then found corrupt.
    `hint` is what the user can do, if it is not to fetch the file again.
    """

    def __init__(
        self, reason: str, reached: int, truncated: bool = False, ended: bool = False, hint: str = ""
    ) -> None:
        super().__init__(reason)
        self.reached, self.truncated, self.ended, self.hint = reached, truncated, ended, hint


class Pieces:
    """An iterator over pieces of content. After the last piece, `end` is the offset after the member.

    `pieces` yields the content and returns that offset.
    """

    def __init__(self, pieces: Generator[bytes, None, int]) -> None:
        self.end = -1
        self._pieces = self._until_end(pieces)

    def _until_end(self, pieces: Generator[bytes, None, int]) -> Iterator[bytes]:
        self.end = yield from pieces

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)


def inflate(window: Window, offset: int) -> Pieces:
    """The content of the gzip member at `offset`.

    A piece has at most 256 KiB, whatever the compression ratio. Iterating raises
    MemberError if the member is truncated or corrupt.
    """
    return Pieces(_inflate(window, offset))


def inflate_start(window: Window, offset: int, size: int) -> bytes:
    """The first `size` bytes of the content, unchecked; b"" if no member starts at `offset`."""
    try:
        head = window.get(offset, _FIRST + size)
        start = header_size(head) or _skip_header(window, offset)
        data = head[start:] if start < _FIRST else window.get(offset + start, _FIRST + size)
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size)
    except (ValueError, zlib.error):
        return b""


def _inflate(window: Window, offset: int) -> Generator[bytes, None, int]:
    library, library_error = _library()
    pos = offset + _skip_header(window, offset)
    inflater = library.decompressobj(wbits=-zlib.MAX_WBITS)
    crc, size, data = 0, 0, b""
    while not inflater.eof:
        if not data:
            data = window.get(pos, _MEMBER_PIECE)
            pos += len(data)
            if not data:
                raise MemberError("the file is truncated inside a gzip member", pos, truncated=True)
        try:
            piece = inflater.decompress(data, _MEMBER_PIECE * 4)
        except library_error as error:
            raise MemberError(f"corrupt gzip data ({_reason(error)})", pos) from None
        data = inflater.unconsumed_tail
        crc, size = library.crc32(piece, crc), size + len(piece)
        if piece:
            yield piece
    return _check_trailer(window, pos - len(inflater.unused_data), crc, size)


def _library() -> tuple[Any, Any]:
    """isal takes half of zlib's time, but a node of Hadoop may not have it."""
    try:
        from isal import isal_zlib  # slow to import, and most members are read another way
    except ImportError:
        return zlib, zlib.error
    return isal_zlib, isal_zlib.IsalError


def _reason(error: Exception) -> str:
    """The text of a message without what is always the same: `Error -1 Invalid deflate block found` of isal, for example."""
    return _ALWAYS.sub("", str(error).lower())


def _skip_header(window: Window, offset: int) -> int:
    head = window.get(offset, MAX_HEADER)
    try:
        size = header_size(head)
    except ValueError as error:
        raise MemberError(str(error), offset) from None
    if size is not None:
        return size
    if len(head) < MAX_HEADER:
        reached = offset + len(head)
        raise MemberError("the file is truncated inside a gzip header", reached, truncated=True)
    raise MemberError("gzip header longer than 128 KiB", offset + len(head))


def _check_trailer(window: Window, pos: int, crc: int, size: int) -> int:
    trailer = window.get(pos, TRAILER_SIZE)
    end = pos + len(trailer)
    if len(trailer) < TRAILER_SIZE:
        raise MemberError("the file is truncated inside a gzip trailer", end, truncated=True)
    if int.from_bytes(trailer[:4], "little") != crc:
        raise MemberError("gzip CRC32 mismatch", end, ended=True)
    if int.from_bytes(trailer[4:], "little") != size & 0xFFFFFFFF:
        raise MemberError("gzip length mismatch (ISIZE)", end, ended=True)
    return end
