"""Many URLs -> their answers from a prefix B-tree on a server, with few requests.

sorted ranges of keys -> the index blocks that lead to them, level by level, up to 100 blocks at a time
                      -> the first data blocks of each range, read before they are needed
Blocks that are near each other are one request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.inputs.joined_ranges import is_one_request
from cdxmill.search.many import BATCH, READS, Lists, Ranges, Searched, reading_ahead
from cdxmill.search.prefix_index import OpenTree
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError, TreeReader

_AT_ONCE = 100
"""Index blocks that are read together: parsed, these have up to 20 MB."""
_GAP = 1 << 18
"""Bytes between two blocks that are read along: as many as a block of a cluster has."""


def searched_tree(
    index: OpenTree,
    keys: Callable[[str], Iterable[KeyRange]],
    answer: Callable[[Iterable[KeyRange]], Lists],
) -> Searched:
    """A tree for `answer_urls`."""

    def in_key_order(asked: list[Ranges]) -> Iterator[Lists]:
        if not index.is_remote or len(asked) < 2:
            yield from map(answer, asked)
            return
        tree, read_at = index.tree, index.tree.read_at
        runs = _joined(_planned(tree, sorted(chain.from_iterable(asked))))
        with reading_ahead(runs, lambda _, offset, size: read_at(offset, size)) as ahead:
            tree.read_at = lambda offset, size: ahead.read(b"", offset, size)
            try:
                yield from map(answer, asked)
            finally:
                tree.read_at = read_at

    return Searched(lambda url: tuple(keys(url)), answer, in_key_order)


def batch_of(index: OpenTree, limit: int | None = None) -> int:
    """How many URLs are looked up together: one in a local file, and no more than there are lines to print."""
    return (min(BATCH, limit or BATCH)) if index.is_remote else 1


def _planned(tree: TreeReader, ranges: Sequence[KeyRange]) -> Iterator[tuple[int, int]]:
    """Offset and end of what the search for each range reads first, up to one that meets damage: it reports that itself."""
    with suppress(DamagedTreeError):
        yield from _below(tree, ranges, [0] * len(ranges))


def _below(tree: TreeReader, ranges: Sequence[KeyRange], numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """As `_planned`, for ranges that these index blocks lead to."""
    end = 0
    while (start := end) < len(ranges):
        end = _end_of_group(numbers, start)
        for number, data in _read_blocks(tree, tree.unknown_index(numbers[start:end])):
            tree.take_index(number, data)
        some = ranges[start:end]
        children = [tree.child(number, one.low) for number, one in zip(numbers[start:end], some, strict=True)]
        if children[0] < tree.header.index_blocks and children[0] > numbers[end - 1]:
            yield from _below(tree, some, children)
            continue
        for low, high, _ in some:
            offset, size = tree.first_read(low, high)
            yield offset, offset + size


def _end_of_group(numbers: Sequence[int], start: int) -> int:
    """The end of the numbers from `start` on that are no more than `_AT_ONCE` blocks."""
    found: set[int] = set()
    for place in range(start, len(numbers)):
        found.add(numbers[place])
        if len(found) > _AT_ONCE:
            return place
    return len(numbers)


def _read_blocks(tree: TreeReader, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Index blocks with their numbers, which are sorted."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    size = tree.header.block_size
    places = [(tree.header.offset(number), tree.header.offset(number) + size) for number in numbers]
    runs = [(run[0].offset, run[0].length) for run in _joined(iter(places))]
    with ThreadPoolExecutor(READS) as pool:
        read = list(pool.map(lambda run: tree.read_index(*run), runs))
    for number, (offset, _) in zip(numbers, places, strict=True):
        found = next(place for place, (start, length) in enumerate(runs) if start <= offset < start + length)
        begin = offset - runs[found][0]
        yield number, read[found][begin : begin + size]


def _joined(places: Iterator[tuple[int, int]]) -> Iterator[list[BlockRef]]:
    """Places that begin in order -> one range of the file for those that are near each other."""
    start = end = -1
    for place in places:
        if end >= 0 and is_one_request(start, end, place, _GAP):
            end = max(end, place[1])
            continue
        if end >= 0:
            yield [BlockRef(b"", b"", start, end - start)]
        start, end = place
    if end >= 0:
        yield [BlockRef(b"", b"", start, end - start)]
