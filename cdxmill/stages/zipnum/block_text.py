"""The text of one block of a shard, inflated only where it is needed.

Text is kept from the last line start that may still be needed. Searches come in ascending order. Text before the start of
the last search is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.stages.zipnum.block_pieces import BlockPieces


class BlockText:
    """The text of the block of `source`. A corrupt block raises DamagedCluster while it is searched."""

    def __init__(self, source: BlockPieces) -> None:
        self.block = source.block
        self._source = source
        self._pieces: Iterator[bytes] | None = None
        self._text: bytes | bytearray = b""
        self._floor = b""

    def can_answer(self, low: bytes) -> bool:
        """Whether the text from `low` was not dropped yet."""
        return low >= self._floor

    def between(self, low: bytes, high: bytes) -> tuple[list[bytes], bool]:
        """The lines >= `low` and < `high`, and whether the block contains a line >= `high`.

        Requires: `low` is not less than in any earlier search.
        """
        is_beyond = self._source.is_beyond(low, high)
        if is_beyond is not None:
            return [], is_beyond
        first, last = self._find(low, high)
        lines = bytes(memoryview(self._text)[first:last]).split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines, self._has_after(last, high)

    def count(self, low: bytes, high: bytes) -> tuple[int, bool]:
        """Like `between`, but only the number of lines."""
        is_beyond = self._source.is_beyond(low, high)
        if is_beyond is not None:
            return 0, is_beyond
        first, last = self._find(low, high)
        end = last == len(self._text) and last > first and not self._text.endswith(b"\n")
        return self._text.count(b"\n", first, last) + end, self._has_after(last, high)

    def _has_after(self, last: int, high: bytes) -> bool:
        """Whether there are lines >= `high`, which begin at `last` in the text or are not inflated."""
        return last < len(self._text) or self._source.beyond >= high

    def _find(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The start and end of the lines >= `low` and < `high` in the text."""
        self._floor = low
        if not self._source.is_whole and not self._reaches(high):
            self._inflate_to(low, high)
        first = self._first_at(low, 0)
        return first, self._first_at(high, first)

    def _inflate_to(self, low: bytes, high: bytes) -> None:
        """Inflate up to a whole line >= `high`. Drop pieces whose lines are all < `low`."""
        for piece in self._pieces_for(low, high):
            end = piece.rfind(b"\n")
            start = piece.rfind(b"\n", 0, end) + 1 if end > 0 else 0
            last = piece[start:end] if start else b""
            if start and last < low:
                self._text = piece[end + 1 :]
            else:
                self._append(piece)
            if (last >= high if start else self._reaches(high)) or self._source.beyond >= high:
                return
        if not self._source.is_whole:
            raise self._source.corrupt("as reported before")

    def _append(self, piece: bytes) -> None:
        """Add a piece to the text. The first one is not copied: it may be a kept one, of a whole section."""
        if not self._text:
            self._text = piece
        elif isinstance(self._text, bytearray):
            self._text += piece
        else:
            self._text = bytearray().join((self._text, piece))

    def _reaches(self, high: bytes) -> bool:
        """Whether all lines < `high` are inflated: a line >= `high` is in the text, or a section's key follows it.

        In a text without a line end, the start of a line will do.
        """
        end = self._text.rfind(b"\n")
        is_in_text = self._text[self._text.rfind(b"\n", 0, end) + 1 : end] >= high
        return is_in_text or self._source.beyond >= high

    def _pieces_for(self, low: bytes, high: bytes) -> Iterator[bytes]:
        """The next pieces of the text. Sections whose lines are all < `low` are skipped."""
        if self._pieces is None:
            self._pieces = self._source.opened(low, high)
        elif self._source.sections is not None:
            first, end = self._source.sections.containing(low, high)
            if first > self._source.section:
                self._text = b""
                self._pieces = self._source.from_section(self._source.sections, first, end)
        return self._pieces

    def _first_at(self, key: bytes, left: int) -> int:
        """The offset of the first line >= `key`, searched from `left`. The end of the text if there is none."""
        text, size = self._text, len(key)
        right = len(text)  # lines before `left` are < `key`, lines from `right` are not
        while left < right:
            start = text.rfind(b"\n", left, (left + right) // 2) + 1 or left
            end = text.find(b"\n", start, start + size)
            if text[start : end if end >= 0 else start + size] < key:
                left = text.find(b"\n", start) + 1 or len(text)
            else:
                right = start
        return left
