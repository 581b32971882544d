"""Lines in ranges are removed, however the lines come in lists, and differences between two sets of lines are all counted."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines.drop_lines import Drop, LineRange, Split, joined_ranges, outside
from cdxmill.stages.lines.merge_lines import Difference, compare_lines

KEYS = st.binary(min_size=1, max_size=2).map(
    lambda key: key.translate(bytes(97 + byte % 5 for byte in range(256)))
)
LINES = st.lists(KEYS, unique=True, max_size=20).map(sorted)
RANGES = st.lists(st.tuples(KEYS, KEYS).map(sorted), max_size=4).map(
    lambda found: list(joined_ranges(LineRange(low, high) for low, high in sorted(map(tuple, found))))
)


def in_lists(lines: list[bytes], size: int) -> list[list[bytes]]:
    return [
        [line for _, line in group] for _, group in groupby(enumerate(lines), lambda pair: pair[0] // size)
    ]


def is_in(line: bytes, ranges: list[LineRange]) -> bool:
    return any(one.low <= line < one.high for one in ranges)


@given(LINES, RANGES, st.integers(1, 6), st.booleans())
def test_the_lines_in_ranges_are_removed_if_they_are_meant(
    lines: list[bytes], ranges: list[LineRange], size: int, all_meant: bool
) -> None:
    drop = Drop(ranges, None if all_meant else lambda line: line.endswith(b"a"))
    parts = [drop.split(some) for some in in_lists(lines, size)]
    gone = [line for line in lines if is_in(line, ranges) and (all_meant or line.endswith(b"a"))]
    assert [line for part in parts for line in part.gone] == gone
    assert [sorted(part.kept + part.gone) for part in parts] == in_lists(lines, size)
    kept = (part.kept for part in parts)
    assert all(some == sorted(some) for some in kept)
    assert outside(lines[::-1], ranges) == [line for line in lines[::-1] if not is_in(line, ranges)]


@given(RANGES, LINES)
def test_a_range_reaches_between_two_keys_if_it_may_have_lines_there(
    ranges: list[LineRange], keys: list[bytes]
) -> None:
    drop = Drop(ranges)
    for low, high in pairwise([*keys, None]):
        assert low is not None
        wanted = any(one.high > low and (high is None or one.low < high) for one in ranges)
        assert drop.reaches(low, high) == wanted


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ([], []),
        ([(b"a", b"b"), (b"b", b"c")], [(b"a", b"c")]),
        ([(b"a", b"b"), (b"b\0", b"c")], [(b"a", b"b"), (b"b\0", b"c")]),
        ([(b"a", b"d"), (b"b", b"c"), (b"d", b"e")], [(b"a", b"e")]),
    ],
)
def test_ranges_that_touch_become_one(
    given: list[tuple[bytes, bytes]], joined: list[tuple[bytes, bytes]]
) -> None:
    assert list(joined_ranges(LineRange(*one) for one in given)) == joined


def test_no_lines_are_divided_into_none() -> None:
    assert Drop([LineRange(b"a", b"b")]).split([]) == Split([], [])
    assert Drop([]).split([b"a"]) == Split([b"a"], [])


@given(LINES, LINES, st.integers(1, 6), st.integers(1, 6))
def test_a_difference_counts_all_lines_of_one_side_and_names_the_first(
    lines: list[bytes], wanted: list[bytes], size: int, other: int
) -> None:
    found = compare_lines(iter(in_lists(lines, size)), iter(in_lists(wanted, other)))
    missing, extra = sorted({*wanted} - {*lines}), sorted({*lines} - {*wanted})
    assert found == (len(missing), (missing or [b""])[0], len(extra), (extra or [b""])[0])


def test_a_sum_of_differences_has_the_first_line_of_the_first_one() -> None:
    none, first, second = Difference(), Difference(1, b"b", 2, b"c"), Difference(3, b"x", 4, b"y")
    assert first + second == Difference(4, b"b", 6, b"c")
    assert none + second == second == second + none
