"""A key range -> the lines of a ZipNum cluster in it, block by block; a block is inflated only as far as needed.

    compressed   ##########|##########|####......      inflated piece by piece
    text                   [........................]  kept from the last line start that may still be needed

Searches come in ascending order. Text before the start of the last search is dropped.

With `join`, neighboring blocks of a shard are read together. This saves requests over a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from isal import isal_zlib

from cdxmill.formats.clusters.zipnum import MAX_BLOCK, BlockRef
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex

ReadShard = Callable[[bytes, int, int], bytes]
"""(shard, offset, size) -> bytes of the shard, fewer at its end."""

_BLOCK_PIECE = 1 << 14
"""Compressed bytes per piece, about 80 KiB of text. 8 to 16 KiB take the same time. Smaller pieces need more calls, and
larger ones inflate more text after the answer (24 KiB: 2 %, 32 KiB: 5 % more time)."""


class BlockText:
    """The text of `block`, read by `read`. A corrupt block raises DamagedCluster, here or while it is read."""

    def __init__(self, block: BlockRef, read: ReadShard) -> None:
        check_length(block)
        self.block = block
        self._read = read
        self._pieces = self._checked()
        self._text = bytearray()
        self._is_whole = False
        self._floor = b""

    def can_answer(self, low: bytes) -> bool:
        """Whether the text from `low` was not dropped yet."""
        return low >= self._floor

    def between(self, low: bytes, high: bytes) -> tuple[list[bytes], bool]:
        """The lines >= `low` and < `high`, and whether the block contains a line >= `high`.

        Requires: `low` is not less than in any earlier search.
        """
        first, last = self._find(low, high)
        lines = bytes(self._text[first:last]).split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines, last < len(self._text)

    def count(self, low: bytes, high: bytes) -> tuple[int, bool]:
        """Like `between`, but only the number of lines."""
        first, last = self._find(low, high)
        end = last == len(self._text) and last > first and not self._text.endswith(b"\n")
        return self._text.count(b"\n", first, last) + end, last < len(self._text)

    def _find(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The start and end of the lines >= `low` and < `high` in the text."""
        self._floor = low
        if not self._is_whole and not self._reaches(high):
            self._inflate_to(low, high)
        first = self._first_at(low, 0)
        return first, self._first_at(high, first)

    def _inflate_to(self, low: bytes, high: bytes) -> None:
        """Inflate up to a whole line >= `high`. Drop pieces whose lines are all < `low`."""
        for piece in self._pieces:
            end = piece.rfind(b"\n")
            start = piece.rfind(b"\n", 0, end) + 1 if end > 0 else 0
            if start and piece[start:end] < low:
                self._text = bytearray(piece[end + 1 :])
                continue
            self._text += piece
            if self._reaches(high):
                return
        if not self._is_whole:
            raise self._corrupt("as reported before")

    def _reaches(self, high: bytes) -> bool:
        """Whether the text contains a whole line >= `high`."""
        end = self._text.rfind(b"\n")
        return end >= 0 and self._text[self._text.rfind(b"\n", 0, end) + 1 : end] >= high

    def _checked(self) -> Iterator[bytes]:
        """The text in pieces. Raises DamagedCluster if it does not begin with the key of the block."""
        key, start = self.block.key, b""
        pieces = self._inflated()
        while not self._is_whole and len(start) <= len(key):
            start += next(pieces)
        if not start.startswith(key):
            why = f"the block does not begin with its key {key[:80]!r}"
            raise _damaged(self.block, f"{why}; index and shard are from different clusters")
        yield start
        yield from pieces

    def _inflated(self) -> Iterator[bytes]:
        """The text in pieces."""
        inflater, size = isal_zlib.decompressobj(wbits=31), 0
        _, shard, offset, length = self.block
        for pos in range(0, max(length, 1), _BLOCK_PIECE):
            wanted = min(_BLOCK_PIECE, length - pos)
            data = self._read(shard, offset + pos, wanted)
            if len(data) < wanted:
                raise self._corrupt(f"the shard ends before its {length} bytes")
            try:
                piece: bytes = inflater.decompress(data)
            except isal_zlib.IsalError as error:  # type: ignore[misc]
                raise self._corrupt(str(error)) from None
            size += len(piece)
            if size > MAX_BLOCK:
                raise self._corrupt("it has more than 1 GiB of lines")
            self._is_whole = inflater.eof
            if self._is_whole != (pos + wanted == length) or inflater.unused_data:
                raise self._corrupt(f"its {length} bytes are not one gzip member")
            yield piece

    def _first_at(self, key: bytes, left: int) -> int:
        """The offset of the first line >= `key`, searched from `left`. The end of the text if there is none."""
        text, size = self._text, len(key)
        right = len(text)  # lines before `left` are < `key`, lines from `right` are not
        while left < right:
            start = text.rfind(b"\n", left, (left + right) // 2) + 1 or left
            end = text.find(b"\n", start, start + size)
            if text[start : end if end >= 0 else start + size] < key:
                left = text.find(b"\n", start) + 1 or len(text)
            else:
                right = start
        return left

    def _corrupt(self, reason: str) -> DamagedCluster:
        return _damaged(self.block, f"the block is corrupt ({reason})")


def check_length(block: BlockRef) -> None:
    """Raise DamagedCluster if the length of a block is impossible, before it is read."""
    if block.length > MAX_BLOCK:
        raise _damaged(block, f"the block is corrupt ({block.length} bytes are too many for a block)")


def _damaged(block: BlockRef, why: str) -> DamagedCluster:
    return DamagedCluster(f"{block.shard.decode(errors='replace')}@{block.offset}: {why}")


JOINED = 8 << 20
"""Maximum bytes of neighboring blocks in one read, about 30 blocks of 3000 lines. A larger block is read alone."""

_GROUP = 32
"""Maximum number of blocks in one read if an answer is read backwards, about as many as `JOINED` allows."""


class BlockReader:
    """Opens blocks. The last one stays open for the next search."""

    def __init__(self, read: ReadShard, text: Callable[[BlockRef, ReadShard], BlockText] = BlockText) -> None:
        self._read, self._text = read, text
        self._last: BlockText | None = None

    def text_of(self, block: BlockRef, low: bytes, read: ReadShard | None = None) -> BlockText:
        """The text of a block, for lines >= `low`. `read` replaces the reader's own function."""
        last = self._last
        if last is None or last.block != block or not last.can_answer(low):
            last = self._last = self._text(block, read or self._read)
        return last

    def read_all(self, run: list[BlockRef], low: bytes) -> Iterator[BlockText]:
        """The texts of neighboring blocks, read together."""
        shard, start = run[0].shard, run[0].offset
        size = run[-1].offset + run[-1].length - start
        last = self._last
        if last is not None and last.block == run[0] and last.can_answer(low) and len(run) == 1:
            yield last
            return
        for block in run:
            check_length(block)
        data = self._read(shard, start, size)
        for block in run:
            yield self.text_of(
                block, low, lambda _, offset, size: data[offset - start : offset - start + size]
            )


def wanted_blocks(index: SecondaryIndex, low: bytes, high: bytes) -> Iterator[BlockRef]:
    """The blocks that may contain lines >= `low` and < `high`, in order. Raises DamagedCluster."""
    for block in index.blocks(low):
        if block.key >= high:
            return
        yield block


def find_lines(
    blocks: Iterable[BlockRef], reader: BlockReader, low: bytes, high: bytes, join: bool, few: bool = False
) -> Iterator[list[bytes]]:
    """The lines >= `low` and < `high`, one list for each block that contains any. Raises DamagedCluster.

    With `join`, neighboring blocks are read together; with `few`, the first reads are small, see `joined`.
    """
    for text in texts(blocks, reader, low, join, few):
        lines, is_beyond = text.between(low, high)
        if lines:
            yield lines
        if is_beyond:
            return


def find_backwards(
    blocks: list[BlockRef], reader: BlockReader, low: bytes, high: bytes, join: bool
) -> Iterator[list[bytes]]:
    """The lists of `find_lines` in reverse order. Blocks are read from the end, only as far as lists are taken."""
    end, size = len(blocks), 2 if join else 1
    while end > 0:
        start = max(0, end - size)
        yield from reversed(list(find_lines(blocks[start:end], reader, low, high, join)))
        end, size = start, min(size * 2, _GROUP) if join else 1


def texts(
    blocks: Iterable[BlockRef], reader: BlockReader, low: bytes, join: bool, few: bool = False
) -> Iterator[BlockText]:
    """The texts of blocks, in their order."""
    if not join:
        for block in blocks:
            yield reader.text_of(block, low)
    else:
        for run in joined(blocks, few):
            yield from reader.read_all(run, low)


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
