"""A CDX file, gzip or plain -> its plain bytes, in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import eq

from cdxmill.errors import InputError
from cdxmill.formats.archives.gzip_member import MAGIC
from cdxmill.stages.inflate import MemberError, inflate
from cdxmill.stages.lines.check_lines import REBUILD, LineError, Piece, checked
from cdxmill.stages.window import Window

_PLAIN_PIECE = 1 << 18
_QUICK_MEMBER = 1 << 20
_QUICK_CONTENT = 4 << 20


def read_cdx(path: str, window: Window, content: Callable[[Window], Iterator[Piece]]) -> Iterator[Piece]:
    """The text of the CDX file in `window`, each piece checked before it is passed on; `content` reads its bytes.

    Raises InputError if the file at `path` is empty or corrupt, or has a line that is no CDX line.
    """
    if not window.get(0, 1):
        raise InputError(path, "the file is empty", REBUILD)
    try:
        yield from checked(content(window))
    except (MemberError, LineError) as error:
        raise InputError(path, str(error), REBUILD) from None


def read_content(window: Window) -> Iterator[bytes]:
    """The content of the file in `window`, in non-empty pieces of at most 256 KiB.

    Raises MemberError if gzip data are corrupt or truncated.
    """
    return _gzip(window) if _is_gzip(window.get(0, len(MAGIC))) else _plain(window)


def read_large_pieces(window: Window) -> Iterator[bytes | bytearray]:
    """As `read_content`, but a gzip member of up to 1 MiB, with up to 4 MiB of content, is one piece.

    It takes a tenth less time. The window should have a chunk of 1 MiB.
    """
    return _gzip_quickly(window) if window.get(0, len(MAGIC)) == MAGIC else read_content(window)


def _is_gzip(start: bytes) -> bool:
    """Also true if the file is truncated after one or two bytes, or one of the first three bytes is corrupt."""
    fits: int = sum(map(eq, start, MAGIC))
    return fits >= min(len(start), 2) > 0


def _plain(window: Window) -> Iterator[bytes]:
    pos = 0
    while piece := window.get(pos, _PLAIN_PIECE):
        yield piece
        pos += len(piece)


def _gzip(window: Window) -> Iterator[bytes]:
    pos = 0
    while window.get(pos, 1):
        member = inflate(window, pos)
        yield from member
        pos = member.end


def _gzip_quickly(window: Window) -> Iterator[bytes | bytearray]:
    from cdxmill.formats.archives.small_member import (
        inflate_members,
    )  # its libraries are missing on nodes of Hadoop

    pos = 0
    while window.get(pos, 1):
        buffer, index = window.at(pos, _QUICK_MEMBER)
        start = index
        for content, end in inflate_members(buffer, index, _QUICK_CONTENT):
            yield content
            pos, index = pos + end - index, end
        if index == start:
            member = inflate(window, pos)
            yield from member
            pos = member.end
