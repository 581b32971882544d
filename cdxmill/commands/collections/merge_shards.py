"""Shards of several clusters -> those of a new one. Blocks that no other cluster has lines between are copied as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from heapq import merge
from typing import NamedTuple

from cdxmill.commands.clusters.zipnum_options import Made, ZipnumOptions
from cdxmill.commands.collections.other_clusters import OtherCluster, OtherClusters, check_shards
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import part_of, shard_name
from cdxmill.inputs.cdx_files import Inventory
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.search.lookup import open_searched
from cdxmill.stages.lines.pick_splits import MARKS_PER_SHARD, mark_blocks, pick_marks
from cdxmill.stages.zipnum.change_shard import ChangeRule, ShardChange, ShardIO, write_changed
from cdxmill.storage.location import Location

MERGED = 1
"""The number of the change in names of merged shards: blocks of unequal length show that a cluster is not as it was built."""


class MergeTask(NamedTuple):
    """A shard of the new cluster: the lines >= `low` and < `high` of all `clusters`."""

    number: int
    clusters: Sequence[OtherCluster]
    bounds: tuple[bytes, bytes | None]
    directory: Location
    compressor: Compressor
    block_lines: int


def make_merged(
    clusters: Sequence[OtherCluster],
    inventory: Inventory,
    directory: Location,
    options: ZipnumOptions,
    failures: Failures,
) -> Made:
    """Write the shards: see `commands.clusters.zipnum.Make`. Raises InputError, StoppedError."""
    points = list(options.points) if options.points is not None else _points(clusters, options.shards)
    bounds = zip([b"", *points], [*points, None], strict=True)
    clusters = check_shards(clusters, failures, options.processes, options.quiet)
    tasks = [
        MergeTask(number, clusters, found, directory, options.compressor, options.block_lines)
        for number, found in enumerate(bounds)
    ]
    shards, present = [], 0
    with Progress("merging shards", len(tasks), 0, options.quiet) as progress:
        for _, (entry, equal) in run_tasks(_merge_shard, tasks, options.processes, progress.tick):
            progress.advance()
            shards.append(entry)
            present += equal
    return Made(sorted(shards), points, sum(one.lines for one in shards) + present, [])


def _points(clusters: Sequence[OtherCluster], shards: int) -> list[bytes]:
    """Split points between blocks of the clusters, so that shards have about the same number of them."""
    with ExitStack() as files:
        opened = [files.enter_context(open_searched(one.place)) for one in clusters]
        blocks = merge(*(one.reader.index.blocks(b"") for one in opened))
        alike = (block._replace(shard=b"") for block in blocks)
        return pick_marks(mark_blocks(alike, {b"": 1.0}, 2 * shards * MARKS_PER_SHARD), shards)


def _merge_shard(task: MergeTask) -> tuple[ShardEntry, int]:
    name = shard_name(task.number, MERGED)
    with ExitStack() as files:
        others = OtherClusters(task.clusters, files)
        shard = files.enter_context((task.directory / name).write_atomic())
        part = files.enter_context((task.directory / part_of(name)).write_atomic())
        change = ShardChange(others.sources(task.bounds), ChangeRule(task.block_lines))
        done = write_changed(change, None, name, ShardIO(others.read, shard, part), task.compressor)
        assert done.entry is not None
        return done.entry, done.counts.present
