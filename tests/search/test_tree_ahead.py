"""What is read ahead of a prefix B-tree on a server: each block once, neighbors in one read, and nothing of a corrupt index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.formats.tree.prefix_btree import Item
from cdxmill.inputs import joined_ranges
from cdxmill.search import tree_ahead
from cdxmill.search.many import BATCH
from cdxmill.search.tree_ahead import batch_of, searched_tree
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError, TreeReader, read_header

from ..stages.trees_in_memory import BY_HAND, Counted, numbered, tree_of

if TYPE_CHECKING:
    from cdxmill.search.prefix_index import OpenTree

SIZE = 256
ITEMS = numbered([b"com,host%03d)/page/%04d" % (number // 20, number) for number in range(1500)])
DATA = tree_of(ITEMS, SIZE, layout="n:u16")
HEAD = 400
Ranges = tuple[KeyRange, ...]


class Tree:
    """An open tree of which the header and the root were read."""

    def __init__(self, data: bytes = DATA, head: int = HEAD, is_remote: bool = True) -> None:
        self.reads = Counted(data)
        header = read_header(data[:head], self.reads)
        self.reader = TreeReader(self.reads, header, 2, None if is_remote else len(data), data[:head])
        self.index = cast("OpenTree", SimpleNamespace(is_remote=is_remote, tree=self.reader))
        self.searched: Any = searched_tree(self.index, lambda url: [one(url.encode())], self.answer)
        self.reads.reads.clear()

    def answer(self, ranges: Iterable[KeyRange]) -> Iterator[list[Any]]:
        for low, high, _ in ranges:
            yield from self.reader.scan(low, high)

    def all(self, asked: list[Ranges]) -> list[list[Item]]:
        answers = self.searched.in_key_order(asked)
        return [[item for items in lists for item in items] for lists in answers]

    def numbers(self) -> list[tuple[int, int]]:
        """The blocks that were read: the first one, and how many."""
        start = self.reader.header.offset(0)
        return [((offset - start) // SIZE, size // SIZE) for offset, size in self.reads.reads]


def one(key: bytes) -> KeyRange:
    return KeyRange(key, key + b"\0", True)


def asked_for(places: Iterable[int]) -> list[Ranges]:
    return [(one(ITEMS[place][0]),) for place in places]


def test_the_tree_has_three_levels() -> None:
    header = Tree().reader.header
    assert header.index_blocks > 3
    assert header.offset(1) < HEAD < header.offset(header.index_blocks)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@pytest.mark.parametrize("places", [[7], [0, 1], [0, 700, 1499], range(0, 1500, 31), [5, 5, 5, 900]])
def test_answers_are_those_without_reading_ahead(
    places: Iterable[int], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_ahead, "_AT_ONCE", at_once)
    tree = Tree()
    assert tree.all(asked_for(places)) == [[ITEMS[place]] for place in places]
    assert tree.reader.read_at is tree.reads
    assert tree.searched.keys("a") == (one(b"a"),)


FIRST = [(1, 1), (3, 1)]
"""The index blocks of the first answer, which begins before anything is planned. The root was read before."""


@pytest.mark.parametrize(
    ("places", "gap", "at_once", "index", "data"),
    [
        ([0, 1], 0, 9, [], [(17, 1)]),
        ([5, 5, 5], 0, 9, [], [(17, 1)]),
        ([0, 10], 0, 9, [], [(17, 2)]),
        ([0, 31], 2 * SIZE - 1, 9, [], [(17, 1), (20, 1)]),
        ([0, 31], 2 * SIZE, 9, [], [(17, 4)]),
        ([0, 700, 1499], 0, 9, [(2, 1), (9, 1), (16, 1)], [(17, 1), (87, 1), (166, 1)]),
        ([0, 700, 1499], 1 << 18, 9, [(2, 1), (9, 8)], [(17, 150)]),
        ([0, 350, 700, 1499], 1 << 18, 4, [(2, 1), (6, 11)], [(17, 150)]),
        ([0, 350, 700, 1499], 1 << 18, 3, [(2, 1), (6, 4), (16, 1)], [(17, 150)]),
        ([0, 350, 700, 1499], 1 << 18, 2, [(2, 1), (6, 1), (9, 8)], [(17, 150)]),
        ([0, 350, 700, 1499], 1 << 18, 1, [(2, 1), (6, 1), (9, 1), (16, 1)], [(17, 150)]),
    ],
)
def test_blocks_that_are_near_each_other_are_one_read(
    places: list[int],
    gap: int,
    at_once: int,
    index: list[tuple[int, int]],
    data: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree_ahead, "_GAP", gap)
    monkeypatch.setattr(tree_ahead, "_AT_ONCE", at_once)
    tree = Tree()
    assert tree.all(asked_for(places)) == [[ITEMS[place]] for place in places]
    assert sorted(tree.numbers()) == sorted([*FIRST, *index, *data])


def test_reads_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index blocks that are next to each other, but in reads of their own, are taken from the right one."""
    monkeypatch.setattr(joined_ranges, "JOINED", SIZE)
    tree, places = Tree(), range(0, 1500, 31)
    assert tree.all(asked_for(places)) == [[ITEMS[place]] for place in places]
    index = [(number, size) for number, size in tree.numbers() if number < 17]
    assert sorted(index) == [(number, 1) for number in range(1, 17)]


@pytest.mark.parametrize(
    ("asked", "is_remote", "data"),
    [
        ([(one(ITEMS[0][0]), one(ITEMS[10][0]))], True, [(17, 1), (18, 1)]),
        ([(one(ITEMS[0][0]),), (one(ITEMS[10][0]),)], True, [(17, 2)]),
        ([(one(ITEMS[0][0]), one(ITEMS[10][0])), (one(ITEMS[20][0]),)], True, [(17, 3)]),
        ([(one(ITEMS[0][0]),), (one(ITEMS[10][0]),)], False, [(17, 1), (18, 1)]),
        ([(KeyRange(ITEMS[0][0], ITEMS[12][0]),), (one(ITEMS[1][0]),)], True, [(17, 2)]),
        ([(one(ITEMS[0][0]), one(ITEMS[710][0])), (one(ITEMS[700][0]),)], True, [(17, 1), (87, 2)]),
    ],
)
def test_only_many_urls_on_a_server_are_read_ahead(
    asked: list[Ranges], is_remote: bool, data: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_ahead, "_GAP", 0)
    tree = Tree(is_remote=is_remote)
    for found, ranges in zip(tree.all(asked), asked, strict=True):
        assert found == [item for low, high, _ in ranges for item in ITEMS if low <= item[0] < high]
    assert sorted(one for one in tree.numbers() if one[0] >= 17 and one[1]) == data


def test_after_an_error_or_an_end_blocks_are_read_directly() -> None:
    tree = Tree()
    answers = tree.searched.in_key_order(asked_for([0, 700]))
    assert list(next(answers)) == [[ITEMS[0]]]
    assert tree.reader.read_at is not tree.reads
    answers.close()
    assert tree.reader.read_at is tree.reads


def looping(child: int) -> bytes:
    """A tree whose index block 1 leads to this block in place of data."""
    start = BY_HAND.index(b"\x03\0\0\0b\0")
    return BY_HAND[:start] + b"%c\0\0\0b\0%c" % (child, child + 1) + BY_HAND[start + 7 :]


@pytest.mark.parametrize("child", [0, 1])
def test_an_index_that_leads_back_is_damage_of_the_urls_that_meet_it(child: int) -> None:
    keys = (b"a", b"c")
    assert Tree(BY_HAND, 30).all([(one(key),) for key in keys]) == [[(b"a", b"\1\0")], [(b"c", b"\5\0")]]
    tree = Tree(looping(child), 30)
    with pytest.raises(DamagedTreeError, match="its children are no blocks below it"):
        tree.all([(one(key),) for key in keys])
    assert tree.reader.read_at is tree.reads
    answers = tree.searched.in_key_order([(one(b"d"),), (one(b"e"),), (one(b"a"),)])
    assert list(next(answers)) == list(next(answers)) == []
    with pytest.raises(DamagedTreeError):
        list(next(answers))


@pytest.mark.parametrize("at_once", [1, 9])
def test_a_plan_ends_at_an_index_that_leads_to_itself(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_ahead, "_AT_ONCE", at_once)
    tree = Tree(looping(1), 30)
    answers = tree.searched.in_key_order([(one(b"d"),), (one(b"a"),), (one(b"a"),)])
    assert list(next(answers)) == []
    with pytest.raises(DamagedTreeError):
        list(next(answers))


@pytest.mark.parametrize(
    ("is_remote", "limit", "wanted"),
    [
        (False, None, 1),
        (False, 7, 1),
        (True, None, BATCH),
        (True, 7, 7),
        (True, BATCH, BATCH),
        (True, BATCH + 1, BATCH),
    ],
)
def test_no_more_urls_are_looked_up_together_than_lines_are_wanted(
    is_remote: bool, limit: int | None, wanted: int
) -> None:
    assert batch_of(Tree(is_remote=is_remote).index, limit) == wanted
