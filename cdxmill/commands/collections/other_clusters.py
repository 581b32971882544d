"""Other clusters whose lines come into one: their blocks are sources of its shards, and are copied where nothing comes between.

The shards of each have names that no cluster has: 2/cdx-00000.gz is a shard of the third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, filterfalse
from typing import NamedTuple

from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.errors import InputError, OutageError
from cdxmill.formats.clusters.manifest import Manifest, UsedCompressor
from cdxmill.formats.clusters.zipnum import BEYOND, BlockRef
from cdxmill.running.failures import Failures
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.search.lookup import open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.drop_lines import Drop, LineRange
from cdxmill.stages.zipnum.block_pieces import BlockPieces, ReadShard, Tables
from cdxmill.stages.zipnum.block_text import BlockText
from cdxmill.stages.zipnum.changed_blocks import Dropping, ShardBlocks
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.storage.location import Location
from cdxmill.storage.reading import sha256_of


class OtherCluster(NamedTuple):
    """Another cluster, and its cluster.json.

    Unless all its shards are whole, none of its blocks is copied. Those that are `skipped` are corrupt.
    """

    place: Location
    manifest: Manifest
    is_whole: bool = True
    skipped: frozenset[BlockRef] = frozenset()


Bounds = tuple[bytes, bytes | None]
"""Lines >= the first and < the second. None: to the end."""


class _Shard(NamedTuple):
    """A shard of the cluster of this number, which has `blocks` and the SHA-256 `digest` if it is whole."""

    cluster: int
    place: Location
    name: str
    digest: str
    blocks: int


def why_not_copied(clusters: Sequence[OtherCluster], wanted: UsedCompressor, block_lines: int) -> str:
    """Why blocks of `clusters` cannot be copied; "" if they can. A `wanted` compressor without a version may have any."""
    for place, manifest, *_ in clusters:
        if manifest.numlines != block_lines:
            return f"{place} has {manifest.numlines} lines per block, not {block_lines}"
        if manifest.compressor._replace(version=wanted.version and manifest.compressor.version) != wanted:
            return f"{place} has another compressor"
    return ""


def check_shards(
    clusters: Sequence[OtherCluster],
    failures: Failures,
    processes: int,
    quiet: bool,
    run: RunTasks = run_tasks,
) -> list[OtherCluster]:
    """The clusters with what is known of their shards, each of which is read for its SHA-256. Corrupt blocks are reported."""
    shards = [
        _Shard(number, one.place, entry.name, entry.sha256, entry.blocks)
        for number, one in enumerate(clusters)
        for entry in one.manifest.files
    ]
    checked = list(clusters)
    with Progress("checking shards", len(shards), 0, quiet) as progress:
        failures.show_on(progress)
        for number, corrupt in sorted(run(_corrupt_blocks, shards, processes, progress.tick)):
            progress.advance()
            if corrupt is None:
                continue
            shard = shards[number]
            _report(shard, corrupt, failures)
            skipped = checked[shard.cluster].skipped.union(block for block, _ in corrupt)
            checked[shard.cluster] = checked[shard.cluster]._replace(is_whole=False, skipped=skipped)
    return checked


def _report(shard: _Shard, corrupt: Sequence[tuple[BlockRef, str]], failures: Failures) -> None:
    path = str(shard.place / shard.name)
    if corrupt and len(corrupt) == shard.blocks:
        failures.add(
            path, None, f"{corrupt[0][1]}; none of its lines are in the cluster", DamagedCluster.hint
        )
        return
    for block, reason in corrupt:
        failures.add(
            path, block.offset, f"{reason}; the lines of this block are missing", DamagedCluster.hint
        )


def _corrupt_blocks(shard: _Shard) -> list[tuple[BlockRef, str]] | None:
    """The blocks of a shard that cannot be read, with the reason. None if the shard is whole."""
    try:
        if sha256_of(shard.place / shard.name) == shard.digest:
            return None
    except OutageError:
        raise
    except InputError:
        pass  # the blocks show why
    with open_searched(shard.place) as cluster, damage_as_input_error(str(shard.place)):
        own = [block for block in all_blocks(cluster) if block.shard.decode() == shard.name]
        return [(block, why) for block in own if (why := _why_corrupt(block, cluster.reader.read))]


def all_blocks(cluster: OpenCluster) -> Iterator[BlockRef]:
    """The blocks of a cluster, and then those of its overlays."""
    reader = cluster.reader
    return chain.from_iterable(
        one.blocks(b"") for one in (reader.index, *(of.index for of in reader.overlays))
    )


def _why_corrupt(block: BlockRef, read: ReadShard) -> str:
    try:
        lines_of(block, read)
    except OutageError:
        raise
    except (DamagedCluster, InputError) as error:
        return error.reason
    return ""


def lines_of(block: BlockRef, read: ReadShard) -> list[bytes]:
    """The lines of a block. Raises DamagedCluster if it is corrupt."""
    return BlockText(BlockPieces(block, read, Tables(), at_once=True)).between(b"", BEYOND)[0]


class OtherClusters:
    """The clusters, which are open as long as `files`. Raises InputError."""

    def __init__(self, clusters: Sequence[OtherCluster], files: ExitStack) -> None:
        self._known = clusters
        self._clusters = [files.enter_context(open_searched(one.place)) for one in clusters]
        self._counts = [_last_blocks(one.manifest) for one in clusters]

    def have_lines(self, bounds: Bounds, excluded: Sequence[LineRange]) -> bool:
        """Whether they have lines in the bounds that are not `excluded`. Only blocks at the bounds are read."""
        return any(map(_has_lines, self.sources(bounds, excluded)))

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """Bytes of a shard, by its name here."""
        number, _, own = shard.partition(b"/")
        return self._clusters[int(number)].reader.read(own, offset, size)

    def sources(self, bounds: Bounds, excluded: Sequence[LineRange] = ()) -> list[ShardBlocks]:
        """The blocks of all clusters in the bounds, and those of their overlays, which are small and not copied."""
        return [
            source
            for number, cluster in enumerate(self._clusters)
            for source in self._sources(number, cluster, bounds, excluded)
        ]

    def _sources(
        self, number: int, cluster: OpenCluster, bounds: Bounds, excluded: Sequence[LineRange]
    ) -> Iterator[ShardBlocks]:
        reader, (_, _, is_whole, skipped) = cluster.reader, self._known[number]

        def lines(block: BlockRef) -> list[bytes]:
            with damage_as_input_error(reader.cluster):
                return lines_of(_own(block), reader.read)

        def numbered(blocks: Iterator[BlockRef]) -> Iterator[BlockRef]:
            with damage_as_input_error(reader.cluster):
                for block in filterfalse(skipped.__contains__, blocks):
                    yield block._replace(shard=b"%d/%b" % (number, block.shard))

        def removing() -> Dropping | None:
            return Dropping(Drop(excluded), lambda _: None) if excluded else None

        low, _ = bounds
        count = partial(_count, self._counts[number], lines)
        yield ShardBlocks(numbered(reader.index.blocks(low)), lines, removing(), bounds, count, is_whole)
        for one in reader.overlays:
            blocks = numbered(one.index.blocks(low))
            yield ShardBlocks(blocks, lines, removing(), bounds, copies=False)


def _has_lines(source: ShardBlocks) -> bool:
    """Whether a source has lines. It is used for nothing else then."""
    while source.low is not None and not (source.may_stay or source.is_open):
        source.unpack()
    return source.low is not None


def _own(block: BlockRef) -> BlockRef:
    return block._replace(shard=block.shard.partition(b"/")[2])


def _last_blocks(manifest: Manifest) -> dict[bytes, tuple[int, int, int]]:
    """For each shard of a cluster that was not changed: its size, the lines of its last block, and those of the others."""
    if manifest.change:
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
