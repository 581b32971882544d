"""Blocks of a shard that is made anew: which are copied as they are, and which have to be packed again."""

from __future__ import annotations

import pytest

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.stages.lines.drop_lines import Drop, LineRange
from cdxmill.stages.zipnum.change_shard import ChangeRule, Changes, ShardChange
from cdxmill.stages.zipnum.changed_blocks import Dropping, LinesToAdd, ShardBlocks

LINES = {b"a": [b"a 1", b"b 1"], b"c": [b"c 1", b"d 1"], b"e": [b"e 1", b"f 1"]}
BLOCKS = [BlockRef(key, b"s", 10 * number, 10) for number, key in enumerate(LINES)]


class Opened:
    """The lines of blocks, and which blocks were opened for them."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []

    def __call__(self, block: BlockRef) -> list[bytes]:
        self.keys.append(block.key)
        return list(LINES[block.key])


def made(change: ShardChange) -> list[bytes | list[bytes]]:
    """The keys of copied blocks, and the lines of new ones."""
    return [found.key if isinstance(found, BlockRef) else found for found in change]


def lines_of(blocks: list[bytes | list[bytes]]) -> list[bytes]:
    return [line for block in blocks for line in (LINES[block] if isinstance(block, bytes) else block)]


def test_blocks_that_may_not_be_copied_are_packed_again() -> None:
    """Such as those of another compressor."""
    opened = Opened()
    change = ShardChange([ShardBlocks(BLOCKS, opened, copies=False)], ChangeRule(2))
    assert made(change) == list(LINES.values())
    assert opened.keys == list(LINES)
    assert change.counts == Changes(added=6)
    source = ShardBlocks(BLOCKS, opened, copies=False)
    source.unpack()
    assert not source.is_whole


def test_blocks_are_copied_without_being_opened() -> None:
    opened = Opened()
    change = ShardChange([ShardBlocks(BLOCKS, opened)], ChangeRule(2))
    assert made(change) == list(LINES)
    assert (opened.keys, change.counts) == ([], Changes(copied=3))


@pytest.mark.parametrize(
    ("bounds", "copied"),
    [
        ((b"", None), [b"a", b"c", b"e"]),
        ((b"b", None), [b"c", b"e"]),
        ((b"c", b"e!"), [b"c"]),
        ((b"d", b"f"), []),
        ((b"x", None), []),
    ],
)
def test_only_lines_in_bounds_are_taken(bounds: tuple[bytes, bytes | None], copied: list[bytes]) -> None:
    opened = Opened()
    found = made(ShardChange([ShardBlocks(BLOCKS, opened, bounds=bounds)], ChangeRule(2)))
    low, high = bounds
    every = [line for lines in LINES.values() for line in lines]
    assert lines_of(found) == [line for line in every if low <= line and (high is None or line < high)]
    assert [block for block in found if isinstance(block, bytes)] == copied


def test_removed_lines_are_gone_and_added_ones_are_counted_once() -> None:
    opened, gone = Opened(), list[bytes]()
    drop = Dropping(Drop([LineRange(b"d", b"e")]), gone.extend)
    sources: list[ShardBlocks | LinesToAdd] = [
        ShardBlocks(BLOCKS, opened, drop),
        LinesToAdd([[b"a 1", b"a 2"]]),
    ]
    change = ShardChange(sources, ChangeRule(4))
    found = made(change)
    assert gone == [b"d 1"]
    assert (change.counts.added, change.counts.present, change.counts.removed) == (1, 1, 1)
    assert lines_of(found) == [b"a 1", b"a 2", b"b 1", b"c 1", b"e 1", b"f 1"]


@pytest.mark.parametrize(
    ("bounds", "copied", "opened"),
    [
        ((b"", None), [b"a", b"c", b"e"], []),
        ((b"a", None), [b"a", b"c", b"e"], []),
        ((b"a\0", None), [b"a", b"c", b"e"], [b"a"]),
        ((b"", b"e!"), [b"a", b"c"], [b"e"]),
        ((b"", b"e"), [b"a", b"c"], [b"c"]),
        ((b"", b"c!"), [b"a"], [b"c"]),
        ((b"", b"c"), [b"a"], [b"a"]),
        ((b"", b"z"), [b"a", b"c", b"e"], [b"e"]),
        ((b"c", b"e!"), [b"c"], [b"a", b"e"]),
    ],
)
def test_a_block_is_opened_if_not_all_of_its_lines_are_known_to_be_in_bounds(
    bounds: tuple[bytes, bytes | None], copied: list[bytes], opened: list[bytes]
) -> None:
    """The lines of the key of a block may begin in the one before."""
    source = Opened()
    found = made(ShardChange([ShardBlocks(BLOCKS, source, bounds=bounds)], ChangeRule(2)))
    assert [block for block in found if isinstance(block, bytes)] == copied
    assert source.keys == opened


@pytest.mark.parametrize(
    ("ranges", "opened", "gone"),
    [
        ([(b"d", b"e")], [b"c"], [b"d 1"]),
        ([(b"e", b"e!")], [b"c", b"e"], [b"e 1"]),
        ([(b"e!", b"f")], [b"e"], []),
        ([(b"0", b"0!")], [b"a"], []),
        ([(b"c", b"c!")], [b"a", b"c"], [b"c 1"]),
        ([(b"a", b"c")], [b"a"], [b"a 1", b"b 1"]),
        ([(b"a", b"a!"), (b"f", b"g")], [b"a", b"e"], [b"a 1", b"f 1"]),
        ([(b"z", b"zz")], [b"e"], []),
        ([], [], []),
    ],
)
def test_only_blocks_that_may_have_lines_to_remove_are_opened(
    ranges: list[tuple[bytes, bytes]], opened: list[bytes], gone: list[bytes]
) -> None:
    source, removed = Opened(), list[bytes]()
    drop = Dropping(Drop([LineRange(*one) for one in ranges]), removed.extend)
    change = ShardChange([ShardBlocks(BLOCKS, source, drop)], ChangeRule(2))
    found = lines_of(made(change))
    assert (source.keys, removed, change.counts.removed) == (opened, gone, len(gone))
    assert found == [line for lines in LINES.values() for line in lines if line not in gone]


@pytest.mark.parametrize(
    ("added", "counts", "opened"),
    [
        ([[b"0 1"]], (1, 0, 2), [b"a"]),
        ([[b"0 1", b"0 2"]], (2, 0, 3), []),
        ([[b"0 1"], [b"0 2"]], (2, 0, 3), []),
        ([[b"g 1"]], (1, 0, 2), [b"e"]),
        ([[b"a 1", b"c 1", b"f 1"]], (0, 3, 2), [b"a", b"c", b"e"]),
        ([[b"a 1", b"d 2"]], (1, 1, 2), [b"a", b"c"]),
        ([[b"b 2", b"b 3"]], (2, 0, 2), [b"a"]),
        ([], (0, 0, 3), []),
    ],
)
def test_only_blocks_between_whose_lines_others_come_are_opened(
    added: list[list[bytes]], counts: tuple[int, int, int], opened: list[bytes]
) -> None:
    source = Opened()
    change = ShardChange([ShardBlocks(BLOCKS, source), LinesToAdd(added)], ChangeRule(4))
    found = lines_of(made(change))
    every = {line for lines in LINES.values() for line in lines}
    assert found == sorted(every.union(*added))
    assert (change.counts.added, change.counts.present, change.counts.copied) == counts
    assert source.keys == opened


def test_lines_removed_from_other_clusters_count_as_excluded() -> None:
    """They were never in this one."""
    gone = list[bytes]()
    other = {b"g": [b"g 1", b"h 1"], b"i": [b"i 1"]}

    def old() -> ShardBlocks:
        return ShardBlocks(BLOCKS, Opened(), Dropping(Drop([LineRange(b"d", b"e")]), gone.extend))

    def new(copies: bool) -> ShardBlocks:
        blocks = [BlockRef(key, b"t", 10 * number, 10) for number, key in enumerate(other)]
        removing = Dropping(Drop([LineRange(b"h", b"i")]), gone.extend)
        count_of = (lambda block: len(other[block.key])) if copies else None
        return ShardBlocks(
            blocks, lambda block: list(other[block.key]), removing, count_of=count_of, copies=copies
        )

    for copies in (True, False):
        gone.clear()
        change = ShardChange([old(), new(copies)], ChangeRule(2))
        found = [line for block in made(change) for line in (block if isinstance(block, list) else [block])]
        assert gone == [b"d 1", b"h 1"]
        assert found == [b"a", b"c 1", b"e", b"g 1", b"i" if copies else b"i 1"]
        assert change.counts == Changes(added=2, removed=1, excluded=1, copied=3 if copies else 2)


def test_a_line_that_is_the_key_of_a_block_is_merged_with_the_lines_of_the_block() -> None:
    """Without a word behind it, it is neither below the block nor above its first line."""
    change = ShardChange([LinesToAdd([[b"c"]]), ShardBlocks(BLOCKS, Opened())], ChangeRule(8))
    assert lines_of(made(change)) == [b"a 1", b"b 1", b"c", b"c 1", b"d 1", b"e 1", b"f 1"]
    assert change.counts.added == 1
