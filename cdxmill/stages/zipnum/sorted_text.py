"""A sorted plain CDX file, searched as a cluster is: each page of it is a block, without an index and without gzip.

    pages    |         |         |         |      of the file, 64 KiB each
    blocks   [.......][..........][.......][..]   the lines that begin after the first line end in a page

The order of the lines is checked in all that is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.stages.lines.line_lists import distinct, is_capture_line
from cdxmill.stages.window import ReadAt
from cdxmill.stages.zipnum.block_pieces import BlockPieces
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex, Start

PAGE = 1 << 16
"""Bytes. Over a network, a request for 64 KiB takes as long as one for less."""
_BEGUN = 1 << 12
"""Bytes of the line after a block that are compared with the last line of the block."""


def spread_pages(pages: int, parts: int) -> list[int]:
    """Some of the `pages` pages of a text, in order: between `parts` equal parts, and 1, 4, 16 ... pages from both ends.

    Of two sorted texts in one file, one after the other, at least one page of each is among them, however small one of the
    two is.

    >>> spread_pages(100, 4)
    [0, 1, 4, 16, 25, 50, 75, 84, 96, 99]
    """
    steps = [4**power for power in range(pages.bit_length() // 2)]
    even = [pages * part // parts for part in range(1, parts)]
    return sorted({0, pages - 1, *even, *steps, *(pages - step for step in steps)})


class TextIndex(SecondaryIndex):
    """The blocks of a sorted text of `size` bytes. Its last line has an LF."""

    def __init__(self, read_at: ReadAt, size: int) -> None:
        super().__init__(read_at, size, PAGE, key=lambda line: line)

    def blocks(self, low: bytes) -> Iterator[BlockRef]:
        """All blocks from the one that may contain `low`. Raises DamagedCluster if their first lines are not sorted."""
        number = self._find_page(low).number
        begin = self._start(number, number, number)
        while begin.offset < self._size:
            number += 1
            end = self._start(number, number, number)
            if end.key < begin.key:
                raise out_of_order(end.offset)
            if end.offset > begin.offset:
                key = begin.key if begin.offset else b""  # the file may begin with a header
                yield BlockRef(key, b"", begin.offset, end.offset - begin.offset)
            begin = end

    def are_sorted(self, pages: Iterable[int]) -> bool:
        """Whether the first lines of these pages, which are in order, are sorted. Raises DamagedCluster."""
        return all(first <= second for first, second in pairwise(map(self._first_key, pages)))

    def _first_key(self, page: int) -> bytes:
        """The key of `_first_line`, mostly from fewer bytes."""
        data = self._read_at(page * PAGE, _BEGUN)
        start = data.find(b"\n") + 1 if page else 0
        end = data.find(b"\n", start) if start or not page else -1
        return data[start:end] if end >= 0 else self._first_line(page).key

    def _rest_of_page(self, pos: int) -> bytes:
        try:
            return super()._rest_of_page(pos)
        except DamagedCluster:
            raise BecameShorter from None

    def _start(self, page: int, left: int, right: int) -> Start:
        try:
            return super()._start(page, left, right)
        except BecameShorter:
            raise
        except DamagedCluster:
            raise out_of_order(page * PAGE) from None


class SortedPieces(BlockPieces):
    """The lines of one block of a sorted text, in one piece. `read` reads its file."""

    may_have_sections = False

    def opened(self, low: bytes, high: bytes) -> Iterator[bytes]:
        """The lines, after their order was checked."""
        _, shard, offset, length = self.block
        data = self._read(shard, offset, length + _BEGUN)
        if len(data) < length:
            raise BecameShorter
        lines, following = data[:length].split(b"\n")[:-1], data[length:].partition(b"\n")[0]
        if offset == 0:
            lines = list(filter(is_capture_line, lines))
        if lines != sorted(lines) or (following and lines and lines[-1][:_BEGUN] > following):
            raise out_of_order(offset)
        lines = distinct(lines)
        if lines and lines[-1] == following:
            lines.pop()  # the next block has it
        self.is_whole = True
        yield b"".join(line + b"\n" for line in lines)


class NotSorted(DamagedCluster):
    """The lines of a CDX file are not sorted."""

    hint = "sort it with LC_ALL=C sort, or build a cluster with cdxmill zipnum"


class BecameShorter(DamagedCluster):
    """A CDX file changed while it was open."""

    hint = "run it again when nothing writes to the file"

    def __init__(self) -> None:
        super().__init__("the file became shorter while it was read")


def out_of_order(offset: int) -> NotSorted:
    """The error for lines that are not sorted, near an offset."""
    return NotSorted(f"the lines are not sorted near byte {offset}")
