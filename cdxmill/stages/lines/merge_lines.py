"""Several sorted sources of lines -> one, without a step of Python per line.

Each source gives lists of lines. A round looks some lines ahead in each list, takes from all lists
the lines up to the smallest line found there, and sorts them at once: the sort finds the runs and
merges them. Memory is one list per source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from cdxmill.errors import StoppedError
from cdxmill.stages.lines.line_lists import distinct_captures
from cdxmill.stages.lines.sorted_runs import BLOCK, OpenRun, Slice, read_slice

WORKING_SET = 64 << 20
"""Plain bytes of lines that a merge of runs holds at a time, unless there are too many runs for that."""
LIST = 1 << 20
"""Plain bytes per list: larger lists leave the processor's cache before they are written."""
_ROUND = 4096
"""Approximate lines per round: more would leave the processor's cache between sorting and writing."""


class SortedLists:
    """Sorted lines that come in lists. `lines` is the list that is read, empty at the end. `first` is the first of them."""

    def __init__(self, lists: Iterator[list[bytes]], first: list[bytes]) -> None:
        self._lists = lists
        self._pos = 0
        self.lines = first

    def take(self, bound: bytes, into: list[bytes]) -> bool:
        """Move the lines up to `bound` to `into`. False if the source is empty then."""
        stop = bisect_right(self.lines, bound, self._pos)
        into += self.lines[self._pos : stop]
        self._pos = stop
        if stop == len(self.lines):
            self.lines, self._pos = next(self._lists, []), 0
        return bool(self.lines)

    def ahead(self, step: int) -> bytes:
        """The line `step` lines ahead, or the last line of the list."""
        return self.lines[min(self._pos + step, len(self.lines)) - 1]

    def rest(self) -> Iterator[list[bytes]]:
        """The lines that are left, in lists."""
        yield self.lines[self._pos :]
        yield from self._lists


def merge_lines(sources: Iterable[Iterator[list[bytes]]]) -> Iterator[list[bytes]]:
    """The lines of all `sources`, sorted as bytes, without duplicates, in lists.

    Requires: each source gives non-empty lists of captures, and its lines are sorted. Raises
    StoppedError if they are seen not to be sorted.
    """
    return distinct_captures(_in_order(_merged(sources)))


def _in_order(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    last = b""
    for lines in lists:
        if not lines or lines[0] < last:
            raise StoppedError("inputs were changed while they were read; run it again")
        last = lines[-1]
        yield lines


def _merged(sources: Iterable[Iterator[list[bytes]]]) -> Iterator[list[bytes]]:
    active = [SortedLists(lists, first) for lists in sources if (first := next(lists, []))]
    step = _ROUND // max(len(active), 1) + 1
    while len(active) > 1:
        bound = min([source.ahead(step) for source in active])
        lines: list[bytes] = []
        active = [source for source in active if source.take(bound, lines)]
        lines.sort()
        yield lines
        if len(lines) < _ROUND // 2:
            step = min(2 * step, LIST)
        elif len(lines) > 2 * _ROUND:
            step = step // 2 + 1
    for source in active:
        yield from source.rest()


def merge_slices(slices: Sequence[Slice], open_run: OpenRun) -> Iterator[list[bytes]]:
    """The lines of slices of runs, sorted, without duplicates, in lists."""
    size = min(LIST, max(BLOCK, WORKING_SET // max(len(slices), 1)))
    return merge_lines(read_slice(open_run, part, size) for part in slices)
