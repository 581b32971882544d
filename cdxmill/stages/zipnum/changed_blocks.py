"""What a changed shard is made of: blocks of a shard that are opened only where other lines come between theirs, and lines.

A source has a `low`: no line that it has left is below it. If it `is_open`, its next line is `low`, and it knows all up to `last`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.stages.lines.drop_lines import Drop
from cdxmill.stages.lines.line_lists import lines_between
from cdxmill.stages.lines.merge_lines import SortedLists

LinesOf = Callable[[BlockRef], list[bytes]]
"""The lines of a block."""


class LinesToAdd:
    """Lines to add, sorted, in lists."""

    is_open = is_new = True
    removed = 0

    def __init__(self, lists: Iterable[list[bytes]]) -> None:
        self._lines = SortedLists(lists)

    @property
    def low(self) -> bytes | None:
        """The next line; None at the end."""
        return self._lines.next()

    @property
    def last(self) -> bytes:
        """The last line that is known."""
        return self._lines.lines[-1]

    def unpack(self) -> None:
        """It is always open."""

    def take(self, bound: bytes, limit: bytes | None) -> list[bytes]:
        """Remove and return the known lines that are <= `bound` and < `limit`."""
        return self._lines.take_below(bound + b"\0" if limit is None else min(bound + b"\0", limit))


class Dropping(NamedTuple):
    """Which lines of the blocks are removed, and what takes them."""

    drop: Drop
    gone: Callable[[list[bytes]], object]


class ShardBlocks:
    """Blocks of a cluster in order; only their lines in `bounds` (None: all).

    `count_of` counts the lines of a block that is not opened; with it, the lines are new ones. With `copies` false, all are opened.
    `may_stay`: whether the block needs not be opened for its own sake. `is_whole`: whether all lines of the open block are left.
    """

    def __init__(
        self,
        blocks: Iterable[BlockRef],
        lines_of: LinesOf,
        removing: Dropping | None = None,
        bounds: tuple[bytes, bytes | None] = (b"", None),
        count_of: Callable[[BlockRef], int] | None = None,
        copies: bool = True,
    ) -> None:
        self._blocks, self._lines_of, self._removing = iter(blocks), lines_of, removing
        self._bounds, self._count_of, self._copies = bounds, count_of, copies
        self.is_new, self.removed = count_of is not None or not copies, 0
        self._coming = next(self._blocks, None)
        self._is_first = True
        self._go_on()

    def _go_on(self) -> None:
        """Go to the next block."""
        low, high = self._bounds
        self.block, self.is_open, self.is_whole = self._coming, False, False
        self.before: list[bytes] = []
        self._pos = 0
        if self.block is None or (high is not None and self.block.key >= high):
            self.block = None
            return
        self._coming = next(self._blocks, None)
        self.upper = None if self._coming is None else self._coming.key + b"!"
        is_cut = self.block.key < low or (high is not None and (self.upper is None or self.upper > high))
        start, self._is_first = b"" if self._is_first else self.block.key, False
        reaches = self._removing is not None and self._removing.drop.reaches(start, self.upper)
        self.may_stay = self._copies and not is_cut and not reaches

    @property
    def low(self) -> bytes | None:
        """What no line that is left is below; None at the end."""
        if self.block is None:
            return None
        return self.before[self._pos] if self.is_open else max(self.block.key, self._bounds[0])

    @property
    def last(self) -> bytes:
        """The last line of the open block."""
        return self.before[-1]

    def unpack(self) -> None:
        """Read the lines of the block. If none is left, the next block follows."""
        assert self.block is not None
        found = self._lines_of(self.block)
        self.before = lines_between(found, *self._bounds)
        if self._removing is not None:
            self.before, gone = self._removing.drop.split(self.before)
            self.removed += len(gone)
            if gone:
                self._removing.gone(gone)
        self.is_open, self.is_whole = True, self._copies and len(self.before) == len(found)
        if not self.before:
            self._go_on()

    def take(self, bound: bytes, limit: bytes | None) -> list[bytes]:
        """Remove and return the lines of the open block that are <= `bound` and < `limit`."""
        end = bisect_right(self.before, bound, self._pos)
        if limit is not None:
            end = bisect_left(self.before, limit, self._pos, end)
        lines = self.before[self._pos : end]
        if lines:
            self._pos, self.is_whole = end, False
        if end == len(self.before):
            self._go_on()
        return lines

    def is_whole_to(self, bound: bytes, limit: bytes | None) -> bool:
        """Whether all lines of the open block are left, and none is beyond `bound` or `limit`."""
        return self.is_whole and self.last == bound and (limit is None or bound < limit)

    def take_block(self) -> BlockRef:
        """Remove and return the block as it is."""
        block = self.block
        assert block is not None
        self._go_on()
        return block

    def count(self) -> int:
        """The lines of the block."""
        assert self.block is not None
        if self.is_open or self._count_of is None:
            return len(self.before)
        return self._count_of(self.block)
