"""A cluster or CDX file that is open for many queries. Lines of a cluster, of its overlays and of clusters beside it are read as one.

key range -> the overlays that may have its lines, by their key filters -> lines of the cluster, of these and of others, merged
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Protocol

from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.errors import UsageError
from cdxmill.stages.zipnum.block_pieces import ReadShard
from cdxmill.stages.zipnum.find_lines import BlockReader, SkipBlock, find_backwards, find_lines, wanted_blocks
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex

if TYPE_CHECKING:
    from cdxmill.cluster.overlays import Overlay

_BATCH = 1000
Lists = Iterator[list[bytes]]


class BlockSource(Protocol):
    """What a query needs of an open cluster or CDX file."""

    @property
    def cluster(self) -> str:
        """The name in messages."""

    @property
    def index(self) -> SecondaryIndex:
        """The blocks."""

    @property
    def is_remote(self) -> bool:
        """Whether each read costs a request, so that neighboring blocks are better read together."""

    def read(self, shard: bytes, offset: int, size: int, /) -> bytes:
        """Bytes of a shard."""

    def blocks(self, read: ReadShard | None = None) -> BlockReader:
        """A reader of blocks, by `read` or else by its own function. What is found out about blocks is shared by all."""

    def block_lines(self) -> int | None:
        """Lines of a full block. None: the cluster does not record it. 0: it is a CDX file."""

    def has_full_blocks(self) -> bool:
        """Whether all blocks are full but the last one of each shard, as far as is known."""

    @property
    def overlays(self) -> Sequence[Overlay]:
        """The overlays of a cluster. Their blocks are read with `read`, too."""

    def has_changed(self) -> bool:
        """Whether others have changed what is searched since it was opened, so that it is better opened again."""


@dataclass(eq=False)
class OpenCluster:
    """A cluster or CDX file that is open for many queries.

    `blocks` reads its blocks. With `join`, neighboring blocks are read in one request. Lines of `others` are as if they were
    in this one. `read` replaces the function of `reader`.
    """

    reader: BlockSource
    blocks: BlockReader
    join: bool
    others: Sequence[OpenCluster] = ()
    read: ReadShard | None = None
    _of_overlays: dict[Overlay, BlockReader] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, reader: BlockSource, *others: BlockSource, read: ReadShard | None = None) -> OpenCluster:
        """The cluster of `reader`, and of others. Blocks are joined if each read costs a network request."""
        return cls(reader, reader.blocks(read), reader.is_remote, tuple(map(cls.of, others)), read)

    def new_blocks(self) -> BlockReader:
        """Another reader of its blocks."""
        return self.reader.blocks(self.read)

    def overlays(self, low: bytes, high: bytes) -> list[Overlay]:
        """The overlays that may have lines >= `low` and < `high`. Raises InputError."""
        overlays = self.reader.overlays
        if not overlays:
            return []
        from cdxmill.formats.clusters.key_filter import wanted_bits  # most clusters have no overlays

        wanted = wanted_bits(low, high)
        return [one for one in overlays if wanted is None or one.may_have(wanted)]

    def own_indexes(self, low: bytes, high: bytes) -> list[SecondaryIndex]:
        """The index of the cluster, and those of its overlays that may have such lines."""
        return [self.reader.index, *(one.index for one in self.overlays(low, high))]

    def indexes(self, low: bytes, high: bytes) -> list[SecondaryIndex]:
        """As `own_indexes`, and those of the other clusters."""
        return [index for one in (self, *self.others) for index in one.own_indexes(low, high)]

    def is_merged(self, low: bytes, high: bytes) -> bool:
        """Whether such lines may be in more than one index."""
        return bool(self.others or self.overlays(low, high))

    def sources(self, low: bytes, high: bytes) -> list[tuple[SecondaryIndex, BlockReader]]:
        """The index and the blocks of the cluster, and those of the overlays that may have such lines."""
        overlays = [(one.index, self._reader(one)) for one in self.overlays(low, high)]
        return [(self.reader.index, self.blocks), *overlays]

    def lines(self, low: bytes, high: bytes, few: bool = False, skip: SkipBlock | None = None) -> Lists:
        """The lines >= `low` and < `high`, sorted, in lists. Raises InputError, DamagedCluster.

        `few` and `skip` are as in `find_lines`. Of `others`, no block is skipped.
        """
        blocks = wanted_blocks(self.reader.index, low, high)
        own = find_lines(blocks, self.blocks, low, high, self.join, few, skip)
        overlays = self.overlays(low, high)
        if not (overlays or self.others):
            return own
        from cdxmill.stages.lines.merge_lines import merge_lines  # slow to import

        found = list(map(in_order, (own, *self.lines_of(overlays, low, high, skip))))
        found += [_named(one, in_order(one.lines(low, high, few))) for one in self.others]
        return merge_lines(found)

    def lines_of(
        self, overlays: Iterable[Overlay], low: bytes, high: bytes, skip: SkipBlock | None = None
    ) -> list[Lists]:
        """The lines of each of `overlays`."""
        return [
            find_lines(
                wanted_blocks(one.index, low, high), self._reader(one), low, high, self.join, skip=skip
            )
            for one in overlays
        ]

    def backwards(self, low: bytes, high: bytes, skip: SkipBlock | None = None) -> Lists:
        """The lists of `lines` in reverse order: the lines of each are sorted. Few are read that are not taken."""
        found = [
            find_backwards(list(wanted_blocks(index, low, high)), blocks, low, high, self.join, skip)
            for index, blocks in self.sources(low, high)
        ]
        found += [_named(one, one.backwards(low, high)) for one in self.others]
        if len(found) == 1:
            return found[0]
        latest_first = ((lines[::-1] for lines in lists) for lists in found)
        return (lines[::-1] for lines in merge_backwards(latest_first, _BATCH))

    def _reader(self, overlay: Overlay) -> BlockReader:
        if overlay not in self._of_overlays:
            self._of_overlays[overlay] = self.new_blocks()
        return self._of_overlays[overlay]


def _named(cluster: OpenCluster, lists: Lists) -> Lists:
    """The lists of a cluster, whose errors name it."""
    with damage_as_input_error(cluster.reader.cluster):
        yield from lists


def in_order(lists: Lists) -> Lists:
    """The lists as they are. Raises DamagedCluster if they are not sorted."""
    last = b""
    for lines in lists:
        if lines[0] < last or lines != sorted(lines):
            raise DamagedCluster("its lines are not sorted")
        last = lines[-1]
        yield lines


def merge_backwards(sources: Iterable[Iterable[list[bytes]]], size: int) -> Lists:
    """The lines of sources that are sorted, the last one first, each line once, in lists of `size`."""
    lines = merge(*map(chain.from_iterable, sources), reverse=True)
    distinct = (next(same) for _, same in groupby(lines))
    while some := list(islice(distinct, size)):
        yield some


def page_bounds(
    indexes: Iterable[SecondaryIndex], low: bytes, high: bytes, page: int, size: int
) -> tuple[bytes, bytes]:
    """The bounds of one page of several indexes: the range of keys in which `size` blocks begin. Raises UsageError."""
    starts = merge(*((block.key for block in wanted_blocks(index, low, high)) for index in indexes))
    first = next(islice(starts, page * size, None), None)
    if first is None and page:
        raise no_page(page)
    end = next(islice(starts, size - 1, None), high)
    return max(low, first) if first and page else low, max(low, end)


def no_page(page: int) -> UsageError:
    """The error for a page that does not exist."""
    return UsageError(
        f"page {page} does not exist; the first page is 0, --show-num-pages prints their number"
    )
