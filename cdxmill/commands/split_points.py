"""split-points: the secondary index of a cluster -> split points for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from cdxmill.cluster.files import ClusterFiles
from cdxmill.cluster.manifest import read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.zipnum_index import BlockRef, parse_index_line
from cdxmill.running.quantities import count
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.stages.zipnum.split_blocks import MARKS_PER_SHARD, mark_blocks, pick_marks
from cdxmill.storage.choose import open_ranges, pieces

_EVEN = 8
"""With so many blocks a shard, the biggest shard has at most about 1/8 more than the mean."""


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


def points_of_cluster(cluster: str, shards: int) -> SplitPoints:
    """Up to `shards` - 1 keys that divide the lines of the cluster at a path or URL evenly.

    Raises UsageError where there is no cluster, InputError where its index is damaged.
    """
    files = ClusterFiles(cluster)
    if files.index is None:
        raise InputError(cluster, "it has no cluster.idx", "cdxmill publish --unfinished makes one of parts")
    last_blocks = _last_blocks(files)
    with open_ranges(files.place(files.index)) as read_at:
        blocks = _blocks(files.place(files.index), split_lines(pieces(read_at)))
        found = mark_blocks(blocks, last_blocks, 2 * shards * MARKS_PER_SHARD)
    return SplitPoints(pick_marks(found, shards), shards, found.blocks)


def _last_blocks(files: ClusterFiles) -> dict[bytes, float]:
    """What the last block of each shard holds, as a share of a full one, where cluster.json tells."""
    manifest = None
    with suppress(InputError):  # the index alone will do
        manifest = read_manifest(files)
    if manifest is None:
        return {}
    full = manifest.block_lines
    return {
        entry["name"].encode(): (entry["lines"] - (entry["blocks"] - 1) * full) / full
        for entry in manifest.content["shards"]
        if entry["blocks"]
    }


def _blocks(place: str, lists: Iterator[list[bytes]]) -> Iterator[BlockRef]:
    last = b""
    number = 0
    for lines in lists:
        for number, line in enumerate(lines, number + 1):  # noqa: B020 - counts on
            try:
                block = parse_index_line(line)
            except ValueError as error:
                raise InputError(place, f"line {number}: {error}", "cdxmill verify tells more") from None
            if block.key < last:
                raise InputError(place, f"line {number} is out of order", "cdxmill verify tells more")
            last = block.key
            yield block
