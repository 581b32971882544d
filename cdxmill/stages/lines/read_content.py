"""A CDX file, gzip or plain -> its plain bytes, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

from cdxmill.formats.gzip_member import MAGIC
from cdxmill.stages.inflate import inflate
from cdxmill.stages.window import Window

_PIECE = 1 << 18


def read_content(window: Window) -> Iterator[bytes]:
    """The content of the file in `window`, in non-empty pieces of at most 256 KiB.

    Raises MemberError if gzip data are corrupt or truncated. Members are inflated with isal only. For
    members of 200 KB that takes three quarters of the time of the quick way that records are read.
    """
    return _gzip(window) if _is_gzip(window.get(0, len(MAGIC))) else _plain(window)


def _is_gzip(start: bytes) -> bool:
    """Also true if the file is truncated after one or two bytes, or one of the first three bytes is corrupt."""
    fits: int = sum(map(eq, start, MAGIC))
    return fits >= min(len(start), 2) > 0


def _plain(window: Window) -> Iterator[bytes]:
    pos = 0
    while piece := window.get(pos, _PIECE):
        yield piece
        pos += len(piece)


def _gzip(window: Window) -> Iterator[bytes]:
    pos = 0
    while window.get(pos, 1):
        member = inflate(window, pos)
        yield from member
        pos = member.end
