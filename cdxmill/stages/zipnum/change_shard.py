"""A shard, lines to add and lines to remove, or the shards of several clusters -> the blocks of the new shard.

old blocks   [a....d] [e....h] [i....m] [n....z]
added                   f g                          only e..h is decompressed
new blocks   [a....d] [e.fg.h] [i....m] [n....z]     the others are copied as compressed bytes

one cluster  [a....d] [e....h]               [n....z]
another one                    [i....k] [l..n]          blocks that do not overlap are copied

A block holds the lines from its key to the key of the next block, but lines of that key may stand in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, NamedTuple

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import BlockRef, format_part_line, key_of
from cdxmill.stages.lines.line_lists import distinct, text_of
from cdxmill.stages.zipnum.block_pieces import ReadShard
from cdxmill.stages.zipnum.changed_blocks import LinesToAdd, ShardBlocks
from cdxmill.stages.zipnum.find_lines import joined
from cdxmill.stages.zipnum.secondary_index import DamagedCluster


class ChangeRule(NamedTuple):
    """How blocks are cut: `block_lines` lines each. With `recut`, as in a new cluster; else unchanged ones stay."""

    block_lines: int
    recut: bool = False


class Changes(NamedTuple):
    """What was done to a shard, in lines and blocks. Of lines to add, `present` were there already, `excluded` were skipped."""

    added: int = 0
    present: int = 0
    removed: int = 0
    copied: int = 0
    written: int = 0
    excluded: int = 0

    def __add__(self, other: object) -> Changes:
        """The sum."""
        if not isinstance(other, Changes):
            return NotImplemented
        return Changes(*map(int.__add__, self, other))


class ShardChange:
    """The blocks of a shard that is made of `sources`. Iterate over it once: a `BlockRef` is copied, a list is a new block.

    `counts` are complete at the end. Raises DamagedCluster if a block that is needed is corrupt.
    """

    def __init__(self, sources: Sequence[ShardBlocks | LinesToAdd], rule: ChangeRule) -> None:
        self._sources, self.rule = sources, rule
        self._held: list[bytes] = []
        self._counts = Changes()

    @property
    def counts(self) -> Changes:
        """What was done until now."""
        removed = sum(one.removed for one in self._sources if not one.is_new)
        excluded = sum(one.removed for one in self._sources if one.is_new)
        return self._counts + Changes(removed=removed, excluded=excluded)

    def __iter__(self) -> Iterator[BlockRef | list[bytes]]:
        """The blocks of the changed shard, in order."""
        while found := [one for one in self._sources if one.low is not None]:
            yield from self._step(sorted(found, key=_low))
        yield from self._cut(is_end=True)

    def _step(self, active: list[ShardBlocks | LinesToAdd]) -> Iterator[BlockRef | list[bytes]]:
        """Copy a block, open one, or merge the lines that are known. `active` has the source of the lowest line first."""
        first = active[0]
        other = active[1] if len(active) > 1 else None
        if isinstance(first, ShardBlocks) and self._may_copy() and _is_apart(first, other):
            lines = first.count() if first.is_new else 0
            yield from self._copied(first.take_block())
            self._counts += Changes(added=lines)
        elif not first.is_open:
            first.unpack()
        else:
            yield from self._merged(active)

    def _may_copy(self) -> bool:
        """Whether a block may follow the lines that are held, as a block of their own: few of them are merged with it."""
        is_enough = not self._held or 2 * len(self._held) >= self.rule.block_lines
        return is_enough and not self.rule.recut

    def _merged(self, active: Sequence[ShardBlocks | LinesToAdd]) -> Iterator[BlockRef | list[bytes]]:
        """Merge lines up to the first one that is not known."""
        known = [one for one in active if one.is_open]
        bound = min(one.last for one in known)
        closed = next((one for one in active if not one.is_open), None)
        limit = None if closed is None else closed.low
        if closed is not None and limit is not None and limit <= _low(active[0]):
            closed.unpack()
            return
        whole = [one for one in known if isinstance(one, ShardBlocks) and one.is_whole_to(bound, limit)]
        block, upper, size = (whole[0].block, whole[0].upper, whole[0].count()) if whole else (None, None, 0)
        taken = [(one.is_new, one.take(bound, limit)) for one in known]
        lines = distinct(sorted(chain.from_iterable(lines for _, lines in taken)))
        old = sum(len(lines) for is_new, lines in taken if not is_new)
        new = sum(len(lines) for is_new, lines in taken if is_new)
        self._counts += Changes(added=len(lines) - old, present=new - len(lines) + old)
        others = (one.low for one in self._sources if one.is_open and one is not whole[0]) if whole else ()
        is_all = len(lines) == size and not any(_is_below(low, upper) for low in others)
        if block is not None and is_all and self._may_copy():
            yield from self._copied(block)
            return
        self._held += lines
        yield from self._cut(is_end=False)

    def _copied(self, block: BlockRef) -> Iterator[BlockRef | list[bytes]]:
        yield from self._cut(is_end=True)
        self._counts += Changes(copied=1)
        yield block

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


def _low(source: ShardBlocks | LinesToAdd) -> bytes:
    return source.low or b""


def _is_below(line: bytes | None, bound: bytes | None) -> bool:
    return line is not None and (bound is None or line < bound)


def _is_apart(first: ShardBlocks, other: ShardBlocks | LinesToAdd | None) -> bool:
    """Whether all lines of the block of `first` are below those of `other`. A line that comes next is better merged with it."""
    if not (first.is_whole if first.is_open else first.may_stay):
        return False
    if other is None or other.low is None or not _is_below(other.low, first.upper):
        return True
    return first.is_open and not other.is_open and other.low > first.last


class ChangedShard(NamedTuple):
    """What came of a shard: its entry, None if nothing has changed, and what was done."""

    entry: ShardEntry | None
    counts: Changes


def write_changed(
    change: ShardChange, old: ShardEntry | None, name: str, files: ShardIO, compressor: Compressor
) -> ChangedShard:
    """Write the shard `name`, and its part. Without an entry, what was written is not needed: it is the `old` one."""
    writer = _Writer(name.encode(), files)
    for found in change:
        if isinstance(found, BlockRef):
            writer.copy(found)
        else:
            text = text_of(found)
            key = key_of(found[0])
            writer.write(key, compressor.compress_block(len(found), text, key))
    counts = change.counts
    if old is not None and not (counts.added or counts.removed or change.rule.recut):
        return ChangedShard(None, counts)
    writer.flush()
    number = writer.blocks
    if not number:
        writer.put(compressor.compress(b""))
    lines = (0 if old is None else old.lines) + counts.added - counts.removed
    entry = ShardEntry(name, writer.offset, lines, number, writer.digest.hexdigest())
    if old is not None and entry == old._replace(name=name):
        return ChangedShard(None, counts)
    return ChangedShard(entry, counts._replace(written=number - counts.copied))


class ShardIO(NamedTuple):
    """The files of a changed shard: `read` reads the old ones, `shard` and `part` are written."""

    read: ReadShard
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
            data = self._files.read(run[0].shard, run[0].offset, size)
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
