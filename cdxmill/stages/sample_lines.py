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
from collections.abc import Iterable

Sample = list[tuple[float, bytes]]


class Reservoir:
    """Keeps `size` of the lines that pass; `rng` decides."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size, self._rng = size, rng
        self._heap: list[tuple[float, bytes]] = []
        self._skip = 0

    def add(self, lines: list[bytes]) -> None:
        """Let `lines` pass. Each may be kept; ` CDX` headers and empty lines are not."""
        if not self._size:
            return
        pos = 0
        while len(self._heap) < self._size and pos < len(lines):
            self._offer(lines[pos], self._rng.random())
            pos += 1
        while pos + self._skip < len(lines):
            pos += self._skip
            self._offer(lines[pos], self._rng.random() * -self._heap[0][0])
            pos += 1
        self._skip -= len(lines) - pos

    def _offer(self, line: bytes, priority: float) -> None:
        if line and not line.startswith(b" CDX"):
            entry = (-priority, _key(line))
            if len(self._heap) < self._size:
                heapq.heappush(self._heap, entry)
            else:
                heapq.heapreplace(self._heap, entry)
        if len(self._heap) == self._size:
            bound = -self._heap[0][0]
            self._skip = int(math.log(1 - self._rng.random()) / math.log1p(-bound)) if bound < 1 else 0

    def sample(self) -> Sample:
        """(priority, `<urlkey> <timestamp>`) of the lines that were kept."""
        return [(-priority, key) for priority, key in self._heap]


def _key(line: bytes) -> bytes:
    return b" ".join(line.split(b" ", 2)[:2])


def merge_samples(samples: Iterable[Sample], size: int) -> Sample:
    """The `size` entries of least priority."""
    merged: Sample = []
    for sample in samples:
        merged = (
            heapq.nsmallest(size, merged + sample) if len(merged) + len(sample) > size else merged + sample
        )
    return merged


def pick_splits(keys: Iterable[bytes], shards: int) -> list[bytes]:
    """Up to `shards` - 1 distinct keys that divide the sampled `keys` evenly, in order."""
    ordered = sorted(keys)
    picked = {ordered[index * len(ordered) // shards] for index in range(1, shards)} if ordered else set()
    return sorted(picked - {ordered[0]}) if picked else []
