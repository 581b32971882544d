"""An answer that nobody waits for any more, or that takes too long, ends at its next block."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from cdxmill.cluster.overlays import Overlay
from cdxmill.errors import StoppedError
from cdxmill.search.opened import BlockSource, OpenCluster
from cdxmill.stages.zipnum.block_pieces import ReadShard
from cdxmill.stages.zipnum.find_lines import BlockReader
from cdxmill.stages.zipnum.secondary_index import SecondaryIndex

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


class WatchedCluster:
    """An open cluster whose blocks are read for one answer."""

    def __init__(self, reader: BlockSource, watch: Watch) -> None:
        self._reader, self._watch = reader, watch

    @property
    def cluster(self) -> str:
        """The name in messages."""
        return self._reader.cluster

    @property
    def index(self) -> SecondaryIndex:
        """The blocks."""
        return self._reader.index

    @property
    def overlays(self) -> Sequence[Overlay]:
        """As of the cluster."""
        return self._reader.overlays

    @property
    def is_remote(self) -> bool:
        """Whether each read costs a request."""
        return self._reader.is_remote

    def read(self, shard: bytes, offset: int, size: int, /) -> bytes:
        """Bytes of a shard, if the answer is still wanted."""
        self._watch.check()
        return self._reader.read(shard, offset, size)

    def blocks(self, read: ReadShard | None = None) -> BlockReader:
        """A reader of blocks."""
        return self._reader.blocks(read or self.read)

    def block_lines(self) -> int | None:
        """As of the cluster."""
        return self._reader.block_lines()

    def has_full_blocks(self) -> bool:
        """As of the cluster."""
        return self._reader.has_full_blocks()

    def has_changed(self) -> bool:
        """As of the cluster."""
        return self._reader.has_changed()


def watched(clusters: Iterable[BlockSource], watch: Watch) -> OpenCluster:
    """The clusters as one, for one answer."""
    first, *others = (WatchedCluster(one, watch) for one in clusters)
    return OpenCluster.of(first, *others)
