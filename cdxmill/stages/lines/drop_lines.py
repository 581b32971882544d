"""Which lines are removed: those in ranges of keys that also meet a condition. Ranges and lines come in ascending order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple


class LineRange(NamedTuple):
    """Lines >= `low` and < `high`, both bytes."""

    low: bytes
    high: bytes


class Split(NamedTuple):
    """Sorted lines, divided into those that are kept and those that are gone."""

    kept: list[bytes]
    gone: list[bytes]


def joined_ranges(ranges: Iterable[LineRange]) -> Iterator[LineRange]:
    """Ranges, sorted by `low`, without overlaps.

    >>> list(joined_ranges([LineRange(b"a", b"c"), LineRange(b"b", b"d"), LineRange(b"x", b"y")]))
    [LineRange(low=b'a', high=b'd'), LineRange(low=b'x', high=b'y')]
    """
    last: LineRange | None = None
    for found in ranges:
        if last is not None and found.low <= last.high:
            last = LineRange(last.low, max(last.high, found.high))
            continue
        if last is not None:
            yield last
        last = found
    if last is not None:
        yield last


def outside(lines: list[bytes], ranges: Sequence[LineRange]) -> list[bytes]:
    """The lines, in any order, that are in none of the `ranges`, which are sorted and do not overlap.

    >>> outside([b"x", b"b", b"a"], [LineRange(b"b", b"c")])
    [b'x', b'a']
    """
    lows = [one.low for one in ranges]
    places = ((line, bisect_right(lows, line) - 1) for line in lines)
    return [line for line, place in places if place < 0 or line >= ranges[place].high]


class Drop:
    """Removes the lines in `ranges` for which `is_meant` is true; without it, all lines in them.

    Requires: the ranges are sorted and do not overlap, and each call asks for lines or keys that are not below those of the
    call before.
    """

    def __init__(self, ranges: Iterable[LineRange], is_meant: Callable[[bytes], bool] | None = None) -> None:
        self._ranges = iter(ranges)
        self._is_meant = is_meant
        self._next = next(self._ranges, None)

    def reaches(self, low: bytes, high: bytes | None) -> bool:
        """Whether a range has lines >= `low` and < `high` (None: no bound)."""
        while self._next is not None and self._next.high <= low:
            self._next = next(self._ranges, None)
        return self._next is not None and (high is None or self._next.low < high)

    def split(self, lines: list[bytes]) -> Split:
        """Divide sorted lines."""
        kept: list[bytes] = []
        gone: list[bytes] = []
        pos = 0
        while lines and self.reaches(lines[pos], lines[-1] + b"\0"):
            assert self._next is not None
            low, high = self._next
            start = bisect_left(lines, low, pos)
            end = bisect_left(lines, high, start)
            kept += lines[pos:start]
            self._choose(lines[start:end], kept, gone)
            pos = end
            if pos == len(lines):
                break
        kept += lines[pos:]
        return Split(kept, gone)

    def _choose(self, lines: list[bytes], kept: list[bytes], gone: list[bytes]) -> None:
        if self._is_meant is None:
            gone += lines
            return
        for line in lines:
            (gone if self._is_meant(line) else kept).append(line)
