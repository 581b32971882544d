"""Names of archives in a prefix B-tree: with and without what is read ahead, they are those of their numbers."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.formats.tree.name_groups import GROUP, pack_names
from cdxmill.search import tree_names
from cdxmill.search.tree_names import NamesInTree

START = 1000
NAMES = [f"{number:05d}/{number * 7919 % 9973}.warc.gz" for number in range(9 * GROUP + 5)]


@pytest.mark.parametrize("most", [1, 300, 1 << 20])
@pytest.mark.parametrize("ahead", [False, True])
def test_names_are_those_of_their_numbers(most: int, ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_names, "_MOST_AHEAD", most)
    groups = pack_names([name.encode() for name in NAMES])
    data = b"?" * START + b"".join(groups) + b"?" * START
    header: Any = SimpleNamespace(
        last_block=0, offset=lambda _: START, names=[len(group) for group in groups], archives=len(NAMES)
    )

    def read_at(offset: int, size: int) -> bytes:
        assert offset >= START and offset + size <= len(data) - START
        return data[offset : offset + size]

    names, rng = NamesInTree(header, read_at, ahead), random.Random(most)
    for _ in range(20):
        names._groups.clear()
        numbers = rng.sample(range(len(NAMES)), 5)
        assert names.of(numbers) == [NAMES[number] for number in numbers]
