"""One gzip member, inflated piece by piece in bounded memory, with every check of RFC 1952."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from isal import isal_zlib

from cdxmill.formats.gzip_member import TRAILER_SIZE, header_size
from cdxmill.stages.window import Window

_PIECE = 1 << 16
_MAX_HEADER = 1 << 17


class MemberError(ValueError):
    """A compressed member is damaged; `cut` where the file ends inside it."""

    def __init__(self, reason: str, cut: bool = False) -> None:
        super().__init__(reason)
        self.cut = cut


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

    Pieces are of at most 256 KiB whatever the ratio of compression. Iterating raises
    MemberError where the member is cut or damaged.
    """
    pieces = Pieces(offset)
    pieces.pieces = _inflate(window, offset, pieces)
    return pieces


def _inflate(window: Window, offset: int, pieces: Pieces) -> Iterator[bytes]:
    pos = offset + _skip_header(window, offset)
    inflater = isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    crc, size, data = 0, 0, b""
    while not inflater.eof:
        if not data:
            data = window.get(pos, _PIECE)
            pos += len(data)
            if not data:
                raise MemberError("the file ends inside a gzip member", cut=True)
        try:
            piece = inflater.decompress(data, _PIECE * 4)
        except isal_zlib.IsalError as error:  # type: ignore[misc]
            raise MemberError(f"the gzip data are damaged ({str(error).lower()})") from None
        data = inflater.unconsumed_tail
        crc, size = isal_zlib.crc32(piece, crc), size + len(piece)
        if piece:
            yield piece
    pieces.end = _check_trailer(window, pos - len(inflater.unused_data), crc, size)


def _skip_header(window: Window, offset: int) -> int:
    try:
        size = header_size(window.get(offset, _MAX_HEADER))
    except ValueError:
        raise MemberError("no gzip member starts here") from None
    if size is None:
        raise MemberError("the file ends inside a gzip header", cut=True)
    return size


def _check_trailer(window: Window, pos: int, crc: int, size: int) -> int:
    trailer = window.get(pos, TRAILER_SIZE)
    if len(trailer) < TRAILER_SIZE:
        raise MemberError("the file ends inside a gzip trailer", cut=True)
    if int.from_bytes(trailer[:4], "little") != crc:
        raise MemberError("the gzip checksum does not fit (CRC32)")
    if int.from_bytes(trailer[4:], "little") != size & 0xFFFFFFFF:
        raise MemberError("the gzip length does not fit (ISIZE)")
    return pos + TRAILER_SIZE
