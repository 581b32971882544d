"""A list of lines -> consecutive groups of similar size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate


def group_lines(lines: list[bytes], size: int) -> Iterator[list[bytes]]:
    """`lines` in groups of at most `size` bytes, without line ends; a longer line is a group of its own.

    >>> list(group_lines([b"a", b"bb", b"c", b"dddd", b"e"], 3))
    [[b'a', b'bb'], [b'c'], [b'dddd'], [b'e']]
    """
    ends = list(accumulate(map(len, lines)))
    start = before = 0
    while start < len(lines):
        stop = max(bisect_right(ends, before + size, start), start + 1)
        yield lines[start:stop]
        start, before = stop, ends[stop - 1]
