"""A gzip CDX file that is already sorted: it is not spilled, but used as a run itself and read a second time.

A position in such a file is one number: the offset of a gzip member times SPAN, plus the number of bytes
of the member's content before the position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from cdxmill.stages.inflate import MemberError, inflate
from cdxmill.stages.lines.sorted_start import Order
from cdxmill.stages.window import ReadAt, Window

SPAN = 1 << 40
APART = 1 << 16
"""Plain bytes between two seek points, at least."""

_AHEAD = 1 << 17


class SeekPoints(NamedTuple):
    """`firsts`: (position, the line that starts there); `stop`: the position of the file's end; the number of lines."""

    firsts: list[tuple[int, bytes]]
    stop: int
    lines: int


def note_seek_points(window: Window, most: int, take: Callable[[bytes], object]) -> SeekPoints | None:
    """Pass the file's content to `take`, in pieces, and note positions of lines in it.

    None as soon as the lines are seen not to be sorted, or not to be captures only, or a gzip member
    has more than `most` plain bytes: to read from a position, its member is inflated from the start.
    Raises MemberError if the gzip data are corrupt or truncated.
    """
    firsts: list[tuple[int, bytes]] = []
    pos = have = noted = 0
    order = Order()
    while window.get(pos, 1):
        member, size = inflate(window, pos), 0
        for piece in member:
            take(piece)
            if firsts and not size and have >= noted + APART and (found := order.next_line(piece)):
                firsts.append((pos * SPAN + found[0], found[1]))
                noted = have
            size += len(piece)
            if size > most or not order.take(piece):
                return None
            if not firsts and order.count:
                firsts.append((0, order.first))
        pos, have = member.end, have + size
    if not order.end():
        return None
    return SeekPoints(firsts or [(0, order.first)], pos * SPAN, order.count)


def read_between(read_at: ReadAt, start: int, stop: int) -> Iterator[bytes]:
    """The file's content between two positions, in pieces.

    Raises MemberError if the file is not the one that the positions were noted in.
    """
    window = Window(read_at, _AHEAD)
    (pos, skip), (last, most) = divmod(start, SPAN), divmod(stop, SPAN)
    while pos < last or (pos == last and most):
        member = inflate(window, pos)
        at = 0
        for piece in member:
            part = piece[skip : most - at] if pos == last else piece[skip:]
            skip = max(skip - len(piece), 0)
            at += len(piece)
            yield part
            if pos == last and at >= most:
                return
        if pos == last:
            break
        pos = member.end
    if pos != last or most:
        raise MemberError("the file was changed while it was read", pos)
