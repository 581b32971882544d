"""What a user wants to remove -> ranges of keys, runs of keys on scratch space, and a condition on lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import field_reader, timestamp_of_line
from cdxmill.formats.lines.lookup_query import TimeRange, time_range
from cdxmill.stages.lines.drop_lines import Drop, LineRange, joined_ranges
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.stages.lines.merge_lines import merge_slices
from cdxmill.stages.lines.sort_lines import LineSorter, Run, Slice, cut_run, has_lines
from cdxmill.storage.location import locate, pieces
from cdxmill.storage.scratch import Scratch


class Restriction(NamedTuple):
    """Which lines of a range are meant: those of some archives (None: of all), with timestamps in a range."""

    archives: frozenset[str] | None = None
    times: TimeRange = TimeRange()

    def test(self) -> Callable[[bytes], bool] | None:
        """A function of a line; None if all are meant."""
        archives, (first, last) = self.archives, self.times
        if archives is None and not any(self.times):
            return None
        read = field_reader("filename")

        def is_meant(line: bytes) -> bool:
            time = timestamp_of_line(line)
            in_time = time >= first and time[: len(last)] <= last
            return in_time and (archives is None or read(line) in archives)

        return is_meant


@dataclass(frozen=True)
class Removal:
    """Lines in `ranges`, or with a key of `keys`, that meet the `condition`. `scratch` has the runs of the keys."""

    ranges: Sequence[LineRange]
    condition: Restriction = Restriction()  # noqa: RUF009 - it is immutable
    keys: Sequence[Run] = ()
    scratch: Scratch | None = None

    def part(self, low: bytes, high: bytes | None) -> ShardRemoval | None:
        """What concerns the lines >= `low` and < `high`; None if nothing does."""
        ranges = [one for one in self.ranges if one.high > low and (high is None or one.low < high)]
        slices = [found for run in self.keys if (found := self._slice(run, low, high)) is not None]
        return ShardRemoval(ranges, slices, self.condition) if ranges or slices else None

    def _slice(self, run: Run, low: bytes, high: bytes | None) -> Slice | None:
        """The keys of a run with lines >= `low`: that of `low` itself begins below it."""
        assert self.scratch is not None
        first = low.partition(b" ")[0]
        points = [point for point in (first, high) if point]
        ranges = cut_run(self.scratch.reader(run.name), run, points)
        start, end = ranges[1 if first else 0]
        found = Slice(run, start, end, first, high)
        return found if has_lines(self.scratch.reader, found) else None


class ShardRemoval(NamedTuple):
    """The part of a removal that concerns one shard."""

    ranges: list[LineRange]
    keys: list[Slice]
    condition: Restriction

    def drop(self, scratch: Scratch) -> Drop:
        """What removes the lines."""
        lists = merge_slices(self.keys, scratch.reader) if self.keys else ()
        of_keys = chain.from_iterable(map(ranges_of_keys, lists))
        return Drop(joined_ranges(merge(of_keys, self.ranges)), self.condition.test())


def ranges_of_keys(keys: Iterable[bytes]) -> Iterator[LineRange]:
    """The lines with these keys, each of which ends with a space.

    >>> list(ranges_of_keys([b"com,example)/a "]))
    [LineRange(low=b'com,example)/a ', high=b'com,example)/a!')]
    """
    return (LineRange(key, key[:-1] + b"!") for key in keys)


def checked_times(first: str | None, last: str | None) -> TimeRange:
    """The time range of two options. Raises UsageError."""
    try:
        return time_range(first, last)
    except ValueError as error:
        raise UsageError(str(error)) from None


def sort_keys(path: str, scratch: Scratch) -> list[Run]:
    """The keys in a file, sorted on scratch space: each line a urlkey, or a urlkey and a timestamp. Raises InputError."""
    sorter = LineSorter(scratch.create, "keys")
    with locate(path).open_ranges() as read_at:
        number = 0
        for lines in split_lines(pieces(read_at)):
            for key in lines:
                number += 1
                if key.strip() and (b" " in key.strip().partition(b" ")[2] or b")" not in key):
                    reason = f"line {number} is not a key such as com,example)/page, {key[:80]!r}"
                    raise InputError(path, reason, "print keys with cdxmill lookup --fl urlkey")
            sorter.add([key.strip() + b" " for key in lines if key.strip()])
    return sorter.finish()
