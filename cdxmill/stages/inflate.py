"""One gzip member, inflated piece by piece in bounded memory, with every check of RFC 1952."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from cdxmill.formats.gzip_member import MAX_HEADER, TRAILER_SIZE, header_size
from cdxmill.stages.window import Window

_PIECE = 1 << 15
_FIRST = 1 << 9
"""Compressed bytes that give the content's first ones: deflate's longest tables are smaller."""


class MemberError(ValueError):
    """A compressed member is damaged.

    `reached` is the offset up to which it was read. `cut` where the file ends inside it.
    `ended` where the damage shows only at its very end, which then is at `reached`.
    """

    def __init__(self, reason: str, reached: int, cut: bool = False, ended: bool = False) -> None:
        super().__init__(reason)
        self.reached, self.cut, self.ended = reached, cut, ended


class Pieces:
    """An iterator of pieces; once it is at its end, `end` is the offset behind the member."""

    def __init__(self, offset: int) -> None:
        self.end = offset
        self.pieces: Iterator[bytes] = iter(())

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self.pieces)


def inflate(window: Window, offset: int) -> Pieces:
    """The content of the gzip member at `offset`.

    Pieces are of at most 128 KiB whatever the ratio of compression. Iterating raises
    MemberError where the member is cut or damaged.
    """
    pieces = Pieces(offset)
    pieces.pieces = _inflate(window, offset, pieces)
    return pieces


def inflate_start(window: Window, offset: int, size: int) -> bytes:
    """The first `size` bytes of the content, unchecked; b"" where no member starts at `offset`."""
    try:
        head = window.get(offset, _FIRST + size)
        start = header_size(head) or _skip_header(window, offset)
        data = head[start:] if start < _FIRST else window.get(offset + start, _FIRST + size)
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size)
    except (ValueError, zlib.error):
        return b""


def _inflate(window: Window, offset: int, pieces: Pieces) -> Iterator[bytes]:
    from isal import isal_zlib  # slow to import, and most members are read the quick way

    pos = offset + _skip_header(window, offset)
    inflater = isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    crc, size, data = 0, 0, b""
    while not inflater.eof:
        if not data:
            data = window.get(pos, _PIECE)
            pos += len(data)
            if not data:
                raise MemberError("the file ends inside a gzip member", pos, cut=True)
        try:
            piece = inflater.decompress(data, _PIECE * 4)
        except isal_zlib.IsalError as error:  # type: ignore[misc]
            raise MemberError(f"the gzip data are damaged ({_what(error)})", pos) from None
        data = inflater.unconsumed_tail
        crc, size = isal_zlib.crc32(piece, crc), size + len(piece)
        if piece:
            yield piece
    pieces.end = _check_trailer(window, pos - len(inflater.unused_data), crc, size)


def _what(error: Exception) -> str:
    """What isal says, `Error -1 Invalid deflate block found`, without the number."""
    return str(error).lower().split(maxsplit=2)[-1]


def _skip_header(window: Window, offset: int) -> int:
    head = window.get(offset, MAX_HEADER)
    try:
        size = header_size(head)
    except ValueError as error:
        raise MemberError(str(error), offset) from None
    if size is not None:
        return size
    if len(head) < MAX_HEADER:
        raise MemberError("the file ends inside a gzip header", offset + len(head), cut=True)
    raise MemberError("the gzip header is longer than 128 KiB", offset + len(head))


def _check_trailer(window: Window, pos: int, crc: int, size: int) -> int:
    trailer = window.get(pos, TRAILER_SIZE)
    end = pos + len(trailer)
    if len(trailer) < TRAILER_SIZE:
        raise MemberError("the file ends inside a gzip trailer", end, cut=True)
    if int.from_bytes(trailer[:4], "little") != crc:
        raise MemberError("the gzip checksum does not fit (CRC32)", end, ended=True)
    if int.from_bytes(trailer[4:], "little") != size & 0xFFFFFFFF:
        raise MemberError("the gzip length does not fit (ISIZE)", end, ended=True)
    return end
