"""How much an answer is: pages as pywb counts them, and an estimate from the index alone."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from cdxmill.errors import UsageError
from cdxmill.formats.lookup_query import KeyRange
from cdxmill.formats.zipnum_index import number_of
from cdxmill.search.question import Asking, Opened
from cdxmill.stages.zipnum.find_lines import find_lines, wanted_blocks
from cdxmill.stages.zipnum.secondary_index import SecondaryIndex

_USUAL_LINES = 3000
"""Lines in a block of published clusters."""


class Pages(NamedTuple):
    """The answer to showNumPages, with pywb's names."""

    pages: int
    pageSize: int  # noqa: N815
    blocks: int


class Estimate(NamedTuple):
    """About how many lines, at least and at most; None where the index does not bound them."""

    lines: int
    least: int
    most: int | None
    blocks: int


def count_pages(cluster: Opened, keys: KeyRange, size: int) -> Pages:
    """Pages of `size` blocks for a range of keys; where one block may have it, that is looked into, as in pywb."""
    if size < 1:
        raise UsageError(f"--page-size is 1 or more, not {size}")
    index = cluster.reader.index
    blocks = _count_blocks(index, keys)
    if blocks == 1:
        found = find_lines(wanted_blocks(index, *keys[:2]), cluster.blocks, *keys[:2], cluster.join)
        blocks = int(next(found, None) is not None)
    return Pages(-(-blocks // size), size, blocks)


def _count_blocks(index: SecondaryIndex, keys: KeyRange) -> int:
    """By the numbers of the index's lines where it has them, else by counting."""
    first = next(wanted_blocks(index, *keys[:2]), None)
    if first is None:
        return 0
    begin, end = (number_of(index.last_before(key) or b"") for key in (keys.low, keys.high))
    if begin is not None and end is not None and end >= begin:
        return end - begin + 1
    return sum(1 for _ in wanted_blocks(index, *keys[:2]))


def estimate(cluster: Opened, asking: Asking, keys: KeyRange) -> Estimate:
    """The number of lines in a range of keys; no block is read.

    A block that begins before the range counts for half, as does the last one that begins in it; all
    others lie in it whole. Least and most are sure as far as all blocks but each shard's last are full.
    """
    low, high, _ = asking.narrowed(keys)
    blocks = list(wanted_blocks(cluster.reader.index, low, high))
    if not blocks:
        return Estimate(0, 0, 0, 0)
    told = cluster.reader.block_lines()
    full = told or _USUAL_LINES
    begun = sum(block.key >= low for block in blocks)
    whole = [here.shard == behind.shard for here, behind in pairwise(blocks) if here.key >= low]
    least = sum(full if is_full else 1 for is_full in whole) + (begun > 0)
    most = len(blocks) * full if told else None
    middle = len(whole) * full + (full // 2) * (len(blocks) - len(whole))
    return Estimate(max(least if told else begun, middle), least if told else begun, most, len(blocks))
