"""Names of archives in a prefix B-tree: with and without what is read ahead, they are those of their numbers."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from cdxmill.formats.tree.name_groups import GROUP, pack_names
from cdxmill.formats.tree.tree_header import Header
from cdxmill.search import tree_names
from cdxmill.search.tree_names import NamesInTree
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError

NAMES = [f"{number:05d}/{number * 7919 % 9973:04d}.warc.gz" for number in range(9 * GROUP + 5)]


GROUPS = pack_names([name.encode() for name in NAMES])
HEADER = Header(100, 3, 5, archives=len(NAMES), names=[len(group) for group in GROUPS])
START = HEADER.start + (3 + 5) * 100
OFFSETS = list(accumulate(map(len, GROUPS), initial=START))
END = OFFSETS[-1]
DATA = b"?" * START + b"".join(GROUPS) + b"?" * START


class Reads:
    """`read_at` of bytes, which never asks for others than names."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.seen: list[tuple[int, int]] = []

    def __call__(self, offset: int, size: int) -> bytes:
        assert START <= offset <= offset + size <= END
        self.seen.append((offset, offset + size))
        return self.data[offset : offset + size]


def names_in_tree(ahead: bool, reads: Reads | None = None) -> NamesInTree:
    """NAMES, behind START bytes of something else."""
    return NamesInTree(HEADER, reads or Reads(), ahead)


@pytest.mark.parametrize("number", [len(NAMES), 10 * GROUP, 1 << 31])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_number_without_a_name_is_damage(number: int, ahead: bool) -> None:
    names = names_in_tree(ahead)
    with pytest.raises(DamagedTreeError, match=f"archive {number} has no name: the file has {len(NAMES)}"):
        names.of([0, number, 7])


@pytest.mark.parametrize("most", [1, 300, 1 << 20])
@pytest.mark.parametrize("ahead", [False, True])
def test_names_are_those_of_their_numbers(most: int, ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_names, "_MOST_AHEAD", most)
    names, rng = names_in_tree(ahead), random.Random(most)
    for _ in range(20):
        names._groups.clear()
        numbers = rng.sample(range(len(NAMES)), 5)
        assert names.of(numbers) == [NAMES[number] for number in numbers]


def names_of(*groups: int) -> list[int]:
    """A number of a name in each of these groups."""
    return [group * GROUP + 2 for group in groups]


TWO = OFFSETS[2] - START
"""The bytes of the first two groups."""


@pytest.mark.parametrize(
    ("ahead", "most", "asked", "wanted"),
    [
        (False, END, [[0], [5]], [(START, OFFSETS[1]), (OFFSETS[5], OFFSETS[6])]),
        (True, END, [[0], [5]], [(START, OFFSETS[1]), (START, END)]),
        (True, END, [[9]], [(OFFSETS[9], END)]),
        (False, END, [[1, 3]], [(OFFSETS[1], OFFSETS[4])]),
        (False, TWO, [[0, 1]], [(START, OFFSETS[2])]),
        (False, TWO - 1, [[0, 1]], [(START, OFFSETS[1]), (OFFSETS[1], OFFSETS[2])]),
        (True, TWO, [[0], [1]], [(START, OFFSETS[1]), (START, OFFSETS[2])]),
        (True, TWO, [[9], [2]], [(OFFSETS[9], END), (OFFSETS[2], max(OFFSETS[3], OFFSETS[2] + TWO))]),
        (True, 1, [[0], [5]], [(START, OFFSETS[1]), (OFFSETS[5], OFFSETS[6])]),
        (False, END, [[0], [0], [0, 1]], [(START, OFFSETS[1]), (OFFSETS[1], OFFSETS[2])]),
        (True, 1 << 12, [[0], [5]], [(START, OFFSETS[1]), (START + (OFFSETS[5] - START) // 4096 * 4096, OFFSETS[6])]),
    ],
)  # fmt: skip
def test_what_is_read_for_names(
    ahead: bool,
    most: int,
    asked: list[list[int]],
    wanted: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each group once, those of one answer together, and from the second read on what is near it."""
    monkeypatch.setattr(tree_names, "_MOST_AHEAD", most)
    reads = Reads()
    names = names_in_tree(ahead, reads)
    assert names.place == range(START, END)
    for groups in asked:
        assert names.of(names_of(*groups)) == [NAMES[number] for number in names_of(*groups)]
    assert reads.seen == wanted


@pytest.mark.parametrize(("room", "again"), [(0, [2, 0]), (-1, [2, 1, 0]), (-1 << 30, [2, 1, 0])])
def test_names_are_kept_as_long_as_there_is_room(
    room: int, again: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that is larger than the memory for all groups is no error."""
    size = [sum(map(len, NAMES[start : start + GROUP])) + 60 * GROUP for start in (0, GROUP)]
    monkeypatch.setattr(tree_names, "_KEPT", max(1, sum(size) + room))
    reads = Reads()
    names = names_in_tree(False, reads)
    names.of(names_of(0))
    names.of(names_of(1))
    reads.seen.clear()
    for group in (2, 1, 0):
        assert names.of(names_of(group)) == [NAMES[number] for number in names_of(group)]
    assert [OFFSETS.index(start) for start, _ in reads.seen] == again


def test_damage_has_its_offset() -> None:
    cut = names_in_tree(False, Reads(DATA[: OFFSETS[4] - 1]))
    assert cut.of(names_of(2)) == [NAMES[2 * GROUP + 2]]
    with pytest.raises(DamagedTreeError, match="the file is truncated in or before the names of") as found:
        cut.of(names_of(2, 3))
    assert found.value.offset == OFFSETS[3]
    changed = bytearray(DATA)
    changed[OFFSETS[4] - 1] ^= 1
    with pytest.raises(DamagedTreeError, match="the names of archives are corrupt") as found:
        names_in_tree(False, Reads(bytes(changed))).of(names_of(1, 3))
    assert found.value.offset == OFFSETS[3]
    with pytest.raises(DamagedTreeError) as found:
        names_in_tree(False).of([len(NAMES)])
    assert found.value.offset == START


def test_a_file_of_2012_has_no_names() -> None:
    names = NamesInTree(Header(512, 3), Reads(), ahead=True)
    assert names.place == range(0)
    with pytest.raises(DamagedTreeError, match="archive 0 has no name: the file has 0 of them") as found:
        names.of([0])
    assert found.value.offset == 0
