"""split-points: the secondary index of a cluster -> split points for the next cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from cdxmill.cluster.find import find_index
from cdxmill.cluster.manifest_file import manifest_beside
from cdxmill.cluster.reader import open_cluster
from cdxmill.cluster.split_files import check_splits, split_files, write_splits
from cdxmill.cluster.write import files_of
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.manifest import Manifest
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.messages import count
from cdxmill.outputs.names import check_inputs_stay
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.stages.lines.pick_splits import MARKS_PER_SHARD, mark_blocks, pick_marks
from cdxmill.stages.zipnum.secondary_index import BlockSequence
from cdxmill.storage.location import Location, PathOrUrl, locate, pieces

_EVEN = 8
"""With this number of blocks per shard, the largest shard has at most about 1/8 more lines than the mean."""
_MORE = "run cdxmill verify for details"


class SplitPoints(NamedTuple):
    """Split points for `shards` shards, from an index of `blocks` blocks."""

    points: list[bytes]
    shards: int
    blocks: int

    def __str__(self) -> str:
        """Return one line."""
        text = f"{count(len(self.points) + 1, 'shard')} from {count(self.blocks, 'block')}"
        if len(self.points) + 1 < self.shards:
            return f"{text} instead of {self.shards}; there are too few distinct keys"
        if len(self.points) and self.blocks < _EVEN * self.shards:
            return f"{text}; too few blocks for shards of the same size, use cdxmill sample instead"
        return text


def split_cluster(cluster: str, shards: int, output: PathOrUrl, kind: str, *, replace: bool) -> SplitPoints:
    """Write the split points of the cluster at a path or URL to two files; `output` is of the `kind`, .txt or .seq.

    Raises UsageError if a file exists and may not be replaced, or is one of the cluster; and as `points_of_cluster`.
    """
    check_splits(output, kind, replace=replace)
    check_inputs_stay(split_files(output, kind), files_of(find_index(locate(cluster))))
    found = points_of_cluster(cluster, shards)
    write_splits(found.points, output, kind)
    return found


def points_of_cluster(cluster: str, shards: int) -> SplitPoints:
    """Up to `shards` - 1 keys that divide the lines of the cluster at a path or URL evenly.

    Raises UsageError if there is no cluster, InputError if its index is missing or corrupt.
    """
    index = find_index(locate(cluster))
    manifest = manifest_beside(index.parent)  # the index alone is enough, too
    if manifest is not None and manifest.overlays:
        raise UsageError(f"{cluster}: has overlays, which its index does not show; run cdxmill compact first")
    with index.open_ranges() as read_at:
        found = mark_blocks(
            _blocks(index, pieces(read_at)), _last_blocks(manifest), 2 * shards * MARKS_PER_SHARD
        )
    return SplitPoints(pick_marks(found, shards), shards, found.blocks)


def _last_blocks(manifest: Manifest | None) -> dict[bytes, float]:
    """The lines of each shard's last block as a share of a full block, by cluster.json."""
    if manifest is None or manifest.change:
        return {}  # after changes, no block is known to be full
    full = manifest.numlines
    return {
        shard.name.encode(): (shard.lines - (shard.blocks - 1) * full) / full
        for shard in manifest.shards
        if shard.blocks
    }


def _blocks(index: Location, texts: Iterator[bytes]) -> Iterator[BlockRef]:
    """The blocks of an index. Raises InputError if it is corrupt, truncated or out of order."""
    sequence = BlockSequence()
    for number, line in enumerate(chain.from_iterable(split_lines(_whole(index, texts))), 1):
        try:
            yield sequence.take(line)
        except ValueError as error:
            raise InputError(str(index), f"line {number}: {error}", _MORE) from None
    with open_cluster(index) as cluster:
        cluster.check_last(sequence.last)


def _whole(index: Location, texts: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of an index. Raises InputError after the last one if it does not end with LF."""
    last = b"\n"
    for text in texts:
        last = text[-1:]
        yield text
    if last != b"\n":
        raise InputError(str(index), "is truncated: its last line has no line end", _MORE)
