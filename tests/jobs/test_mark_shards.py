"""stages/lines/mark_shards.py: after a shuffle by the first field alone, each shard has its lines."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines.mark_shards import mark_shards, unmark_shards

lines = st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"\t"))


@given(st.lists(st.lists(lines, max_size=12), max_size=4), st.sets(lines, max_size=12), st.integers(1, 9))
def test_after_a_stable_sort_by_mark_every_shard_has_exactly_its_lines(
    mappers: list[list[bytes]], split: set[bytes], piece: int
) -> None:
    points = sorted(split)
    shuffled = [
        line for held in mappers for line in b"".join(mark_shards([sorted(held)], points)).split(b"\n")[:-1]
    ]
    shuffled.sort(key=lambda line: line.split(b"\t")[0])
    pieces = [shuffled[start : start + piece] for start in range(0, len(shuffled), piece)]
    found: dict[int, list[bytes]] = {}
    for number, some in unmark_shards(pieces):
        assert number >= max(found, default=0), "shards come one after the other"
        found.setdefault(number, []).extend(some)
    if mappers:
        assert sorted(found) == list(range(len(points) + 1))
    for number, some in found.items():
        expected = sorted(line for held in mappers for line in held if bisect_right(points, line) == number)
        assert sorted(some) == [*[b""] * len(mappers), *expected]


def test_marks_of_six_digits_do_not_disturb_those_of_five() -> None:
    marked = sorted(
        [b"100000\ta", b"10000\tb", b"10000\t", b"99999\tc"], key=lambda line: line.split(b"\t")[0]
    )
    assert list(unmark_shards([marked])) == [(10000, [b"b", b""]), (100000, [b"a"]), (99999, [b"c"])]
