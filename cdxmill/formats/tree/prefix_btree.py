"""A prefix B-tree: sorted keys with pointers of a fixed size, in blocks. docs/formats/prefix-btree.md is the specification.

header   see tree_header.py
index    number (prefix NUL number)...  NUL...    numbers of blocks; the root is block 0
data     (key NUL pointer)...           NUL...
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise
from operator import le
from typing import NamedTuple

from cdxmill.regex import regex

NUMBER = 4
"""Bytes of a block number."""
MOST_BLOCKS = 1 << 32

_NUMBER = struct.Struct("<I")
_ENTRIES = regex(rb"(?:[^\0]++\0.{4})*+", re.S)
_ENTRY = regex(rb"([^\0]++)\0(.{4})", re.S)

Item = tuple[bytes, bytes]
"""A key and its pointer."""


class IndexBlock(NamedTuple):
    """The numbers of a block's children, and the prefixes that separate them: one less."""

    prefixes: list[bytes]
    first: int

    @property
    def last(self) -> int:
        """The number of the last child. Children are neighbors."""
        return self.first + len(self.prefixes)


def separator(left: bytes, right: bytes) -> bytes:
    """The shortest start of `right` that is greater than `left`; `right` itself if the two are equal.

    Requires: left <= right.

    >>> separator(b"com,a)/x", b"com,b)/y"), separator(b"a", b"ab"), separator(b"a", b"a")
    (b'com,b', b'ab', b'a')
    """
    size = next(
        (pos for pos, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), len(left)
    )
    return right[: size + 1]


def format_index_block(block: IndexBlock, block_size: int) -> bytes:
    r"""One index block, padded. Requires: it fits.

    >>> format_index_block(IndexBlock([b"b"], 3), 12)
    b'\x03\x00\x00\x00b\x00\x04\x00\x00\x00\x00\x00'
    """
    parts = [_NUMBER.pack(block.first)]
    for number, prefix in enumerate(block.prefixes, block.first + 1):
        parts += prefix, b"\0", _NUMBER.pack(number)
    return b"".join(parts).ljust(block_size, b"\0")


def parse_index_block(data: bytes) -> IndexBlock:
    r"""The content of one index block. Raises ValueError if it is corrupt.

    >>> parse_index_block(b"\x03\0\0\0b\0\x04\0\0\0\0\0")
    IndexBlock(prefixes=[b'b'], first=3)
    """
    matched = _ENTRIES.match(data, NUMBER)
    if len(data) < NUMBER or matched is None or data.count(b"\0", matched.end()) != len(data) - matched.end():
        raise ValueError("the index block is corrupt")
    found = _ENTRY.findall(data, NUMBER, matched.end())
    prefixes = [prefix for prefix, _ in found]
    first: int = _NUMBER.unpack_from(data)[0]
    numbers = struct.unpack(f"<{len(found)}I", b"".join(number for _, number in found))
    if numbers != tuple(range(first + 1, first + 1 + len(found))):
        raise ValueError("the index block is corrupt (its block numbers do not follow each other)")
    if not are_sorted(prefixes):
        raise ValueError("the index block is corrupt (its prefixes are not sorted)")
    return IndexBlock(prefixes, first)


def are_sorted(keys: Sequence[bytes]) -> bool:
    """Whether no key is less than the one before."""
    return all(map(le, keys, islice(keys, 1, None)))


def out_of_order(before: bytes, keys: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """The first of `keys` that is less than the one before it, after that one. `before` is in front of all. Requires: a key.

    >>> out_of_order(b"a", [b"b", b"c"]), out_of_order(b"a", [b"b", b"a", b"c"]), out_of_order(b"a", [b"a", b"a"])
    (None, (b'b', b'a'), None)
    """
    if before <= keys[0] and are_sorted(keys):
        return None
    return next((one, other) for one, other in pairwise((before, *keys)) if other < one)


class DataBlocks:
    """Parses data blocks whose pointers have `size` bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._whole, self._key, self._item = _patterns(size)

    def keys(self, data: bytes) -> list[bytes]:
        r"""All keys of a block. Raises ValueError if it is corrupt or not sorted.

        >>> DataBlocks(2).keys(b"a\0\0\1b\0\2\0\0\0")
        [b'a', b'b']
        """
        if not self._whole.fullmatch(data):  # else a search for items would skip bytes
            raise ValueError("the data block is corrupt")
        keys: list[bytes] = self._key.findall(data)
        if not keys:
            raise ValueError("the data block is corrupt (it has no item)")
        if not are_sorted(keys):
            raise ValueError("the data block is corrupt (its keys are not sorted)")
        return keys

    def items(self, data: bytes) -> list[Item]:
        r"""The items of a part of a block that `keys` has accepted. The part starts and ends with an item.

        >>> DataBlocks(2).items(b"a\0\0\1b\0\2\0")
        [(b'a', b'\x00\x01'), (b'b', b'\x02\x00')]
        """
        return self._item.findall(data)


@lru_cache(maxsize=8)
def _patterns(size: int) -> tuple[re.Pattern[bytes], ...]:
    """Those of a whole block, of an item with its key, and of an item with key and pointer."""
    item = rb"[^\0]++\0.{%d}" % size
    texts = rb"(?:%b)*+\0*+" % item, rb"([^\0]++)\0.{%d}" % size, rb"([^\0]++)\0(.{%d})" % size
    return tuple(re.compile(text, re.S) for text in texts)
