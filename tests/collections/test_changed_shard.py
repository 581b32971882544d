"""A shard that is changed, many times at random: its lines are those of a set, its blocks those of its part.

CDXMILL_SHARDS sets the number of shards.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import BlockRef, key_of, parse_index_line
from cdxmill.stages.lines.drop_lines import Drop, LineRange, joined_ranges
from cdxmill.stages.lines.line_lists import cut_blocks
from cdxmill.stages.zipnum.change_shard import (
    ChangedShard,
    ChangeRule,
    ShardChange,
    ShardIO,
    write_changed,
)
from cdxmill.stages.zipnum.changed_blocks import Dropping, LinesToAdd, ShardBlocks
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.stages.zipnum.write_shard import write_shard

SHARDS = int(os.environ.get("CDXMILL_SHARDS") or 1500)
COMPRESSOR = Compressor("zlib", 1, 4)
STEPS = 3


class Shard(NamedTuple):
    """A shard in memory, with the lines that it should have."""

    entry: ShardEntry
    data: bytes
    part: bytes
    lines: list[bytes]

    def blocks(self) -> list[BlockRef]:
        return list(map(parse_index_line, self.part.split(b"\n")[:-1]))

    def lines_of(self, block: BlockRef) -> list[bytes]:
        return gzip.decompress(self.read(block.offset, block.length)).split(b"\n")[:-1]

    def read_of(self, _: bytes, offset: int, size: int) -> bytes:
        return self.read(offset, size)

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


class Asked(NamedTuple):
    """What is to be changed."""

    added: list[bytes]
    ranges: list[LineRange]
    is_meant: Callable[[bytes], bool] | None
    rule: ChangeRule
    together: int

    def removes(self, line: bytes) -> bool:
        in_range = any(one.low <= line < one.high for one in self.ranges)
        return in_range and (self.is_meant is None or self.is_meant(line))


def build(lines: list[bytes], block_lines: int) -> Shard:
    shard, part = io.BytesIO(), io.BytesIO()
    blocks = cut_blocks([lines] if lines else [], block_lines)
    entry = write_shard(blocks, "cdx-00000.gz", shard, part, COMPRESSOR)
    return Shard(entry, shard.getvalue(), part.getvalue(), lines)


def draw_lines(rng: Random, count: int) -> list[bytes]:
    """Sorted lines. Many have the same key, which may also begin another one."""
    found = set()
    for _ in range(count):
        key, time = rng.randrange(rng.choice([3, 9, 30])), rng.choice([1, 1, 2, 3])
        found.add(b"k%d %d {%d}" % (key, time, rng.randrange(rng.choice([4, 40]))))
    return sorted(found)


def draw(rng: Random, lines: list[bytes], block_lines: int) -> Asked:
    added = draw_lines(rng, rng.choice([0, 0, 1, 3, 30, 200]))
    if rng.random() < 0.3:
        added = sorted(rng.sample(lines, min(len(lines), 3)))
    keys = sorted(b"k%d" % rng.randrange(30) for _ in range(rng.choice([0, 0, 1, 3])))
    ranges = sorted(LineRange(key + b" ", key + rng.choice([b"!", b" 2", b"~"])) for key in keys)
    is_meant = (lambda line: line.endswith(b"1}")) if rng.random() < 0.3 else None
    recut = rng.random() < 0.3
    if recut and rng.random() < 0.5:
        added, ranges = [], []
    together = rng.choice([1, 2, 1000])
    return Asked(added, list(joined_ranges(ranges)), is_meant, ChangeRule(block_lines, recut), together)


def changed(old: Shard, asked: Asked, name: str) -> tuple[ChangedShard, Shard, list[bytes]]:
    """What came of it, the new shard, and the lines that were removed."""
    shard, part = io.BytesIO(), io.BytesIO()
    gone: list[bytes] = []
    lists = [asked.added[at : at + asked.together] for at in range(0, len(asked.added), asked.together)]
    removing = Dropping(Drop(asked.ranges, asked.is_meant), gone.extend)
    change = ShardChange([ShardBlocks(old.blocks(), old.lines_of, removing), LinesToAdd(lists)], asked.rule)
    done = write_changed(change, old.entry, name, ShardIO(old.read_of, shard, part), COMPRESSOR)
    wanted = sorted({line for line in old.lines if not asked.removes(line)} | {*asked.added})
    return done, Shard(done.entry or old.entry, shard.getvalue(), part.getvalue(), wanted), gone


def check_files(shard: Shard, block_lines: int) -> None:
    """The blocks follow each other, and are as long as they may be; the entry and the part say what is there."""
    blocks = shard.blocks()
    texts = list(map(shard.lines_of, blocks))
    assert [line for lines in texts for line in lines] == shard.lines
    assert [block.key for block in blocks] == [key_of(lines[0]) for lines in texts]
    ends = [block.offset + block.length for block in blocks]
    assert [block.offset for block in blocks] == [0, *ends][: len(blocks)]
    assert gzip.decompress(shard.data) == b"".join(line + b"\n" for line in shard.lines)
    assert max(map(len, texts), default=0) <= max(1, block_lines * 3 // 2)
    entry = shard.entry
    assert (entry.lines, entry.blocks, entry.bytes) == (len(shard.lines), len(blocks), len(shard.data))


@pytest.mark.parametrize("part", range(3))
def test_the_lines_of_a_changed_shard_are_those_of_a_set(part: int) -> None:
    for seed in range(part, SHARDS, 3):
        rng = Random(seed)
        block_lines = rng.choice([1, 2, 3, 5, 8])
        shard = build(draw_lines(rng, rng.choice([0, 1, 5, 30, 100])), block_lines)
        for step in range(1, STEPS + 1):
            asked = draw(rng, shard.lines, block_lines)
            done, new, gone = changed(shard, asked, f"cdx-00000-{step}.gz")
            assert gone == list(filter(asked.removes, shard.lines)), seed
            assert done.counts.removed == len(gone), seed
            assert done.counts.added + done.counts.present == len(asked.added), seed
            if done.entry is None:
                assert new.lines == shard.lines, seed
                assert not asked.rule.recut or build(shard.lines, block_lines).data == shard.data, seed
                continue
            assert new.lines != shard.lines or asked.rule.recut or {*gone} & {*asked.added}, seed
            check_files(new, block_lines)
            assert not asked.rule.recut or new.data == build(new.lines, block_lines).data, seed
            shard = new


def read_ranges(old: Shard, added: Sequence[bytes]) -> list[BlockRef]:
    """The blocks whose lines are read to add lines."""
    read: list[BlockRef] = []

    def lines_of(block: BlockRef) -> list[bytes]:
        read.append(block)
        return old.lines_of(block)

    change = ShardChange([ShardBlocks(old.blocks(), lines_of), LinesToAdd([[*added]])], ChangeRule(2))
    write_changed(change, old.entry, "x", ShardIO(old.read_of, io.BytesIO(), io.BytesIO()), COMPRESSOR)
    return read


def test_only_blocks_that_change_are_decompressed() -> None:
    old = build([b"k%02d 1 {}" % number for number in range(40)], 2)
    assert read_ranges(old, [b"k07 2 {}"]) == [old.blocks()[3]]
    assert read_ranges(old, [b"k99 2 {}"]) == [old.blocks()[19]]
    assert len(read_ranges(old, [b"k08 1 {more}"])) == 2, (
        "a line of the first key of a block may be before it"
    )


@pytest.mark.parametrize(
    ("count", "sizes", "copied"),
    [
        (1, [11, 10], 1),
        (4, [14, 10], 1),
        (5, [5, 10, 10], 2),
        (14, [14, 10, 10], 2),
        (15, [8, 7, 10, 10], 2),
        (24, [12, 12, 10, 10], 2),
        (25, [9, 9, 7, 10, 10], 2),
        (29, [10, 10, 9, 10, 10], 2),
        (30, [10, 10, 10, 10, 10], 2),
        (36, [10, 9, 9, 8, 10, 10], 2),
    ],
)
def test_few_lines_are_merged_with_the_next_block(count: int, sizes: list[int], copied: int) -> None:
    old = build([b"%b%02d 1 {}" % (key, number) for key in (b"c", b"d") for number in range(10)], 10)
    added = [b"b%02d 1 {}" % number for number in range(count)]
    done, new, _ = changed(old, Asked(added, [], None, ChangeRule(10), 1000), "x")
    assert [len(new.lines_of(block)) for block in new.blocks()] == sizes
    assert done.counts.copied == copied
    check_files(new, 10)


def test_a_shard_that_ends_before_its_blocks_is_reported() -> None:
    old = build([b"k%02d 1 {}" % number for number in range(40)], 2)
    short = old._replace(data=old.data[:-1])
    with pytest.raises(DamagedCluster, match="ends before its blocks"):
        changed(short, Asked([b"k00 2 {}"], [], None, ChangeRule(2), 1), "x")


def merged(shards: Sequence[Shard], block_lines: int) -> tuple[ChangedShard, Shard]:
    """What comes of shards that are merged: each has its number in front of the name."""

    def numbered(number: int, shard: Shard) -> ShardBlocks:
        blocks = [block._replace(shard=b"%d" % number) for block in shard.blocks()]
        return ShardBlocks(blocks, shard.lines_of, count_of=lambda block: len(shard.lines_of(block)))

    def read(name: bytes, offset: int, size: int) -> bytes:
        return shards[int(name)].read(offset, size)

    data, part = io.BytesIO(), io.BytesIO()
    change = ShardChange([numbered(*one) for one in enumerate(shards)], ChangeRule(block_lines))
    done = write_changed(change, None, "cdx-00000-1.gz", ShardIO(read, data, part), COMPRESSOR)
    assert done.entry is not None
    lines = sorted({line for shard in shards for line in shard.lines})
    return done, Shard(done.entry, data.getvalue(), part.getvalue(), lines)


def test_shards_of_several_clusters_are_merged() -> None:
    for seed in range(SHARDS // 3):
        rng = Random(seed)
        block_lines = rng.choice([1, 2, 3, 5, 8])
        shards = [
            build(draw_lines(rng, rng.choice([0, 1, 5, 30, 100])), block_lines)
            for _ in range(rng.choice([1, 2, 3]))
        ]
        done, new = merged(shards, block_lines)
        given = sum(len(shard.lines) for shard in shards)
        assert (done.counts.added, done.counts.present) == (len(new.lines), given - len(new.lines)), seed
        if new.lines:
            check_files(new, block_lines)


def test_blocks_that_do_not_overlap_are_copied_when_shards_are_merged() -> None:
    lines = [b"k%02d 1 {}" % number for number in range(40)]
    runs = lines[:10] + lines[20:30], lines[10:20] + lines[30:]
    done, new = merged([build(some, 5) for some in runs], 5)
    assert (done.counts.copied, done.counts.written) == (8, 0)
    assert new.data == build(lines, 5).data
    done, _ = merged([build(lines, 5), build(lines, 5)], 5)
    assert (done.counts.copied, done.counts.written, done.counts.present) == (8, 0, 40)
    done, _ = merged([build(lines, 5), build([b"k07 2 {}"], 5)], 5)
    assert (done.counts.copied, done.counts.written) == (7, 1)
