"""Split points from the blocks of an index: every line is counted in the shard of its block."""

from __future__ import annotations

import pytest

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.stages.lines.pick_splits import Mark, Marks, mark_blocks, pick_marks, pick_splits


def blocks(*shards: tuple[bytes, list[int]]) -> list[BlockRef]:
    """Blocks with these lengths; their keys are numbered over all shards."""
    found: list[BlockRef] = []
    for shard, lengths in shards:
        for length in lengths:
            found.append(BlockRef(b"%03d" % len(found), shard, 0, length))
    return found


def test_a_mark_has_the_lines_before_it() -> None:
    index = blocks((b"a", [10, 10, 5]), (b"b", [7]), (b"c", [10, 30, 40]))
    found = mark_blocks(index, {}, 100)
    before = [
        0,
        1,
        2,
        2.5,
        3.5,
        4.5,
        5.5,
    ]  # the last block of `a` has half the bytes of others, that of `c` more
    assert found == Marks(
        [Mark(*one) for one in zip(before, (one.key for one in index), strict=True)], 6.5, 7
    )
    known = mark_blocks(index, {b"a": 0.25, b"c": 0.5}, 100)
    assert known.total == 2.25 + 1 + 2.5
    assert [mark.before for mark in known.marks] == [0, 1, 2, 2.25, 3.25, 4.25, 5.25]
    assert mark_blocks([], {}, 100) == Marks([], 0, 0)


@pytest.mark.parametrize(("most", "step"), [(12, 1), (11, 2), (6, 2), (5, 4), (3, 4), (2, 8), (1, 16)])
def test_marks_are_at_equal_distances_if_there_are_too_many(most: int, step: int) -> None:
    index = blocks((b"a", [10] * 12))
    found = mark_blocks(index, {}, most)
    assert [mark.before for mark in found.marks] == list(range(0, 12, step))
    assert (found.total, found.blocks) == (12, 12)


def test_blocks_with_one_key_have_one_mark() -> None:
    index = [BlockRef(key, b"a", 0, 10) for key in (b"a", b"b", b"b", b"b", b"c")]
    found = mark_blocks(index, {}, 100)
    assert [(mark.before, mark.key) for mark in found.marks] == [(0, b"a"), (1, b"b"), (4, b"c")]
    assert (found.total, found.blocks) == (5, 5)
    assert pick_marks(found, 2) == [b"c"]
    assert pick_marks(found, 3) == pick_marks(found, 99) == [b"b", b"c"]
    assert pick_marks(found, 1) == []


@pytest.mark.parametrize(
    ("keys", "shards", "points"),
    [
        ([], 3, []),
        ([b"a"], 3, []),
        ([b"b", b"a"], 2, [b"b"]),
        ([b"a"] * 9 + [b"b"], 5, [b"b"]),
        ([b"a"] + [b"b"] * 9, 5, [b"b"]),
        ([b"a", b"b", b"c", b"d", b"e", b"f"], 3, [b"c", b"e"]),
        ([b"a", b"a", b"a", b"b", b"c", b"c"], 2, [b"b"]),
        ([b"a", b"b", b"b", b"b", b"b", b"c"], 2, [b"c"]),
        ([b"a", b"a", b"b", b"b", b"b", b"c"], 2, [b"b"]),
        ([b"a", b"b", b"b", b"b", b"c", b"c"], 2, [b"c"]),
        ([b"a"] * 8 + [b"b", b"c"], 3, [b"b", b"c"]),
        ([b"a"] * 8 + [b"b", b"c", b"d"], 3, [b"b", b"c"]),
        ([b"a", b"b"] + [b"c"] * 8, 3, [b"b", b"c"]),
        ([b"a"] * 9, 3, []),
    ],
)
def test_the_keys_nearest_to_equal_parts_are_picked(
    keys: list[bytes], shards: int, points: list[bytes]
) -> None:
    assert pick_splits(keys[::-1], shards) == points


@pytest.mark.parametrize(
    ("shards", "at"),
    [(1, []), (2, [4]), (3, [3, 5]), (4, [2, 4, 6]), (8, [1, 2, 3, 4, 5, 6, 7]), (99, [1, 2, 3, 4, 5, 6, 7])],
)
def test_blocks_of_one_size_are_divided_evenly(shards: int, at: list[int]) -> None:
    index = blocks((b"a", [10] * 8))
    assert pick_marks(mark_blocks(index, {}, 100), shards) == [index[one].key for one in at]


def test_each_shard_has_a_usual_size_of_its_own() -> None:
    for lengths, share in (([10, 5], 0.5), ([10, 10, 1], 0.1), ([10, 30, 5], 0.25), ([10], 1), ([10, 20], 1)):
        for before in ([], [(b"a", [1000, 10])], [(b"a", [3])]):
            first = mark_blocks(blocks(*before), {}, 100).total
            found = mark_blocks(blocks(*before, (b"b", lengths), (b"c", [9])), {}, 100)
            assert found.total == pytest.approx(first + len(lengths) - 1 + share + 1)
