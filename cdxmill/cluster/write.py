"""Write a cluster: its shards, one task per shard, and then the files beside them: idx, summary, loc, the manifest last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from cdxmill.formats.clusters.manifest import ShardEntry, format_manifest, make_manifest
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.formats.clusters.zipnum_index import (
    INDEX,
    LOCATIONS,
    MANIFEST,
    SUMMARY,
    format_location,
    part_name,
    part_of,
    shard_name,
)
from cdxmill.inputs.split_files import write_splits
from cdxmill.running.counted_reads import counted
from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.merge_blocks import merge_blocks
from cdxmill.stages.lines.sorted_runs import Slice
from cdxmill.stages.zipnum.write_shard import write_shard
from cdxmill.storage.location import PathOrUrl, join, locate
from cdxmill.storage.scratch import Scratch


class ShardTask(NamedTuple):
    """A shard: its slices of the runs in `scratch`, and how it is written to `directory`."""

    number: int
    slices: list[Slice]
    directory: Path
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
    return write_shard_files(blocks, task.number, task.directory, task.compressor)


def write_shard_files(
    blocks: Iterable[TextBlock], number: int, directory: PathOrUrl, compressor: Compressor
) -> ShardEntry:
    """Write the blocks of a shard, and its part of the index, to `directory`, each whole or not at all."""
    name = shard_name(number)
    with (
        (locate(directory) / name).write_atomic() as shard,
        (locate(directory) / part_name(number)).write_atomic() as part,
    ):
        report = write_shard(blocks, name, shard, part, compressor)
    return ShardEntry(name, report.bytes, report.lines, report.blocks, report.sha256)


def is_shard_whole(directory: Path, shard: ShardEntry) -> bool:
    """Whether the files of a shard that an earlier run wrote still exist. Raises TypeError if `shard` has wrong types."""
    if list(map(type, shard)) != [str, int, int, int, str]:
        raise TypeError(f"not a shard: {shard}")
    found, part = (
        (locate(directory) / shard.name).status(),
        (locate(directory) / part_of(shard.name)).status(),
    )
    return (
        found is not None
        and found.size == shard.bytes
        and part is not None
        and bool(part.size or not shard.lines)
    )


def unpublish(directory: PathOrUrl) -> None:
    """Remove what makes the directory at a path or URL a finished cluster."""
    for name in (MANIFEST, INDEX, SUMMARY, LOCATIONS):
        (locate(directory) / name).remove()


def write_cluster_files(
    directory: PathOrUrl,
    shards: Sequence[ShardEntry],
    points: Sequence[bytes],
    compressor: Compressor,
    block_lines: int,
    location: str | None,
) -> None:
    """Finish the cluster in `directory`, a path or URL, after its parts and shards are written.

    `location` is the directory or URL of the shards in cluster.loc. The default is `directory`.
    """
    write_splits(points, join(directory, "splits.txt"))
    write_index(
        directory, ((locate(directory) / part_name(number)).read_bytes() for number in range(len(shards)))
    )
    write_locations(directory, [shard.name for shard in shards], location or directory)
    with (locate(directory) / MANIFEST).write_atomic() as file:
        file.write(format_manifest(make_manifest(shards, points, compressor, block_lines)))


def write_index(directory: PathOrUrl, parts: Iterable[bytes]) -> None:
    """Write all parts with line numbers to cluster.idx and cluster.summary. Some readers look for the second name."""
    number = 0
    with (
        (locate(directory) / INDEX).write_atomic() as index,
        (locate(directory) / SUMMARY).write_atomic() as summary,
    ):
        for part in parts:
            for line in part.removesuffix(b"\n").split(b"\n") if part else ():
                number += 1
                numbered = b"%b\t%d\n" % (line, number)
                index.write(numbered)
                summary.write(numbered)


def write_locations(directory: PathOrUrl, shards: Iterable[str], base: PathOrUrl) -> None:
    """Write cluster.loc. All shards are in `base`, a path or URL."""
    with (locate(directory) / LOCATIONS).write_atomic() as file:
        file.write(format_locations(shards, base))


def write_archive_index(directory: PathOrUrl, content: bytes) -> None:
    """Write archives.tsv: where the archives of the cluster are."""
    with (locate(directory) / ARCHIVES).write_atomic() as file:
        file.write(content)


def format_locations(shards: Iterable[str], base: PathOrUrl) -> bytes:
    """The contents of cluster.loc."""
    return b"".join(format_location(shard, join(locate(base).absolute(), shard)) for shard in shards)
