"""A uniform sample of all lines, in one pass, whatever their number and the files' sizes.

Each line has a random priority, and the `size` lines of least priority are the sample
(bottom-k sampling). Once the reservoir is full, the distance to the next line that gets
in is drawn instead of a priority for each line (Li's Algorithm L): the rest is counted
only. Reservoirs of different files merge by priority, so a line's chance depends neither
on its file nor on how the files were spread over processes.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect_left
from collections.abc import Iterable

from cdxmill.formats.zipnum_index import key_of
from cdxmill.stages.line_lists import is_capture_line

Sample = list[tuple[float, bytes]]


class Reservoir:
    """Keeps `size` of the lines that pass; `rng` decides."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size, self._rng, self._random = size, rng, rng.random
        self._heap: list[tuple[float, bytes]] = []
        self._skip = 0
        self.begin()

    def begin(self) -> None:
        """An input starts here."""
        self._mark = self._heap.copy(), self._skip, self._rng.getstate()

    def undo(self) -> None:
        """Forget all lines since `begin`; what comes is chosen as if they had not been."""
        heap, self._skip, state = self._mark
        self._heap = heap.copy()
        self._rng.setstate(state)

    def add(self, lines: list[bytes]) -> None:
        """Let `lines` pass. Each may be kept; ` CDX` headers and empty lines are not."""
        pos = self._fill(lines) if len(self._heap) < self._size else 0
        if len(self._heap) < self._size or not self._size:
            return
        while pos + self._skip < len(lines):
            pos += self._skip
            self._replace(lines[pos])
            pos += 1
        self._skip -= len(lines) - pos

    def _fill(self, lines: list[bytes]) -> int:
        """Keep lines until the reservoir is full; how many have passed."""
        pos = 0
        while pos < len(lines) and len(self._heap) < self._size:
            wanted = lines[pos : pos + self._size - len(self._heap)]
            pos += len(wanted)
            self._heap += [(-self._random(), key_of(line)) for line in wanted if is_capture_line(line)]
        if len(self._heap) == self._size:
            heapq.heapify(self._heap)
            self._draw_skip()
        return pos

    def _replace(self, line: bytes) -> None:
        if is_capture_line(line):
            heapq.heapreplace(self._heap, (self._random() * self._heap[0][0], key_of(line)))
        self._draw_skip()

    def _draw_skip(self) -> None:
        """How many lines have a priority above the greatest that is kept, until one has not."""
        self._skip = int(math.log(1 - self._random()) / math.log1p(self._heap[0][0]))

    def sample(self) -> Sample:
        """(priority, `<urlkey> <timestamp>`) of the lines that were kept."""
        return [(-priority, key) for priority, key in self._heap]


def merge_samples(samples: Iterable[Sample], size: int) -> Sample:
    """The `size` entries of least priority."""
    merged: Sample = []
    for sample in samples:
        merged += sample
        if len(merged) > size:
            merged = sorted(merged)[:size]
    return merged


def pick_splits(keys: Iterable[bytes], shards: int) -> list[bytes]:
    """`shards` - 1 distinct keys that divide the sampled `keys` as evenly as can be, in order.

    Fewer where there are fewer distinct keys than `shards`.

    >>> pick_splits([b"a", b"b", b"b", b"b", b"c", b"d"], 3)
    [b'b', b'c']
    """
    ordered = sorted(keys)
    firsts = [index for index, key in enumerate(ordered) if not index or key != ordered[index - 1]]
    shards = min(shards, len(firsts))
    points: list[bytes] = []
    at = 0
    for number in range(1, shards):
        at = _nearest(firsts, len(ordered) * number // shards, at + 1, len(firsts) - shards + number)
        points.append(ordered[firsts[at]])
    return points


def _nearest(numbers: list[int], wanted: int, low: int, high: int) -> int:
    """The index, from `low` to `high`, of the number nearest to `wanted`."""
    index = min(bisect_left(numbers, wanted, low), high)
    is_below_nearer = index > low and wanted - numbers[index - 1] < numbers[index] - wanted
    return index - 1 if is_below_nearer else index
