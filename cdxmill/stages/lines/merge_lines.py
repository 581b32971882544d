"""Several sorted sources of lines or runs -> one, or what differs between two.

Each source gives lists of lines. A round looks some lines ahead in each list, takes from all lists
the lines up to the smallest line found there, and sorts them at once: the sort finds the runs and
merges them. Memory is one list per source.

Blocks are merged in one of two ways, with the same result: as lists in Python, or as texts in C
(`native/merger.c`), where no line becomes an object. That takes two thirds of the time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from cdxmill.errors import StoppedError
from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import TextBlock, cut_blocks, distinct, distinct_captures, group_lines
from cdxmill.stages.lines.sort_lines import (
    BLOCK,
    JOINED,
    Create,
    LineSorter,
    OpenRun,
    Run,
    Slice,
    read_slice,
    read_text,
    sort_captures,
    write_run,
)

WORKING_SET = 64 << 20
"""Plain bytes of lines that a merge of runs holds at a time, unless there are too many runs for that."""
LIST = 1 << 20
"""Plain bytes per list: larger lists leave the processor's cache before they are written."""
_ROUND = 4096
"""Approximate lines per round: more would leave the processor's cache between sorting and writing."""


class SortedLists:
    """Sorted lines that come in lists, none of them empty. `lines` is the list that is read, empty at the end."""

    def __init__(self, lists: Iterable[list[bytes]]) -> None:
        self._lists = iter(lists)
        self._pos = 0
        self.lines = next(self._lists, [])

    def take(self, bound: bytes, into: list[bytes]) -> bool:
        """Move the lines up to `bound` to `into`. False if the source is empty then."""
        into += self._taken(bisect_right(self.lines, bound, self._pos))
        return bool(self.lines)

    def take_below(self, high: bytes | None) -> list[bytes]:
        """Remove and return some of the next lines that are < `high` (None: no bound); none only if the next one is not."""
        stop = len(self.lines) if high is None else bisect_left(self.lines, high, self._pos)
        return self._taken(stop)

    def _taken(self, stop: int) -> list[bytes]:
        lines = self.lines[self._pos : stop]
        self._pos = stop
        if stop == len(self.lines):
            self.lines, self._pos = next(self._lists, []), 0
        return lines

    def next(self) -> bytes | None:
        """The next line; None at the end."""
        return self.lines[self._pos] if self.lines else None

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
    active = [source for source in map(SortedLists, sources) if source.lines]
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


class Difference(NamedTuple):
    """The number of missing lines and of extra lines, and the first of each."""

    missing: int = 0
    first_missing: bytes = b""
    extra: int = 0
    first_extra: bytes = b""

    def __add__(self, other: object) -> Difference:
        """The sum. Requires: all lines of this difference are below those of the other."""
        if not isinstance(other, Difference):
            return NotImplemented
        return Difference(
            self.missing + other.missing,
            self.first_missing if self.missing else other.first_missing,
            self.extra + other.extra,
            self.first_extra if self.extra else other.first_extra,
        )


def compare_lines(lists: Iterator[list[bytes]], wanted: Iterator[list[bytes]]) -> Difference:
    """The lines that `lists` miss, compared with `wanted`, and those that they have in addition.

    Requires: both give non-empty lists, their lines strictly increasing. Memory is one list of each.

    >>> compare_lines(iter([[b"a", b"b"], [b"d"]]), iter([[b"a"], [b"c", b"d"]]))
    Difference(missing=1, first_missing=b'c', extra=1, first_extra=b'b')
    """
    found = Difference()
    ours, theirs = SortedLists(lists), SortedLists(wanted)
    while ours.lines and theirs.lines:
        bound = min(ours.lines[-1], theirs.lines[-1])
        found += _difference(_taken(ours, bound), _taken(theirs, bound))
    while ours.lines:
        found += _difference(_taken(ours, ours.lines[-1]), [])
    while theirs.lines:
        found += _difference([], _taken(theirs, theirs.lines[-1]))
    return found


def _taken(source: SortedLists, bound: bytes) -> list[bytes]:
    lines: list[bytes] = []
    source.take(bound, lines)
    return lines


def _difference(lines: list[bytes], wanted: list[bytes]) -> Difference:
    if lines == wanted:
        return Difference()
    here, there = set(lines), set(wanted)
    missing, extra = there - here, here - there
    return Difference(len(missing), min(missing, default=b""), len(extra), min(extra, default=b""))


_AHEAD = 32 << 20
"""Plain bytes that are read ahead, about, over all runs: small reads cost more."""


def merge_blocks(slices: Sequence[Slice], open_run: OpenRun, lines: int) -> Iterator[TextBlock]:
    """The lines of slices of runs, sorted, without duplicates, in blocks of `lines` lines.

    The text of a block may change when the next block is asked for: to free and allocate a megabyte
    takes longer than to fill it. Raises StoppedError if a sorted input has changed; lines beyond the
    bounds of the slices may not be read.
    """
    if native.Merger is None:
        yield from cut_blocks(merge_slices(slices, open_run), lines)
        return
    size = max(BLOCK, _AHEAD // max(len(slices), 1))
    merger = native.Merger([(read_text(open_run, part, size), part.low, part.high) for part in slices])
    text = bytearray()
    while count := merger.fill(text, lines):
        yield TextBlock(count, text)


MOST_RUNS = 500
"""At most this many runs are merged at a time: one block of each is half of what a merge may hold."""


def merge_runs(runs: Sequence[Run], create: Create, open_run: OpenRun) -> Iterator[list[bytes]]:
    """The lines of whole runs, sorted, without duplicates, in lists."""
    few = fewer_runs(runs, create, open_run)
    return merge_slices([run.whole() for run in few], open_run)


def sort_lists(
    lists: Iterable[list[bytes]], name: str, create: Create, open_run: OpenRun
) -> Iterator[list[bytes]]:
    """Lines in any order -> sorted, without duplicates, in lists. Names of spilled runs start with `name`."""
    sorter = LineSorter(create, name)
    for lines in lists:
        sorter.add(lines)
    return sorted_lists(sorter, create, open_run)


def sorted_lists(sorter: LineSorter, create: Create, open_run: OpenRun) -> Iterator[list[bytes]]:
    """The lines of `sorter`, sorted, without duplicates, in lists. What fits into memory is not spilled."""
    if sorter.runs:
        return merge_runs(sorter.finish(), create, open_run)
    return group_lines(distinct(sort_captures(sorter.take())), LIST)


def fewer_runs(
    runs: Sequence[Run],
    create: Create,
    open_run: OpenRun,
    most: int = MOST_RUNS,
    delete: Callable[[list[str]], object] | None = None,
) -> list[Run]:
    """At most `most` runs with the same lines: no more of them are merged than necessary. Requires: `most` >= 1.

    `delete` is called with the names of runs that were merged.
    """
    left = list(runs)
    while len(left) > most:
        batch = left[: min(MOST_RUNS, len(left) - most + 1)]
        left = [*left[len(batch) :], _one_run(batch, create, open_run)]
        if delete is not None:
            delete([run.name for run in batch])
    return left


def _one_run(runs: Sequence[Run], create: Create, open_run: OpenRun) -> Run:
    name = f"{runs[0].name}+"
    with create(name) as file:
        merged = write_run(file, name, merge_blocks([run.whole() for run in runs], open_run, JOINED))
    taken = sum(run.lines + run.duplicates for run in runs)
    return merged._replace(duplicates=taken - merged.lines)
