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
