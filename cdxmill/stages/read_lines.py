"""A CDX file, gzip or plain -> its lines, in lists, as bytes.

A line ends with LF alone: a CR belongs to the line. Header lines (` CDX ...`) and empty
lines are left in.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

from cdxmill.formats.gzip_member import MAGIC, inflate_next
from cdxmill.stages.inflate import inflate
from cdxmill.stages.line_lists import BATCH, split_lines
from cdxmill.stages.window import Window

_QUICK_CONTENT = 8 << 20
"""Members of more plain bytes come in pieces: a list of their lines would be as large."""
_QUICK_MEMBER = 1 << 20


def read_lines(window: Window) -> Iterator[list[bytes]]:
    """The lines of the file in `window`, in lists of about 1 MiB; none is ever empty.

    Raises MemberError where gzip data are damaged or cut.
    """
    return split_lines(_content(window))


def _content(window: Window) -> Iterator[bytes | bytearray]:
    return _gzip(window) if _is_gzip(window.get(0, len(MAGIC))) else _plain(window)


def _is_gzip(start: bytes) -> bool:
    """Also where the file is cut after a byte or two, or one of the first three bytes is damaged."""
    fits: int = sum(map(eq, start, MAGIC))
    return fits >= min(len(start), 2) > 0


def _plain(window: Window) -> Iterator[bytes]:
    pos = 0
    while piece := window.get(pos, BATCH):
        yield piece
        pos += len(piece)


def _gzip(window: Window) -> Iterator[bytes | bytearray]:
    """Small members by libdeflate, with the next magic as a guess of their end; others by isal."""
    pos = 0
    while True:
        buffer, index = window.at(pos, _QUICK_MEMBER)
        if index == len(buffer):
            return
        found = inflate_next(buffer, index, _QUICK_CONTENT) if _is_short(buffer, index) else None
        if found is not None:
            yield found[0]
            pos += found[1] - index
        else:
            member = inflate(window, pos)
            yield from member
            pos = member.end


def _is_short(buffer: bytes, index: int) -> bool:
    """Whether the member's end is in the buffer, as far as can be told."""
    return len(buffer) - index < _QUICK_MEMBER or buffer.find(MAGIC, index + 1) >= 0
