"""A key range -> the lines of a ZipNum cluster in it, block by block.

With `join`, neighboring blocks of a shard are read together. This saves requests over a network. A block alone is read
by sections, if it has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from cdxmill.errors import InputError, OutageError
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.stages.zipnum.block_pieces import JOINED, BlockPieces, ReadShard, Tables
from cdxmill.stages.zipnum.block_text import BlockText
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex

_Found = TypeVar("_Found")

_GROUP = 32
"""Maximum number of blocks in one read if an answer is read backwards, about as many as `JOINED` allows."""


class BlockReader:
    """Opens blocks. The last one stays open for the next search."""

    def __init__(
        self, read: ReadShard, pieces: type[BlockPieces] = BlockPieces, tables: Tables | None = None
    ) -> None:
        self._read, self._pieces, self._tables = read, pieces, tables or Tables()
        self._last: BlockText | None = None

    def text_of(self, block: BlockRef, low: bytes, read: ReadShard | None = None) -> BlockText:
        """The text of a block, for lines >= `low`. `read` replaces the reader's own function."""
        last = self._last
        if last is None or last.block != block or not last.can_answer(low):
            last = self._last = BlockText(self._pieces(block, read or self._read, self._tables))
        return last

    def read_all(self, run: list[BlockRef], low: bytes) -> Iterator[BlockText]:
        """The texts of neighboring blocks, read together. One block alone is read by sections."""
        last = self._last
        if last is not None and last.block == run[0] and last.can_answer(low) and len(run) == 1:
            yield last
        elif len(run) == 1 and self._pieces.may_have_sections and run[0].shard not in self._tables.without:
            self._last = BlockText(self._pieces(run[0], self._read, self._tables, at_once=True))
            yield self._last
        else:
            yield from self._read_together(run, low)

    def _read_together(self, run: list[BlockRef], low: bytes) -> Iterator[BlockText]:
        shard, start = run[0].shard, run[0].offset
        size = run[-1].offset + run[-1].length - start
        data = b""

        def read_part(_: bytes, offset: int, length: int) -> bytes:
            # the texts of all blocks may be known
            nonlocal data
            data = data or self._read(shard, start, size)
            return data[offset - start : offset - start + length]

        for block in run:
            yield self.text_of(block, low, read_part)


def wanted_blocks(index: SecondaryIndex, low: bytes, high: bytes) -> Iterator[BlockRef]:
    """The blocks that may contain lines >= `low` and < `high`, in order. Raises DamagedCluster."""
    for block in index.blocks(low):
        if block.key >= high:
            return
        yield block


SkipBlock = Callable[[BlockRef, DamagedCluster | InputError], object]
"""What is called for a block that cannot be read, and is skipped then."""


def find_lines(
    blocks: Iterable[BlockRef],
    reader: BlockReader,
    low: bytes,
    high: bytes,
    join: bool,
    few: bool = False,
    skip: SkipBlock | None = None,
) -> Iterator[list[bytes]]:
    """The lines >= `low` and < `high`, one list for each block that contains any.

    With `join`, neighboring blocks are read together; with `few`, the first reads are small, see `joined`. Unless `skip`
    takes what is corrupt, DamagedCluster is raised.
    """
    return filter(
        None, _searched(BlockText.between, _texts(blocks, reader, low, join, few, skip), low, high, skip)
    )


def count_lines(
    blocks: Iterable[BlockRef],
    reader: BlockReader,
    low: bytes,
    high: bytes,
    join: bool,
    skip: SkipBlock | None = None,
) -> int:
    """The number of lines that `find_lines` finds."""
    return sum(_searched(BlockText.count, _texts(blocks, reader, low, join, False, skip), low, high, skip))


def _searched(
    search: Callable[[BlockText, bytes, bytes], tuple[_Found, bool]],
    found: Iterable[BlockText],
    low: bytes,
    high: bytes,
    skip: SkipBlock | None,
) -> Iterator[_Found]:
    for text in found:
        try:
            one, is_beyond = search(text, low, high)
        except (DamagedCluster, InputError) as error:
            _skip_blocks([text.block], error, skip)
            continue
        yield one
        if is_beyond:
            return


def _skip_blocks(blocks: list[BlockRef], error: DamagedCluster | InputError, skip: SkipBlock | None) -> None:
    """Skip blocks that cannot be read. Raises the error if nothing skips them, or a machine is at fault."""
    if skip is None or isinstance(error, OutageError):
        raise error
    for block in blocks:
        skip(block, error)


def find_backwards(
    blocks: list[BlockRef],
    reader: BlockReader,
    low: bytes,
    high: bytes,
    join: bool,
    skip: SkipBlock | None = None,
) -> Iterator[list[bytes]]:
    """The lists of `find_lines` in reverse order. Blocks are read from the end, only as far as lists are taken."""
    end, size = len(blocks), 2 if join else 1
    while end > 0:
        start = max(0, end - size)
        yield from reversed(list(find_lines(blocks[start:end], reader, low, high, join, skip=skip)))
        end, size = start, min(size * 2, _GROUP) if join else 1


def _texts(
    blocks: Iterable[BlockRef],
    reader: BlockReader,
    low: bytes,
    join: bool,
    few: bool = False,
    skip: SkipBlock | None = None,
) -> Iterator[BlockText]:
    """The texts of blocks, in their order. What cannot be read at all is skipped."""
    for run in joined(blocks, few) if join else ([block] for block in blocks):
        try:
            yield from reader.read_all(run, low) if join else (reader.text_of(run[0], low),)
        except (DamagedCluster, InputError) as error:
            _skip_blocks(run, error, skip)


def joined(blocks: Iterable[BlockRef], few: bool = False) -> Iterator[list[BlockRef]]:
    """Groups of neighboring blocks of one shard, to be read together. With `few`, 2 blocks first, then 4, 8 ...

    >>> blocks = [BlockRef(b"k", b"a", 0, 5), BlockRef(b"l", b"a", 5, 9), BlockRef(b"m", b"b", 0, 5)]
    >>> [len(run) for run in joined(blocks)]
    [2, 1]
    """
    most = 2 if few else JOINED
    run: list[BlockRef] = []
    for block in blocks:
        if run and not (len(run) < most and _is_next(run, block)):
            yield run
            run, most = [], most * 2
        run.append(block)
    if run:
        yield run


def _is_next(run: list[BlockRef], block: BlockRef) -> bool:
    last = run[-1]
    is_neighbour = block.shard == last.shard and block.offset == last.offset + last.length
    return is_neighbour and block.offset + block.length - run[0].offset <= JOINED
