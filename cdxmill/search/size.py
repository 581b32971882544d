"""The size of an answer: pages as pywb counts them, and an estimate from the index alone."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum_block import BLOCK_LINES
from cdxmill.formats.clusters.zipnum_index import number_of
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.search.field_names import BlockSource
from cdxmill.search.query import OpenCluster, PreparedQuery
from cdxmill.stages.zipnum.find_lines import find_lines, wanted_blocks
from cdxmill.stages.zipnum.secondary_index import SecondaryIndex


class Pages(NamedTuple):
    """The answer to showNumPages, with pywb's names."""

    pages: int
    pageSize: int  # noqa: N815
    blocks: int


class Estimate(NamedTuple):
    """The estimated number of lines, with its bounds. `most` is None if the cluster does not record its block size."""

    lines: int
    least: int
    most: int | None
    blocks: int


class _FullBlock(NamedTuple):
    """The number of lines in a full block. It is recorded in the cluster, or assumed."""

    lines: int
    is_recorded: bool


def count_pages(cluster: OpenCluster, keys: KeyRange, size: int) -> Pages:
    """The number of pages of `size` blocks. If only one block may have lines, it is read, as in pywb."""
    index = cluster.reader.index
    low, high, _ = keys
    blocks = _count_blocks(index, low, high)
    if blocks == 1:
        found = find_lines(wanted_blocks(index, low, high), cluster.blocks, low, high, cluster.join)
        blocks = int(next(found, None) is not None)
    return Pages(-(-blocks // size), size, blocks)


def _count_blocks(index: SecondaryIndex, low: bytes, high: bytes) -> int:
    """The difference of the block numbers. If the index has none, the blocks are counted."""
    if next(wanted_blocks(index, low, high), None) is None:
        return 0
    begin, end = (number_of(index.last_before(key) or b"") for key in (low, high))
    if begin is not None and end is not None and end >= begin:
        return end - begin + 1
    return sum(1 for _ in wanted_blocks(index, low, high))


def estimate(cluster: OpenCluster, prepared: PreparedQuery, keys: KeyRange) -> Estimate:
    """The number of lines in a key range. No block is read, but the lines of a CDX file are counted.

    The block before the range may reach into it, and the last block may reach beyond it. Each counts as half a
    block. All blocks between count whole. The bounds hold if all blocks are full but the last one of each shard. Raises
    UsageError for times in a range of URLs: the index does not tell which lines have them.
    """
    if prepared.has_times and not keys.is_one_url and cluster.reader.block_lines():
        raise UsageError("--estimate takes --from and --to for a single URL only; use --count")
    low, high, _ = prepared.narrowed(keys)
    blocks = list(wanted_blocks(cluster.reader.index, low, high))
    if not blocks:
        return Estimate(0, 0, 0, 0)
    if cluster.reader.block_lines() == 0:
        lines = prepared.count(cluster, keys)
        return Estimate(lines, lines, lines, len(blocks))
    full = _full_block(cluster.reader)
    begun = sum(block.key >= low for block in blocks)
    whole = [block.shard == following.shard for block, following in pairwise(blocks) if block.key >= low]
    middle = len(whole) * full.lines + (full.lines // 2) * (len(blocks) - len(whole))
    if not full.is_recorded:
        return Estimate(max(begun, middle), begun, None, len(blocks))
    least = sum(full.lines if is_full else 1 for is_full in whole) + (begun > 0)
    return Estimate(max(least, middle), least, len(blocks) * full.lines, len(blocks))


def _full_block(reader: BlockSource) -> _FullBlock:
    recorded = reader.block_lines()
    return _FullBlock(recorded, True) if recorded else _FullBlock(BLOCK_LINES, False)
