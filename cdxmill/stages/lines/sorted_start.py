"""A text whose lines are in order need not become lines before it is written to a run.

Most CDX files are sorted, but only gzip files of small members can be read again from any place (sorted_file.py).
The others are written to scratch space as they are, as far as they are in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.sorted_file import Order

BATCH = 1 << 18
"""Bytes of a block, about: few enough to stay in the cache of a processor until they are compressed."""


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
