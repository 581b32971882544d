"""A text whose lines are in order need not become lines before it is written to a run.

Most CDX files are sorted, but only gzip files of small members can be read again from any place (sorted_file.py).
The others are written to scratch space as they are, as far as they are in order. With the compiled module, this one
needs nothing but Python, so that it runs on any node of a Hadoop cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.native import lines_in_order as _native_lines_in_order

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
        last = self._held.pop()
        end = last.rfind(b"\n") + 1
        if not end:
            self._held.append(last)
            return b""
        text = b"".join((*self._held, memoryview(last)[:end]))
        self._held = [last[end:]] if end < len(last) else []
        return text

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
    return (
        len(lines) if lines.argsort() == tuple(range(len(lines))) else -1
    )  # equal lines stay where they are
