"""Shards of several clusters -> those of a new one. Blocks that no other cluster has lines between are copied as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from heapq import merge
from typing import NamedTuple

from cdxmill.cluster.reader import damage_as_input_error, manifest_beside
from cdxmill.commands.clusters.zipnum import Made, ZipnumOptions
from cdxmill.commands.collections.change_shards import lines_of
from cdxmill.errors import InputError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry
from cdxmill.formats.clusters.zipnum import BlockRef, part_of, shard_name
from cdxmill.inputs.cdx_files import Inventory
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.search.lookup import open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.pick_splits import MARKS_PER_SHARD, mark_blocks, pick_marks
from cdxmill.stages.zipnum.change_shard import ChangeRule, ShardChange, ShardIO, write_changed
from cdxmill.stages.zipnum.changed_blocks import ShardBlocks
from cdxmill.storage.location import Location
from cdxmill.storage.reading import sha256_of

MERGED = 1
"""The number of the change in names of merged shards: blocks of unequal length show that a cluster is not as it was built."""


def can_copy(clusters: Sequence[Location], options: ZipnumOptions) -> bool:
    """Whether the blocks of all clusters are as `options` want them, and undamaged: each shard is read for its SHA-256."""
    manifests = list(map(manifest_beside, clusters))
    wanted = options.compressor
    for manifest in manifests:
        if manifest is None or manifest.numlines != options.block_lines:
            return False
        used = manifest.compressor
        if (
            Compressor(used.library, used.level, used.section_lines) != wanted
            or used.version != wanted.version()
        ):
            return False
    known = [
        (cluster / one.name, one.sha256)
        for cluster, manifest in zip(clusters, manifests, strict=True)
        for one in (manifest.files if manifest is not None else ())
    ]
    with Progress("checking shards", len(known), 0, options.quiet) as progress:
        for _, is_whole in run_tasks(_is_whole, known, options.processes, progress.tick):
            progress.advance()
            if not is_whole:
                return False
    return True


def _is_whole(known: tuple[Location, str]) -> bool:
    place, digest = known
    try:
        return sha256_of(place) == digest
    except InputError:
        return False


class MergeTask(NamedTuple):
    """A shard of the new cluster: the lines >= `low` and < `high` of all `clusters`."""

    number: int
    clusters: Sequence[Location]
    bounds: tuple[bytes, bytes | None]
    directory: Location
    compressor: Compressor
    block_lines: int


def make_merged(
    clusters: Sequence[Location],
    inventory: Inventory,
    directory: Location,
    options: ZipnumOptions,
    failures: Failures,
) -> Made:
    """Write the shards: see `commands.clusters.zipnum.Make`. Raises InputError, StoppedError."""
    points = list(options.points) if options.points is not None else _points(clusters, options.shards)
    bounds = zip([b"", *points], [*points, None], strict=True)
    tasks = [
        MergeTask(number, clusters, found, directory, options.compressor, options.block_lines)
        for number, found in enumerate(bounds)
    ]
    shards, present = [], 0
    with Progress("merging shards", len(tasks), inventory.total, options.quiet) as progress:
        failures.show_on(progress)
        for _, (entry, equal) in run_tasks(_merge_shard, tasks, options.processes, progress.tick):
            progress.advance()
            shards.append(entry)
            present += equal
    return Made(sorted(shards), points, sum(one.lines for one in shards) + present, [])


def _points(clusters: Sequence[Location], shards: int) -> list[bytes]:
    """Split points between blocks of the clusters, so that shards have about the same number of them."""
    with ExitStack() as files:
        opened = [files.enter_context(open_searched(place)) for place in clusters]
        blocks = merge(*(one.reader.index.blocks(b"") for one in opened))
        alike = (block._replace(shard=b"") for block in blocks)
        return pick_marks(mark_blocks(alike, {b"": 1.0}, 2 * shards * MARKS_PER_SHARD), shards)


def _merge_shard(task: MergeTask) -> tuple[ShardEntry, int]:
    name = shard_name(task.number, MERGED)
    with ExitStack() as files:
        clusters = [files.enter_context(open_searched(place)) for place in task.clusters]
        sources = [
            source
            for number, cluster in enumerate(clusters)
            for source in _sources(number, cluster, manifest_beside(task.clusters[number]), task.bounds)
        ]
        shard = files.enter_context((task.directory / name).write_atomic())
        part = files.enter_context((task.directory / part_of(name)).write_atomic())

        def read(shard: bytes, offset: int, size: int) -> bytes:
            number, _, own = shard.partition(b"/")
            return clusters[int(number)].reader.read(own, offset, size)

        change = ShardChange(sources, ChangeRule(task.block_lines))
        done = write_changed(change, None, name, ShardIO(read, shard, part), task.compressor)
        assert done.entry is not None
        return done.entry, done.counts.present


def _sources(
    number: int, cluster: OpenCluster, manifest: Manifest | None, bounds: tuple[bytes, bytes | None]
) -> Iterator[ShardBlocks]:
    """The blocks of a cluster, and those of its overlays, which are small and not copied."""

    def lines(block: BlockRef) -> list[bytes]:
        with damage_as_input_error(cluster.reader.cluster):
            return lines_of(_own(block), cluster.reader.read)

    def numbered(blocks: Iterator[BlockRef]) -> Iterator[BlockRef]:
        with damage_as_input_error(cluster.reader.cluster):
            for block in blocks:
                yield block._replace(shard=b"%d/%b" % (number, block.shard))

    low, _ = bounds
    count = partial(_count, _last_blocks(manifest), lines)
    yield ShardBlocks(numbered(cluster.reader.index.blocks(low)), lines, bounds=bounds, count_of=count)
    for one in cluster.reader.overlays:
        yield ShardBlocks(numbered(one.index.blocks(low)), lines, bounds=bounds, copies=False)


def _own(block: BlockRef) -> BlockRef:
    return block._replace(shard=block.shard.partition(b"/")[2])


def _last_blocks(manifest: Manifest | None) -> dict[bytes, tuple[int, int, int]]:
    """For each shard of a cluster that was not changed: its size, the lines of its last block, and those of the others."""
    if manifest is None or manifest.change:
        return {}
    full = manifest.numlines
    return {
        one.name.encode(): (one.bytes, one.lines - (one.blocks - 1) * full, full) for one in manifest.shards
    }


def _count(
    known: dict[bytes, tuple[int, int, int]], lines: Callable[[BlockRef], list[bytes]], block: BlockRef
) -> int:
    """The lines of a block. One of a changed cluster is decompressed for it."""
    found = known.get(_own(block).shard)
    if found is None:
        return len(lines(block))
    size, last, full = found
    return last if block.offset + block.length == size else full
