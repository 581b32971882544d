"""Sorted runs -> the files of one shard, one task per shard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.files import part_of
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.formats.clusters.zipnum_index import part_name, shard_name
from cdxmill.running.counted_reads import counted
from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.merge_blocks import merge_blocks
from cdxmill.stages.lines.sorted_runs import Slice
from cdxmill.stages.zipnum.write_shard import write_shard
from cdxmill.storage.choose import PathOrUrl, join, status, write_atomic
from cdxmill.storage.scratch import Scratch


class ShardTask(NamedTuple):
    """A shard: its slices of the runs in `scratch`, and how it is written to `folder`."""

    number: int
    slices: list[Slice]
    folder: Path
    scratch: Path
    compressor: Compressor
    block_lines: int

    def packed(self) -> int:
        """The approximate number of bytes on disk of all slices."""
        return sum(part.packed() for part in self.slices)


def write_shard_of(task: ShardTask) -> ShardEntry:
    """Merge the slices of a shard, and write its files."""
    scratch = Scratch(task.scratch)
    blocks = merge_blocks(task.slices, lambda name: counted(scratch.reader(name)), task.block_lines)
    return write_shard_files(blocks, task.number, task.folder, task.compressor)


def write_shard_files(
    blocks: Iterable[TextBlock], number: int, folder: PathOrUrl, compressor: Compressor
) -> ShardEntry:
    """Write the blocks of a shard, and its part of the index, to `folder`, each whole or not at all."""
    name = shard_name(number)
    with write_atomic(join(folder, name)) as shard, write_atomic(join(folder, part_name(number))) as part:
        report = write_shard(blocks, name, shard, part, compressor)
    return ShardEntry(name, report.bytes, report.lines, report.blocks, report.sha256)


def is_shard_whole(folder: Path, shard: ShardEntry) -> bool:
    """Whether the files of a shard that an earlier run wrote still exist. Raises TypeError if `shard` has wrong types."""
    if list(map(type, shard)) != [str, int, int, int, str]:
        raise TypeError(f"not a shard: {shard}")
    found, part = status(join(folder, shard.name)), status(join(folder, part_of(shard.name)))
    return (
        found is not None
        and found.size == shard.bytes
        and part is not None
        and bool(part.size or not shard.lines)
    )
