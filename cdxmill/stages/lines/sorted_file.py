"""A gzip CDX file that is sorted already: a run as it is, to be read again in place of being spilled.

A place in such a file is a number: the offset of a gzip member, times SPAN, and the bytes of the
member's content before the place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from stringzilla import split

from cdxmill.stages.inflate import MemberError, inflate
from cdxmill.stages.window import ReadAt, Window

SPAN = 1 << 40
APART = 1 << 16
"""Plain bytes between two places that are noted, at the least."""

_AHEAD = 1 << 17
_FIRST_CAPTURE = b" CDY"
"""Empty and header lines sort below it."""


class SeekPoints(NamedTuple):
    """`firsts`: (place, the line that starts there); `stop`: the place of the file's end; how many lines."""

    firsts: list[tuple[int, bytes]]
    stop: int
    lines: int


def note_seek_points(window: Window, most: int) -> Generator[bytes, None, SeekPoints | None]:
    """The file's content, in pieces, and at last places of lines in it.

    None as soon as the lines turn out not to be sorted, or not to be captures alone, or a gzip member
    to have more than `most` plain bytes: who reads from a place inflates its member from the start.
    Raises MemberError where gzip data are damaged or cut.
    """
    firsts: list[tuple[int, bytes]] = []
    pos = have = noted = 0
    order = _Order()
    while window.get(pos, 1):
        member, size = inflate(window, pos), 0
        for piece in member:
            yield piece
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


class _Order:
    """Whether the lines of a text that comes in pieces are sorted captures. No line is made an object: that takes longest."""

    def __init__(self) -> None:
        self.count = 0
        self.first = b""
        self._last = _FIRST_CAPTURE
        self._begun: list[bytes] = []
        self._numbers: tuple[int, ...] = ()

    def next_line(self, piece: bytes) -> tuple[int, bytes] | None:
        """Where in the next piece the first line begins that ends there, too, and that line."""
        start = piece.find(b"\n") + 1 if self._begun else 0
        end = piece.find(b"\n", start) if start or not self._begun else -1
        return (start, piece[start:end]) if end >= 0 else None

    def take(self, piece: bytes) -> bool:
        """Whether the lines that end in the next piece are in order."""
        first, last = piece.find(b"\n"), piece.rfind(b"\n")
        if last < 0:
            self._begun.append(piece)
            return True
        line = b"".join((*self._begun, piece[:first]))
        self._begun = [piece[last + 1 :]] if last + 1 < len(piece) else []
        return self._goes_on(line, line, 1) and (first == last or self._are_sorted(piece[first + 1 : last]))

    def end(self) -> bool:
        """Whether also the last line is in order where that has no LF; False where there is none at all."""
        line = b"".join(self._begun)
        return (not self._begun or self._goes_on(line, line, 1)) and self.count > 0

    def _are_sorted(self, text: bytes) -> bool:
        """Sorting leaves sorted lines, equal ones too, where they are."""
        lines = split(text, b"\n")
        count = len(lines)
        if len(self._numbers) < count:
            self._numbers = tuple(range(2 * count))
        first, last = bytes(lines[0]), bytes(lines[-1])
        return lines.argsort() == self._numbers[:count] and self._goes_on(first, last, count)

    def _goes_on(self, first: bytes, last: bytes, count: int) -> bool:
        if first < self._last:
            return False
        self.first = self.first or first
        self._last, self.count = last, self.count + count
        return True


def read_between(read_at: ReadAt, start: int, stop: int) -> Iterator[bytes]:
    """The file's content between two places, in pieces.

    Raises MemberError where the file is not the one that the places were noted in.
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
