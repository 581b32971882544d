"""Two sorted sources of lines -> their difference, without a step of Python per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cdxmill.stages.lines.merge_lines import SortedLists


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
    ours, theirs = SortedLists(lists, next(lists, [])), SortedLists(wanted, next(wanted, []))
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
