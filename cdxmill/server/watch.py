"""An answer that nobody waits for any more, or that takes too long, ends at its next block."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from cdxmill.errors import StoppedError
from cdxmill.search.opened import BlockSource, OpenCluster
from cdxmill.stages.zipnum.block_pieces import ReadShard

SECONDS = 120.0
"""The most that the making of one answer may take. Time in which a client does not read is not counted."""


class Ended(StoppedError):
    """The answer is not needed any more, or its time is over."""


class Watch:
    """The time that is left for one answer."""

    def __init__(self) -> None:
        self.spent, self.is_gone = 0.0, False
        self._since = time.monotonic()

    def begin(self) -> None:
        """A slice of the answer is made from now on."""
        self._since = time.monotonic()

    def end(self) -> None:
        """A slice is done."""
        self.spent += time.monotonic() - self._since

    def check(self) -> None:
        """Raise Ended if the answer should end."""
        if self.is_gone:
            raise Ended("the client has gone")
        if self.spent + time.monotonic() - self._since > SECONDS:
            raise Ended(f"the answer took more than {SECONDS:.0f} s; ask for less, or page by page")


def watched(clusters: Iterable[BlockSource], watch: Watch) -> OpenCluster:
    """The clusters as one, for one answer: each read of a block ends it, if it is not wanted any more."""
    first, *others = (OpenCluster.of(one, read=_watched_read(one.read, watch)) for one in clusters)
    return replace(first, others=others) if others else first


def _watched_read(read: ReadShard, watch: Watch) -> ReadShard:
    def read_watched(shard: bytes, offset: int, size: int) -> bytes:
        watch.check()
        return read(shard, offset, size)

    return read_watched
