"""Names of archives in a prefix B-tree: with and without what is read ahead, they are those of their numbers."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.formats.tree.name_groups import GROUP, pack_names
from cdxmill.search import tree_names
from cdxmill.search.tree_names import NamesInTree
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError

START = 1000
NAMES = [f"{number:05d}/{number * 7919 % 9973}.warc.gz" for number in range(9 * GROUP + 5)]


def names_in_tree(ahead: bool) -> NamesInTree:
    """NAMES, behind START bytes of something else."""
    groups = pack_names([name.encode() for name in NAMES])
    data = b"?" * START + b"".join(groups) + b"?" * START
    header: Any = SimpleNamespace(
        last_block=0, offset=lambda _: START, names=[len(group) for group in groups], archives=len(NAMES)
    )

    def read_at(offset: int, size: int) -> bytes:
        assert offset >= START and offset + size <= len(data) - START
        return data[offset : offset + size]

    return NamesInTree(header, read_at, ahead)


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
