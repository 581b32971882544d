"""A CDX file, gzip or plain -> its plain bytes, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

from cdxmill.formats.gzip_member import MAGIC
from cdxmill.stages.inflate import inflate
from cdxmill.stages.window import Window

_PIECE = 1 << 18


def read_content(window: Window) -> Iterator[bytes]:
    """What the file in `window` holds, in pieces of at most 256 KiB; none is empty.

    Raises MemberError where gzip data are damaged or cut. Members are inflated by isal alone:
    at 200 KB a member that takes three quarters of the time that the quick way of records takes.
    """
    return _gzip(window) if _is_gzip(window.get(0, len(MAGIC))) else _plain(window)


def _is_gzip(start: bytes) -> bool:
    """Also where the file is cut after a byte or two, or one of the first three bytes is damaged."""
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
