"""Other clusters whose lines come into one: their blocks are sources of its shards, and are copied where nothing comes between.

The shards of each have names that no cluster has: 2/cdx-00000.gz is a shard of the third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.errors import InputError
from cdxmill.formats.clusters.manifest import Manifest, UsedCompressor
from cdxmill.formats.clusters.zipnum import BEYOND, BlockRef
from cdxmill.options.option import Running
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.search.lookup import open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.drop_lines import Drop, LineRange
from cdxmill.stages.zipnum.block_pieces import BlockPieces, ReadShard, Tables
from cdxmill.stages.zipnum.block_text import BlockText
from cdxmill.stages.zipnum.changed_blocks import Dropping, ShardBlocks
from cdxmill.storage.location import Location
from cdxmill.storage.reading import sha256_of


class OtherCluster(NamedTuple):
    """Another cluster, and its cluster.json."""

    place: Location
    manifest: Manifest


Bounds = tuple[bytes, bytes | None]
"""Lines >= the first and < the second. None: to the end."""


def why_not_copied(
    clusters: Sequence[OtherCluster],
    wanted: UsedCompressor,
    block_lines: int,
    running: Running,
    run: RunTasks = run_tasks,
) -> str:
    """Why the blocks of `clusters` cannot be copied; "" if they can. For that, each shard is read for its SHA-256.

    A `wanted` compressor without a version may have any.
    """
    known = []
    for place, manifest in clusters:
        if manifest.numlines != block_lines:
            return f"{place} has {manifest.numlines} lines per block, not {block_lines}"
        if manifest.compressor._replace(version=wanted.version and manifest.compressor.version) != wanted:
            return f"{place} has another compressor"
        known += [(place / one.name, one.sha256) for one in manifest.files]
    with Progress("checking shards", len(known), 0, running.quiet) as progress:
        for number, is_whole in run(_is_whole, known, running.processes, progress.tick):
            progress.advance()
            if not is_whole:
                return f"{known[number][0]} is damaged"
    return ""


def _is_whole(known: tuple[Location, str]) -> bool:
    place, digest = known
    try:
        return sha256_of(place) == digest
    except InputError:
        return False


def lines_of(block: BlockRef, read: ReadShard) -> list[bytes]:
    """The lines of a block. Raises DamagedCluster if it is corrupt."""
    return BlockText(BlockPieces(block, read, Tables(), at_once=True)).between(b"", BEYOND)[0]


class OtherClusters:
    """The clusters, which are open as long as `files`. Raises InputError."""

    def __init__(self, clusters: Sequence[OtherCluster], files: ExitStack) -> None:
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
        reader = cluster.reader

        def lines(block: BlockRef) -> list[bytes]:
            with damage_as_input_error(reader.cluster):
                return lines_of(_own(block), reader.read)

        def numbered(blocks: Iterator[BlockRef]) -> Iterator[BlockRef]:
            with damage_as_input_error(reader.cluster):
                for block in blocks:
                    yield block._replace(shard=b"%d/%b" % (number, block.shard))

        def removing() -> Dropping | None:
            return Dropping(Drop(excluded), lambda _: None) if excluded else None

        low, _ = bounds
        count = partial(_count, self._counts[number], lines)
        yield ShardBlocks(numbered(reader.index.blocks(low)), lines, removing(), bounds, count)
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
