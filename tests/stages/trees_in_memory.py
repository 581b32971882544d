"""Prefix B-trees in memory, their readers, and what is in them."""

from __future__ import annotations

import io
import struct
from bisect import bisect_left

from cdxmill.formats.tree.prefix_btree import (
    Item,
)
from cdxmill.stages.prefix_tree.search_tree import HEAD, TreeReader, read_header
from cdxmill.stages.prefix_tree.write_tree import TreeWriter

ALL = b"", b"\xff" * 99


def tree_of(items: list[Item], block_size: int, batch: int = 1 << 20, layout: str = "") -> bytes:
    writer = TreeWriter(block_size, len(items[0][1]), io.BytesIO, layout)
    for start in range(0, len(items), batch):
        some = items[start : start + batch]
        writer.add([key for key, _ in some], [b"\0" + pointer for _, pointer in some])
    out = io.BytesIO()
    assert writer.finish(out) == len(out.getvalue())
    return out.getvalue()


class Counted:
    """`read_at` of bytes; `reads` are those that were asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.data[offset : offset + size]


class Unseen(Counted):
    """Does not list the reads."""

    def __call__(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


def opened(read_at: Counted, size: int, remote: bool = True) -> TreeReader:
    head = read_at(0, HEAD) if remote else b""
    header = read_header(head or read_at(0, 99), read_at)
    return TreeReader(read_at, header, size, None if remote else len(read_at.data), head)


def reader_of(data: bytes, size: int, remote: bool = False) -> TreeReader:
    return opened(Counted(data), size, remote)


def found(reader: TreeReader, low: bytes, high: bytes) -> list[Item]:
    return [item for items in reader.scan(low, high) for item in items]


def wanted(items: list[Item], low: bytes, high: bytes) -> list[Item]:
    return items[bisect_left(items, (low,)) : max(bisect_left(items, (high,)), bisect_left(items, (low,)))]


def numbered(keys: list[bytes]) -> list[Item]:
    return [(key, struct.pack("<H", number % 65536)) for number, key in enumerate(sorted(keys))]


BY_HAND = (
    b"\x0e\0\0\0\x03\0\0\0"
    b"\x01\0\0\0c\0\x02\0\0\0\0\0\0\0"  # root: c leads from block 1 to block 2
    b"\x03\0\0\0b\0\x04\0\0\0\0\0\0\0"  # blocks 3 and 4, with b between them
    b"\x04\0\0\0c\0\x05\0\0\0\0\0\0\0"  # block 4 again, then block 5
    b"a\0\1\0abbb\0\2\0\0\0\0"
    b"b\0\3\0bbbbbbb\0\4\0"
    b"c\0\5\0\0\0\0\0\0\0\0\0\0\0"
)
ITEMS = [(b"a", b"\1\0"), (b"abbb", b"\2\0"), (b"b", b"\3\0"), (b"bbbbbbb", b"\4\0"), (b"c", b"\5\0")]


def pages(count: int) -> list[Item]:
    return numbered([b"com,host%04d)/page/%06d" % (number % 700, number) for number in range(count)])
