"""A range of keys -> the items of a prefix B-tree in it.

    root -> index block -> ... -> first data block -> the data blocks behind it, until a key is beyond the range

A block is checked when it is first read. In a file of 2012, whose blocks have no CRC-32, what follows from a prefix of the
index alone, without a key that shows it, is checked against the key behind that prefix: so a changed prefix hides nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from cachetools import LRUCache

from cdxmill.formats.tree.prefix_btree import DataBlocks, IndexBlock, Item, parse_index_block
from cdxmill.formats.tree.tree_header import CHECK, Header, header_size, parse_header
from cdxmill.stages.native import outline_block
from cdxmill.stages.window import ReadAt

HEAD = (1 << 16) + (1 << 13)
"""Bytes of the first read over a network: the header, and the root if it has the usual size."""
_EDGE = 1 << 10
"""Bytes that are read behind data blocks in a file of 2012, for the first key of the next one."""
_MOST_AHEAD = 8 << 20
"""Most bytes that are read at once over a network."""
_INDEX_BYTES = 32 << 20
"""Memory for index blocks: those that were used last."""
_OUTLINE_BYTES = 64 << 20
"""Memory for the outlines of data blocks, 4 KiB each for a block of 64 KiB."""
_KEY_BYTES = 80
"""Memory for a key in a list, with its offset, besides its own bytes."""
_APART = 32
"""Items from one key of an outline to the next."""


class DamagedTreeError(Exception):
    """The file is corrupt or truncated, seen at `offset`."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class _Outline(NamedTuple):
    """Each 32nd key of a data block with its offset, the end of the items, and the last key."""

    keys: list[bytes]
    offsets: list[int]
    last: bytes


def _outline_of(data: bytes, blocks: DataBlocks) -> _Outline:
    """The outline of a data block. Raises ValueError if it is corrupt. `outline_block` is 20 times as fast."""
    keys = blocks.keys(data)
    rest, ends = blocks.size + 1, list(accumulate(map(len, keys), initial=0))
    offsets = [ends[place] + place * rest for place in range(0, len(keys), _APART)]
    return _Outline(keys[::_APART], [*offsets, ends[-1] + len(keys) * rest], keys[-1])


def _cache(most: int) -> LRUCache[int, Any]:
    """Values that start with a list of keys, in `most` bytes of memory. One value is kept, however large it is."""

    def size(value: tuple[list[bytes], ...]) -> int:
        return min(most, sum(map(len, value[0])) + _KEY_BYTES * (len(value[0]) + 8))

    return LRUCache(most, size)


class _Place(NamedTuple):
    """Where a range starts: a data block, and the prefixes on both sides of it; b"" and None at the ends of the tree.

    `last` is the last data block that may have a key of the range, None if only the blocks of a file of 2012 show it.
    """

    block: int
    lower: bytes
    upper: bytes | None
    last: int | None
    end: bytes | None
    """The prefix behind `last`."""


def read_header(head: bytes, read_at: ReadAt) -> Header:
    """The header of a file that starts with `head`; more is read if it is longer. Raises DamagedTreeError."""
    try:
        size = header_size(head)
        return parse_header(head if size <= len(head) else read_at(0, size))
    except ValueError as error:
        raise DamagedTreeError(str(error), 0) from None


class TreeReader:
    """An open tree. `size` is that of the file, None if it is remote: then blocks are read together.

    `head` is the start of the file, as far as it was read; `read_index` reads index blocks, by default `read_at` does. Raises
    DamagedTreeError, here and from all methods.
    """

    def __init__(
        self, read_at: ReadAt, header: Header, pointer_size: int, size: int | None, head: bytes = b""
    ) -> None:
        self.header = header
        self.read_at = self.read_index = read_at
        self._is_remote = size is None
        self._is_checked = header.data_blocks is not None
        self._held, self._held_at = head, 0
        self._indexes: LRUCache[int, IndexBlock] = _cache(_INDEX_BYTES)
        self._outlines: LRUCache[int, _Outline] = _cache(_OUTLINE_BYTES)
        self._data = DataBlocks(pointer_size)
        if size is not None:
            self._check_size(size)

    def _check_size(self, size: int) -> None:
        """Check that a file has as many blocks as its index says."""
        rest = size - self.header.start - sum(self.header.names)
        blocks, rest = divmod(rest, self.header.block_size)
        stated = (
            blocks if self.header.data_blocks is None else self.header.data_blocks + self.header.index_blocks
        )
        if rest or blocks <= self.header.index_blocks or blocks != stated:
            raise DamagedTreeError(
                f"{size} bytes are not whole blocks: the file is truncated or corrupt", size
            )
        first, last = self._path(0)[-1], self._path(-1)[-1]
        if first != self.header.index_blocks or last != blocks - 1:
            ends = f"its index has the data blocks {first} to {last}"
            raise DamagedTreeError(
                f"{ends}, but the file those from {self.header.index_blocks} to {blocks - 1}", size
            )

    def count_reads(self) -> int:
        """The blocks from the root to a data block."""
        return len(self._path(0))

    def _path(self, side: int) -> list[int]:
        """The numbers of the blocks from the root to the first data block, or with -1 to the last one."""
        path = [0]
        while path[-1] < self.header.index_blocks:
            block = self._index(path[-1])
            child = block.last if side else block.first
            if child <= path[-1]:
                raise self._damaged(
                    "the index block is corrupt (its children are no blocks below it)", path[-1]
                )
            path.append(child)
        return path

    def scan(self, low: bytes, high: bytes) -> Iterator[list[Item]]:
        """The items with keys >= `low` and < `high`, in order, in non-empty lists."""
        if high <= low:
            return
        place = self._find(low, high)
        number, held, ahead = place.block, place.block, 1
        while True:
            if self._is_remote and number == held:
                ahead = self._read_ahead(number, min(2 * ahead, self._most_ahead()), place.last)
                held = number + ahead
            if number > place.block and self._is_end(number):
                return
            is_beyond = yield from self._scan_block(number, low, high, place)
            if is_beyond:
                return
            if number == place.last:
                self._check_beyond(number + 1, place.end)
                return
            number += 1

    def _scan_block(
        self, number: int, low: bytes, high: bytes, place: _Place
    ) -> Generator[list[Item], None, bool]:
        """The items of one block that are in the range. Returns whether it has a key beyond it."""
        is_first = number == place.block
        for items in self._lists(number, low if is_first else b"", place):
            start = bisect_left(items, (low,)) if is_first else 0
            end = bisect_left(items, (high,), start)
            if end > start:
                yield items[start:end]
            if end < len(items):
                return True
        return False

    def _lists(self, number: int, low: bytes, place: _Place) -> Iterator[list[Item]]:
        """The items of a data block in lists. The first one has items < `low`, unless the block has none."""
        outline = self._outline(number)
        self._check_place(number, outline, low, place)
        start = max(bisect_left(outline.keys, low) - 1, 0)
        at = self.header.offset(number)
        for index in range(start, len(outline.keys)):
            first, stop = outline.offsets[index : index + 2]
            yield self._data.items(self._part(at + first, stop - first))

    def _check_place(self, number: int, outline: _Outline, low: bytes, place: _Place) -> None:
        """Compare a block with the one before; the first of a range with the prefixes that have led to it."""
        before = self._outlines.get(number - 1)
        if before is not None and before.last > outline.keys[0]:
            raise self._damaged("the data block is corrupt (its keys are not behind those before)", number)
        if number != place.block:
            return
        first = outline.keys[0]
        if first < place.lower or (place.upper is not None and outline.last > place.upper):
            raise self._damaged("the keys of the data block are outside its prefixes in the index", number)
        is_shown = low > first or not place.lower or first.startswith(place.lower)
        if not is_shown and self._outline(number - 1).last >= low:  # only the block before shows the truth
            raise self._damaged("the index does not match the data block", number - 1)

    def _check_beyond(self, number: int, prefix: bytes | None) -> None:
        """Check that the first key of a block, which is not read, is not less than the prefix before it."""
        if self._is_checked or prefix is None or len(prefix) >= _EDGE:
            return
        data = self._part(self.header.offset(number), len(prefix) + 1)
        if data.partition(b"\0")[0] < prefix:
            reason = (
                "the index does not match the data block"
                if data
                else "the file is truncated before the block"
            )
            raise self._damaged(reason, number)

    def _outline(self, number: int) -> _Outline:
        """The outline of a data block, which is checked when it is first read."""
        outline = self._outlines.get(number)
        if outline is not None:
            return outline
        data = self._block(number)
        found = outline_block(data, self._data.size, _APART) if outline_block is not None else None
        try:
            outline = _outline_of(data, self._data) if found is None else _Outline(*found)
        except ValueError as error:
            raise self._damaged(str(error), number) from None
        self._outlines[number] = outline
        return outline

    def _find(self, low: bytes, high: bytes) -> _Place:
        number, lower = 0, b""
        upper: bytes | None = None
        while True:
            block = self._index(number)
            prefixes = block.prefixes
            if prefixes and (prefixes[0] < lower or (upper is not None and prefixes[-1] > upper)):
                raise self._damaged("the prefixes of the index block are outside those of its parent", number)
            place = bisect_left(prefixes, low)
            if block.last >= self.header.index_blocks or block.first <= number:
                if block.first < self.header.index_blocks:
                    raise self._damaged(
                        "the index block is corrupt (its children are no blocks below it)", number
                    )
                return self._place(block, (lower, upper), place, high)
            lower = prefixes[place - 1] if place else lower
            upper = prefixes[place] if place < len(prefixes) else upper
            number = block.first + place

    def _place(self, leaf: IndexBlock, bounds: tuple[bytes, bytes | None], place: int, high: bytes) -> _Place:
        prefixes, (lower, upper) = leaf.prefixes, bounds
        last = bisect_left(prefixes, high, place)
        end = prefixes[last] if last < len(prefixes) else upper
        is_known = end is not None and end >= high
        return _Place(
            leaf.first + place,
            prefixes[place - 1] if place else lower,
            prefixes[place] if place < len(prefixes) else upper,
            leaf.first + last if is_known else self.header.last_block,
            end if is_known else None,
        )

    def first_read(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The offset and the bytes of the data blocks that a scan of a range reads first."""
        place = self._find(low, high)
        last = place.block + 1 if place.last is None else min(place.block + 1, place.last)
        return self.range_of(place.block, last)

    def unknown_index(self, numbers: Iterable[int]) -> list[int]:
        """Those of these index blocks that have to be read, in order. The root is read with the header."""
        return sorted({number for number in numbers if number and number not in self._indexes})

    def take_index(self, number: int, data: bytes) -> None:
        """Keep an index block that was read."""
        self._indexes[number] = self._parsed(number, data)

    def child(self, number: int, low: bytes) -> int:
        """The child of an index block that leads to the first key that is not less than `low`."""
        block = self._index(number)
        return block.first + bisect_left(block.prefixes, low)

    def _index(self, number: int) -> IndexBlock:
        known = self._indexes.get(number)
        if known is None:
            size = self.header.block_size
            data = self._part(self.header.offset(number), size, is_index=True)
            known = self._indexes[number] = self._parsed(number, data)
        return known

    def _parsed(self, number: int, data: bytes) -> IndexBlock:
        try:
            return parse_index_block(self._content(number, data))
        except ValueError as error:
            raise self._damaged(str(error), number) from None

    def _block(self, number: int) -> bytes:
        """The content of a data block."""
        return self._content(number, self._part(self.header.offset(number), self.header.block_size))

    def _content(self, number: int, data: bytes) -> bytes:
        """The content of a block, without its check."""
        if len(data) < self.header.block_size:
            raise self._damaged("the file is truncated in or before the block", number)
        if not self._is_checked:
            return data
        content = data[:-CHECK]
        if self.header.check(number, content) != data[-CHECK:]:
            raise self._damaged("the block is corrupt (CRC32 mismatch)", number)
        return content

    def _is_end(self, number: int) -> bool:
        """Whether a file of 2012 ends before a block. Raises DamagedTreeError if it should not."""
        if self._is_checked:
            return False
        if self._part(self.header.offset(number), 1):
            return False
        if self._path(-1)[-1] != number - 1:
            raise self._damaged("the file is truncated before the block", number)
        return True

    def _most_ahead(self) -> int:
        return max(2, _MOST_AHEAD // self.header.block_size)

    def _read_ahead(self, number: int, blocks: int, last: int | None) -> int:
        """Hold that many blocks, but none behind `last`. Returns how many."""
        if last is not None:
            blocks = max(1, min(blocks, last + 1 - number))
        start, size = self.range_of(number, number + blocks - 1)
        if not self._is_held(start, size):
            self._held, self._held_at = self.read_at(start, size), start
            if self._is_checked:
                self._outlines.clear()  # what was read again was not checked yet
        return blocks

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """The offset and the bytes of data blocks that are read together."""
        edge = 0 if self._is_checked else _EDGE
        return self.header.offset(first), (last + 1 - first) * self.header.block_size + edge

    def _is_held(self, offset: int, size: int) -> bool:
        return (
            self._is_remote and self._held_at <= offset and offset + size <= self._held_at + len(self._held)
        )

    def _part(self, offset: int, size: int, is_index: bool = False) -> bytes:
        """Bytes of the file; fewer at its end."""
        if self._is_held(offset, size):
            start = offset - self._held_at
            return self._held[start : start + size]
        return (self.read_index if is_index else self.read_at)(offset, size)

    def _damaged(self, reason: str, number: int) -> DamagedTreeError:
        return DamagedTreeError(reason, self.header.offset(number))
