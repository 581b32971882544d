"""Split points that divide lines evenly: from a uniform sample of all lines, or from the blocks of a cluster.

A sample has the `size` lines of least random priority (bottom-k sampling). Once the reservoir is full, the distance to
the next window of the text with a line that gets in is drawn instead of a priority for each line (Li's Algorithm L).
Reservoirs are merged by priority, so the chance of a line depends neither on its file nor on the tasks.

An index has a key for every block, and all blocks but the last one of a shard have the same number of lines.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum import BlockRef, key_of
from cdxmill.stages.lines.line_lists import Piece, is_capture_line

Sample = list[tuple[float, bytes]]

WINDOW = 128
"""Bytes of text that are searched or skipped at once. CDX lines are longer, so mostly one line begins there, or none."""


class Reservoir:
    """Keeps `size` of the lines that pass: those of least priority, which `rng` draws.

    Lines whose priority is not below `ceiling` are skipped at once. That saves time if several
    reservoirs will be merged, and far more lines pass than are kept.
    """

    def __init__(self, size: int, rng: random.Random, ceiling: float = 1.0) -> None:
        self._size, self._rng, self._random = size, rng, rng.random
        self._heap: list[tuple[float, bytes]] = []
        self._bound = ceiling  # above the priorities of the lines that are looked at
        self._lower_ceiling(ceiling)
        self._draw_skip()  # not used; without it, equal seeds would not give the samples that they gave before
        self._ahead = WINDOW * self._draw_skip()
        self.begin()

    def begin(self) -> None:
        """Mark the start of an input."""
        self._mark = self._heap.copy(), self._ceiling, self._bound, self._ahead, self._rng.getstate()

    def undo(self) -> None:
        """Forget all lines since `begin`. Later lines are chosen as if these had never passed."""
        heap, ceiling, self._bound, self._ahead, state = self._mark
        self._heap = heap.copy()
        self._lower_ceiling(ceiling)
        self._rng.setstate(state)

    def add_text(self, text: bytes | bytearray, start: int, end: int) -> None:
        """Let the lines pass that begin after a line end in `text[start:end]`.

        Instead of lines, windows of the text are skipped or searched. A line belongs to the window that has
        the line end before it, so each line has the same chance, and skipped lines need not be counted.
        Requires: a line end in `text[end:]`.
        """
        find, draw, low = text.find, self._draw_skip, start + self._ahead
        while low < end and self._size:
            high = low + WINDOW
            stop = high if high < end else end
            at = find(b"\n", low if low > start else start, stop)
            while at >= 0:
                self._take(bytes(text[at + 1 : find(b"\n", at + 1)]))
                at = find(b"\n", at + 1, stop)
            if high > end:  # the window continues in the next text
                break
            low = high + WINDOW * draw()
        self._ahead = low - end

    def _take(self, line: bytes) -> None:
        """Draw the priority of a line, and keep it if that is low enough: the kept line of greatest priority then goes."""
        if not is_capture_line(line):
            return
        priority = self._random() * self._bound
        if len(self._heap) < self._size:
            self._heap.append((-priority, key_of(line)))
            if len(self._heap) == self._size:
                heapq.heapify(self._heap)
                self._lower_ceiling(-self._heap[0][0])
        elif priority < self._ceiling:
            heapq.heapreplace(self._heap, (-priority, key_of(line)))
            self._lower_ceiling(-self._heap[0][0])

    def _lower_ceiling(self, ceiling: float) -> None:
        self._ceiling = ceiling
        self._log_passed = math.log1p(-ceiling) if ceiling < 1 else -math.inf

    def _draw_skip(self) -> int:
        """Draw the number of windows to skip: those whose lines have no priority below the ceiling.

        All lines of the window that follows get a priority below this ceiling, even if the first of them lowers it.
        """
        self._bound = self._ceiling
        if self._ceiling == 1:
            return 0
        return int(math.log(1 - self._random()) / self._log_passed)

    def sample(self) -> Sample:
        """(priority, `<urlkey> <timestamp>`) of each line kept."""
        return [(-priority, key) for priority, key in self._heap]


class TextSampler:
    """Lets all lines of a text pass a reservoir; the text comes in pieces that are cut anywhere."""

    def __init__(self, reservoir: Reservoir) -> None:
        self._reservoir = reservoir
        self._begun: list[bytes | bytearray] = [b"\n"]
        """The line end before a line, and what has come of the line."""

    def add(self, piece: bytes | bytearray) -> None:
        """The next piece of the text."""
        first, last = piece.find(b"\n"), piece.rfind(b"\n")
        if first < 0:
            self._begun.append(piece)
            return
        line = b"".join((*self._begun, piece[: first + 1]))
        self._reservoir.add_text(line, 0, len(line) - 1)
        self._reservoir.add_text(piece, first, last)
        self._begun = [piece[last:]]

    def end(self) -> None:
        """The text is complete: its last line may have no LF."""
        line = b"".join(self._begun)
        if len(line) > 1:
            self._reservoir.add_text(line + b"\n", 0, len(line))


def sampled(pieces: Iterable[Piece], reservoir: Reservoir) -> Iterator[Piece]:
    """The pieces of a text, cut anywhere, whose lines pass `reservoir` then."""
    sampler = TextSampler(reservoir)
    for piece in pieces:
        sampler.add(piece)
        yield piece
    sampler.end()


def add_pieces(pieces: Iterable[bytes | bytearray], reservoir: Reservoir) -> None:
    """Let all lines of a text pass `reservoir`."""
    for _ in sampled(pieces, reservoir):
        pass


def merge_samples(samples: Iterable[Sample], size: int) -> Sample:
    """The `size` entries of least priority."""
    merged: Sample = []
    for sample in samples:
        merged += sample
        if len(merged) > size:
            merged = sorted(merged)[:size]
    return merged


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
