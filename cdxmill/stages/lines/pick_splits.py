"""Split points that divide lines evenly: from the sample of all lines (sample_lines.py), or from the blocks of a cluster.

An index has a key for every block, and all blocks but the last one of a shard have the same number of lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum import BlockRef


def pick_splits(keys: Iterable[bytes], shards: int) -> list[bytes]:
    """`shards` - 1 distinct keys that divide the sampled `keys` as evenly as possible, in order.

    Fewer if there are fewer distinct keys than `shards`.

    >>> pick_splits([b"a", b"b", b"b", b"b", b"c", b"d"], 3)
    [b'b', b'c']
    """
    ordered = sorted(keys)
    firsts = [index for index, key in enumerate(ordered) if not index or key != ordered[index - 1]]
    shards = min(shards, len(firsts))
    wanted = [len(ordered) * number // shards for number in range(1, shards)]
    return [ordered[firsts[at]] for at in _nearest(firsts, wanted)]


def _nearest(numbers: Sequence[float], wanted: Sequence[float]) -> Iterator[int]:
    """The index of the number nearest to each of `wanted`; all are greater than 0, and each is greater than the one before."""
    at = 0
    for place, target in enumerate(wanted):
        low, high = at + 1, len(numbers) - len(wanted) + place
        at = min(bisect_left(numbers, target, low), high)
        if at > low and target - numbers[at - 1] < numbers[at] - target:
            at -= 1
        yield at


MARKS_PER_SHARD = 1000
"""Keys kept per shard, at least, if the index has that many. A shard then differs by 0.1 % from the best size."""


class Mark(NamedTuple):
    """The first key of a block, and the number of lines before it, in full blocks."""

    before: float
    key: bytes


class Marks(NamedTuple):
    """Marks in order, from `blocks` blocks with the lines of `total` full blocks."""

    marks: list[Mark]
    total: float
    blocks: int


def mark_blocks(blocks: Iterable[BlockRef], last_blocks: Mapping[bytes, float], most: int) -> Marks:
    """Up to `most` marks of a whole index, at equal distances.

    `last_blocks` has the lines of a shard's last block as a share of a full block. Without a value the share is
    estimated from the size in bytes. Requires: keys are in order.
    """
    marks: list[Mark] = []
    total, count, step = 0.0, 0, 1
    for block, share in _with_shares(blocks, last_blocks):
        if count % step == 0 and (not marks or block.key > marks[-1].key):
            marks.append(Mark(total, block.key))
            if len(marks) > most:
                del marks[1::2]
                step *= 2
        total += share
        count += 1
    return Marks(marks, total, count)


def _with_shares(
    blocks: Iterable[BlockRef], last_blocks: Mapping[bytes, float]
) -> Iterator[tuple[BlockRef, float]]:
    """Each block with its share of a full block: 1, and less for the last one of a shard."""
    before: BlockRef | None = None
    size = count = 0
    for block in blocks:
        if before is not None and block.shard == before.shard:
            size, count = size + before.length, count + 1
            yield before, 1.0
        elif before is not None:
            yield before, _last_share(before, last_blocks, size, count)
            size = count = 0
        before = block
    if before is not None:
        yield before, _last_share(before, last_blocks, size, count)


def _last_share(block: BlockRef, known: Mapping[bytes, float], size: int, count: int) -> float:
    if block.shard in known:
        return known[block.shard]
    return min(1.0, block.length * count / size) if size else 1.0


def pick_marks(found: Marks, shards: int) -> list[bytes]:
    """`shards` - 1 keys that divide the lines as evenly as possible, in order; fewer if there are too few keys.

    >>> marks = [Mark(0, b"a"), Mark(1, b"b"), Mark(2, b"c"), Mark(3, b"d")]
    >>> pick_marks(Marks(marks, 4, 4), 2), pick_marks(Marks(marks, 4, 4), 9)
    ([b'c'], [b'b', b'c', b'd'])
    """
    shards = min(shards, len(found.marks))
    wanted = [found.total * number / shards for number in range(1, shards)]
    return [found.marks[at].key for at in _nearest([mark.before for mark in found.marks], wanted)]
