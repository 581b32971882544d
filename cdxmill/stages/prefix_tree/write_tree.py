"""Sorted keys with pointers -> a prefix B-tree, in one pass.

Data blocks go to a scratch file, because header and index, which stand in front of them, are complete only at the end.
Each level of the index has a scratch file, too. Memory is one block of the data and of each level.

    level 2              [0 | p 1]                       numbers count the blocks of the level below from 0
    level 1        [0 | a 1 | b 2] [2 | p 3 | q 4]       a block starts with the last child of the block before
    data          [..] [..] [..] [..] [..]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import IO

from cdxmill.formats.tree.name_groups import pack_names
from cdxmill.formats.tree.prefix_btree import (
    MOST_BLOCKS,
    NUMBER,
    IndexBlock,
    format_index_block,
    out_of_order,
    parse_index_block,
    separator,
)
from cdxmill.formats.tree.tree_header import (
    CHECK,
    FINGERPRINT,
    LEAST_BLOCK,
    MOST_BLOCK,
    Header,
    block_check,
    format_header,
)

_SHOWN = 80
_COPY = 1 << 20


class ItemError(ValueError):
    """An item cannot be in a tree. `key` is its key."""

    def __init__(self, reason: str, key: bytes) -> None:
        super().__init__(f"{reason}: {key[:_SHOWN]!r}")
        self.key = key


class NotSortedError(ItemError):
    """A key is less than `before`, the one before it."""

    def __init__(self, before: bytes, key: bytes) -> None:
        super().__init__("not sorted", key)
        self.before = before


class TreeWriter:
    """Takes items in order, then writes the file. `scratch` creates a file to write and read.

    Without a `layout`, the file has the format of 2012. Raises ValueError if no tree can have such blocks.
    """

    def __init__(
        self, block_size: int, pointer_size: int, scratch: Callable[[], IO[bytes]], layout: str = ""
    ) -> None:
        least = max(LEAST_BLOCK, pointer_size + 2) + (CHECK if layout else 0)
        if not least <= block_size <= MOST_BLOCK:
            raise ValueError(f"invalid block size {block_size}: expected {least} to {MOST_BLOCK} bytes")
        self.items = self.blocks = 0
        self._layout, self._block_size = layout, block_size
        self._content = sha256()
        self._size, self._rest = block_size - (CHECK if layout else 0), pointer_size + 1
        self._scratch = scratch
        self._data = scratch()
        self._parts: list[bytes] = []
        self._room = self._size
        self._last = b""
        self._levels: list[_Level] = [_Level(scratch(), self._size)]

    def add(self, keys: Sequence[bytes], tails: Sequence[bytes]) -> None:
        """Add items: their keys, and their pointers, each after a NUL. Raises ItemError."""
        if not keys:
            return
        self._check(keys)
        ends = list(accumulate(map(len, keys), initial=0))  # those of the keys alone
        parts: list[bytes] = [b""] * (2 * len(keys))
        parts[::2], parts[1::2] = keys, tails
        start, rest = 0, self._rest
        while True:
            most = ends[start] + start * rest + self._room
            stop = bisect_right(range(len(ends)), most, start, key=lambda end: ends[end] + end * rest) - 1
            self._parts += parts[2 * start : 2 * stop]
            self._room = most - ends[stop] - stop * rest
            if stop == len(keys):
                break
            if len(keys[stop]) + rest > self._size:
                raise ItemError(f"an item is longer than a block of {self._size} bytes", keys[stop])
            self._end_block(keys[stop - 1] if stop else self._last, keys[stop])
            start = stop
        self._last = keys[-1]
        self.items += len(keys)

    def _check(self, keys: Sequence[bytes]) -> None:
        if (found := out_of_order(self._last, keys)) is not None:
            raise NotSortedError(*found)
        if not keys[0] and not self.items:  # keys are sorted, so an empty one is the first
            raise ItemError("an empty key", keys[0])
        if b"\0" in b"".join(keys):
            raise ItemError("a key with a NUL", next(key for key in keys if b"\0" in key))

    def _end_block(self, left: bytes, right: bytes) -> None:
        """Write the block that ends with the key `left`. The next one starts with `right`."""
        self._write_block()
        self._add_prefix(0, separator(left, right))

    def _write_block(self) -> None:
        block = b"".join(self._parts).ljust(self._size, b"\0")
        if self._layout:
            check = block_check(self.blocks, block)
            self._content.update(check)
            block += check
        self._data.write(block)
        self._parts.clear()
        self._room = self._size
        self.blocks += 1
        if self.blocks >= MOST_BLOCKS:
            raise ItemError("the tree has too many blocks; use larger ones", self._last)

    def _add_prefix(self, number: int, prefix: bytes) -> None:
        if len(prefix) + 1 + 2 * NUMBER > self._size:
            raise ItemError(f"a prefix is longer than a block of {self._size} bytes", prefix)
        if not self._levels[number].add(prefix):
            return
        if number + 1 == len(self._levels):
            self._levels.append(_Level(self._scratch(), self._size))
        self._add_prefix(number + 1, prefix)

    @property
    def levels(self) -> int:
        """Levels of the index."""
        return len(self._levels)

    @property
    def index_blocks(self) -> int:
        """Blocks of the index; right after `finish`."""
        return sum(level.blocks for level in self._levels)

    def finish(self, out: IO[bytes], archives: Sequence[bytes] = ()) -> int:
        """Write the whole file, with the names of archives, and return its bytes.

        Requires: at least one item was added, and it is called once.
        """
        self._write_block()
        for level in self._levels:
            level.end_block()
        groups = pack_names(archives)
        header = self._header(archives, groups)
        out.write(format_header(header))
        self._write_index(out)
        self._data.seek(0)
        while data := self._data.read(_COPY):
            out.write(data)
        out.write(b"".join(groups))
        return header.offset(self.blocks + header.index_blocks) + sum(header.names)

    def _header(self, archives: Sequence[bytes], groups: Sequence[bytes]) -> Header:
        if not self._layout:
            return Header(self._block_size, self.index_blocks)
        for group in groups:
            self._content.update(group)
        fingerprint = self._content.digest()[:FINGERPRINT]
        size, names = len(archives), tuple(map(len, groups))
        numbers = self._block_size, self.index_blocks, self.blocks, self.items
        return Header(*numbers, self._layout, fingerprint, size, names)

    def _write_index(self, out: IO[bytes]) -> None:
        number = end = 0
        for level in reversed(self._levels):
            end += level.blocks
            for block in level.read():
                content = format_index_block(IndexBlock(block.prefixes, block.first + end), self._size)
                out.write(content + block_check(number, content) if self._layout else content)
                number += 1


class _Level:
    """One level of the index. `blocks` counts those that are complete."""

    def __init__(self, file: IO[bytes], block_size: int) -> None:
        self.blocks = 0
        self._file, self._block_size = file, block_size
        self._first = 0
        self._prefixes: list[bytes] = []
        self._room = block_size - NUMBER

    def add(self, prefix: bytes) -> bool:
        """Add the prefix between the last child and a next one. True if a new block starts with them."""
        size = len(prefix) + 1 + NUMBER
        is_full = size > self._room
        if is_full:
            self.end_block()
        self._prefixes.append(prefix)
        self._room -= size
        return is_full

    def end_block(self) -> None:
        """Write the block that has begun."""
        self._file.write(format_index_block(IndexBlock(self._prefixes, self._first), self._block_size))
        self.blocks += 1
        self._first += len(self._prefixes)
        self._prefixes = []
        self._room = self._block_size - NUMBER

    def read(self) -> Iterator[IndexBlock]:
        """The blocks, with numbers from 0."""
        self._file.seek(0)
        while data := self._file.read(self._block_size):
            yield parse_index_block(data)
