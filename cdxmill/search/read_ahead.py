"""Runs of blocks -> reads that are started before their bytes are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum_index import BlockRef
from cdxmill.stages.zipnum.block_text import ReadShard

READS = 8
"""Reads in progress at a time, of up to 8 MiB each."""


class _Read(NamedTuple):
    """A range of a shard that is being read."""

    shard: bytes
    start: int
    size: int
    data: Future[bytes]

    def contains(self, shard: bytes, offset: int, size: int) -> bool:
        is_inside = self.start <= offset and offset + size <= self.start + self.size
        return self.shard == shard and is_inside


class ReadAhead:
    """Reads the blocks of `runs`, in their order, before they are asked for.

    `read` reads a range of a shard, and `submit` starts such a read in a thread. Bytes before the current run are
    read directly.
    """

    def __init__(
        self, runs: Iterator[list[BlockRef]], read: ReadShard, submit: Callable[..., Future[bytes]]
    ) -> None:
        self._runs, self._read, self._submit = runs, read, submit
        self._started: deque[_Read] = deque()
        self._current: _Read | None = None

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` of a shard."""
        while self._current is None or not self._current.contains(shard, offset, size):
            self._start_reads()
            if not any(read.contains(shard, offset, size) for read in self._started):
                return self._read(
                    shard, offset, size
                )  # an answer over many blocks goes back to its first one
            self._current = self._started.popleft()
        start = offset - self._current.start
        return self._current.data.result()[start : start + size]

    def _start_reads(self) -> None:
        while len(self._started) < READS and (run := next(self._runs, None)) is not None:
            start, size = run[0].offset, run[-1].offset + run[-1].length - run[0].offset
            data = self._submit(self._read, run[0].shard, start, size)
            self._started.append(_Read(run[0].shard, start, size, data))
