"""A shard, lines to add and lines to remove -> the blocks of the changed shard.

old blocks   [a....d] [e....h] [i....m] [n....z]
added                   f g                          only e..h is decompressed
new blocks   [a....d] [e.fg.h] [i....m] [n....z]     the others are copied as compressed bytes

A block holds the lines from its key to the key of the next block, but lines of that key may stand in both. For a line to
add that has the key of a block, the first line of this block decides.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import BlockRef, format_part_line, key_of
from cdxmill.stages.lines.drop_lines import Drop
from cdxmill.stages.lines.line_lists import distinct, text_of
from cdxmill.stages.lines.merge_lines import SortedLists
from cdxmill.stages.zipnum.find_lines import joined
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

LinesOf = Callable[[BlockRef], list[bytes]]
"""The lines of a block."""


class ChangeRule(NamedTuple):
    """How blocks are cut: `block_lines` lines each. With `recut`, as in a new cluster; else unchanged ones stay."""

    block_lines: int
    recut: bool = False


class Changes(NamedTuple):
    """What was done to a shard, in lines and blocks. `present` counts lines to add that it had already."""

    added: int = 0
    present: int = 0
    removed: int = 0
    copied: int = 0
    written: int = 0

    def __add__(self, other: object) -> Changes:
        """The sum."""
        if not isinstance(other, Changes):
            return NotImplemented
        return Changes(*map(int.__add__, self, other))


class ShardChange:
    """The change of one shard. Iterate over it once: a `BlockRef` is copied, a list is the lines of a new block.

    `counts` are complete at the end. `gone` takes the lines that were removed. Raises DamagedCluster if a block that is
    needed is corrupt.
    """

    def __init__(
        self,
        blocks: Sequence[BlockRef],
        lines_of: LinesOf,
        added: SortedLists,
        drop: Drop,
        rule: ChangeRule,
        gone: Callable[[list[bytes]], object],
    ) -> None:
        self._blocks, self._lines_of = blocks, lines_of
        self._added, self._drop, self.rule, self._gone = added, drop, rule, gone
        self._held: list[bytes] = []
        self._known: dict[int, list[bytes]] = {}
        self.counts = Changes()

    def __iter__(self) -> Iterator[BlockRef | list[bytes]]:
        """The blocks of the changed shard, in order."""
        for number, block in enumerate(self._blocks):
            yield from self._changed(number, block)
        while not self._blocks and (lines := self._added.take_below(None)):
            yield from self._hold(lines, [])
        yield from self._cut(is_end=True)

    def _changed(self, number: int, block: BlockRef) -> Iterator[BlockRef | list[bytes]]:
        """Merge one block with the lines to add in its range. Without a change it is copied."""
        new = self._added.take_below(self._bound(number))
        old = self._kept_of(number)
        if old is None and not new and not self.rule.recut:
            yield from self._copied(block)
            return
        old = self._lines(number) if old is None else old
        is_whole = len(old) == len(self._lines(number))
        while more := self._added.take_below(self._bound(number)) if new else []:
            start = bisect_right(old, new[-1])  # many lines are merged in parts
            is_whole = False
            yield from self._hold(new, old[:start])
            new, old = more, old[start:]
        if is_whole and not self.rule.recut and len(distinct(sorted(old + new))) == len(old):
            self.counts += Changes(present=len(new))
            yield from self._copied(block)
        else:
            yield from self._hold(new, old)

    def _kept_of(self, number: int) -> list[bytes] | None:
        """The lines of a block that are not removed; None if no line is."""
        low = self._blocks[number].key if number else b""
        high = None if number + 1 == len(self._blocks) else self._blocks[number + 1].key + b"!"
        if not self._drop.reaches(low, high):
            return None
        kept, gone = self._drop.split(self._lines(number))
        if not gone:
            return None
        self._gone(gone)
        self.counts += Changes(removed=len(gone))
        return kept

    def _copied(self, block: BlockRef) -> Iterator[BlockRef | list[bytes]]:
        yield from self._cut(is_end=True)
        self.counts += Changes(copied=1)
        yield block

    def _bound(self, number: int) -> bytes | None:
        """What the lines of a block are below: the key of the next block, or its first line where that must be known."""
        if number + 1 == len(self._blocks):
            return None
        key, line = self._blocks[number + 1].key, self._added.next()
        if line is None or not key <= line < key + b"!":
            return key
        return self._lines(number + 1)[0]

    def _lines(self, number: int) -> list[bytes]:
        """The lines of a block. Those of two blocks are kept."""
        if number not in self._known:
            self._known = {kept: lines for kept, lines in self._known.items() if kept + 1 == number}
            self._known[number] = self._lines_of(self._blocks[number])
        return self._known[number]

    def _hold(self, new: list[bytes], old: list[bytes]) -> Iterator[list[bytes]]:
        """Merge lines to add and lines of the shard."""
        kept = distinct(sorted(old + new))
        added = len(kept) - len(old)
        self.counts += Changes(added=added, present=len(new) - added)
        self._held += kept
        yield from self._cut(is_end=False)

    def _cut(self, is_end: bool) -> Iterator[list[bytes]]:
        """Cut blocks from the lines that are held. The last ones of a group get about the same length."""
        size, held = self.rule.block_lines, self._held
        least = size if self.rule.recut else 3 * size
        start = 0
        while len(held) - start >= least:
            yield held[start : start + size]
            start += size
        rest = held[start:]
        if is_end and rest:
            parts = 1 if self.rule.recut else max(1, (2 * len(rest) + size) // (2 * size))
            step = -(-len(rest) // parts)
            yield from (rest[pos : pos + step] for pos in range(0, len(rest), step))
            rest = []
        self._held = rest


class ChangedShard(NamedTuple):
    """What came of a shard: its entry, None if nothing has changed, and what was done."""

    entry: ShardEntry | None
    counts: Changes


def write_changed(
    change: ShardChange, old: ShardEntry, name: str, files: ShardIO, compressor: Compressor
) -> ChangedShard:
    """Write the changed shard `name`, and its part. Without an entry, what was written is not needed."""
    writer = _Writer(name.encode(), files)
    for found in change:
        if isinstance(found, BlockRef):
            writer.copy(found)
        else:
            text = text_of(found)
            key = key_of(found[0])
            writer.write(key, compressor.compress_block(len(found), text, key))
    counts = change.counts
    if not (counts.added or counts.removed or change.rule.recut):
        return ChangedShard(None, counts)
    writer.flush()
    number = writer.blocks
    if not number:
        writer.put(compressor.compress(b""))
    lines = old.lines + counts.added - counts.removed
    entry = ShardEntry(name, writer.offset, lines, number, writer.digest.hexdigest())
    if entry == old._replace(name=name):
        return ChangedShard(None, counts)
    return ChangedShard(entry, counts._replace(written=number - counts.copied))


class ShardIO(NamedTuple):
    """The files of a changed shard: `read` reads the old one, `shard` and `part` are written."""

    read: Callable[[int, int], bytes]
    shard: IO[bytes]
    part: IO[bytes]


class _Writer:
    """Writes blocks and their index lines. Neighbors that are copied are read together."""

    def __init__(self, name: bytes, files: ShardIO) -> None:
        self._name, self._files = name, files
        self._copies: list[BlockRef] = []
        self.offset = self.blocks = self._listed = 0
        self.digest = hashlib.sha256()

    def copy(self, block: BlockRef) -> None:
        """Copy a block, later."""
        self._copies.append(block)

    def write(self, key: bytes, data: bytes) -> None:
        """Write a new block."""
        self.flush()
        self._list(key, len(data))
        self.put(data)

    def flush(self) -> None:
        """Write the blocks that are copied."""
        copies, self._copies = self._copies, []
        for run in joined(copies):
            size = sum(block.length for block in run)
            data = self._files.read(run[0].offset, size)
            if len(data) < size:
                raise DamagedCluster(f"{run[0].shard.decode()}: the shard ends before its blocks")
            for block in run:
                self._list(block.key, block.length)
            self.put(data)

    def _list(self, key: bytes, length: int) -> None:
        offset = self.offset + self._listed
        self._files.part.write(format_part_line(BlockRef(key, self._name, offset, length)))
        self._listed += length
        self.blocks += 1

    def put(self, data: bytes) -> None:
        """Write bytes of the shard."""
        self._files.shard.write(data)
        self.digest.update(data)
        self.offset += len(data)
        self._listed = 0
