"""Inputs that are already sorted: their lines need not become objects, and large gzip files need not be spilled.

Most CDX files are sorted, but only gzip files of small members can be read again from any position. A position is the
offset of a member times SPAN, plus the number of bytes of its content before it. The others are written to scratch space
as they are, as far as they are in order. With the compiled module, that needs nothing but Python, so that it runs on any
node of a Hadoop cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.native import lines_in_order as _native_lines_in_order
from cdxmill.stages.window import MemberError, ReadAt, Window, inflate

BATCH = 1 << 18
"""Bytes of a block, about: few enough to stay in the cache of a processor until they are compressed."""


_FIRST_CAPTURE = b" CDY"
"""Empty and header lines sort below it."""


class SortedStart:
    """The start of a text that comes in pieces: its lines, until one is out of order.

    Iterating gives texts of whole lines, of about 1 MiB, without a header line at the start. Then `rest` has the pieces
    that follow: all of them if the text is short or not in order from its start. Memory: about 2 MiB.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held: list[bytes] = []
        self._lines = 0

    def __iter__(self) -> Iterator[TextBlock]:
        order, size = Order(), 0
        # not in another generator: the end of that would close the generator of the pieces, and their rest would be lost
        for number, piece in enumerate(self._pieces):
            if not number and piece.startswith(b" CDX"):
                piece = piece[piece.find(b"\n") + 1 :]
            self._held.append(piece)
            if not order.take(piece):
                return
            size += len(piece)
            if size >= BATCH and (text := self._whole_lines()):
                yield self._block(text, order.count)
                size = sum(map(len, self._held))
        if self._lines and self._held and order.end():
            text, self._held = b"".join(self._held), []
            yield self._block(text if text.endswith(b"\n") else text + b"\n", order.count)

    def rest(self) -> Iterator[bytes]:
        """The pieces of the text that no block has."""
        return chain(self._held, self._pieces)

    def _whole_lines(self) -> bytes:
        text = b"".join(self._held)
        end = text.rfind(b"\n") + 1
        self._held = [text[end:]] if end < len(text) else []
        return text[:end]

    def _block(self, text: bytes, lines: int) -> TextBlock:
        count, self._lines = lines - self._lines, lines
        return TextBlock(count, text)


class Order:
    """Checks that the lines of a text, which comes in pieces, are sorted captures.

    No line becomes an object: that would take most of the time.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first = b""
        self._last = _FIRST_CAPTURE
        self._begun: list[bytes] = []

    def next_line(self, piece: bytes) -> tuple[int, bytes] | None:
        """The first line that is whole in the next piece, and where in the piece it begins."""
        start = piece.find(b"\n") + 1 if self._begun else 0
        end = piece.find(b"\n", start) if start or not self._begun else -1
        return (start, piece[start:end]) if end >= 0 else None

    def take(self, piece: bytes) -> bool:
        """Check the lines that end in the next piece: whether they are in order."""
        first, last = piece.find(b"\n"), piece.rfind(b"\n")
        if last < 0:
            self._begun.append(piece)
            return True
        line = b"".join((*self._begun, piece[:first]))
        self._begun = [piece[last + 1 :]] if last + 1 < len(piece) else []
        return self._follows(line, line, 1) and (first == last or self._are_sorted(piece, first + 1, last))

    def end(self) -> bool:
        """Check the last line if it has no LF: whether all are in order. False if there is no line at all."""
        line = b"".join(self._begun)
        return (not self._begun or self._follows(line, line, 1)) and self.count > 0

    def _are_sorted(self, text: bytes, start: int, end: int) -> bool:
        count = lines_in_order(text, start, end)
        first = text[start : text.index(b"\n", start)]
        last = text[text.rfind(b"\n", start - 1, end) + 1 : end]
        return count > 0 and self._follows(first, last, count)

    def _follows(self, first: bytes, last: bytes, count: int) -> bool:
        if first < self._last:
            return False
        self.first = self.first or first
        self._last, self.count = last, self.count + count
        return True


def lines_in_order(text: bytes, start: int, end: int) -> int:
    """The number of lines of `text[start:end]`, -1 if they are not sorted as bytes. Equal lines are in order."""
    if _native_lines_in_order is not None:
        return _native_lines_in_order(text, start, end)
    from stringzilla import split  # Hadoop's nodes do not have it

    lines = split(text[start:end], b"\n")
    # argsort leaves equal lines where they are
    return len(lines) if lines.argsort() == tuple(range(len(lines))) else -1


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
