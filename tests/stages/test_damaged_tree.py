"""A damaged prefix B-tree in memory is noticed, or the answers are those of the whole one."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from cdxmill.formats.tree.prefix_btree import (
    Item,
)
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError, TreeReader, read_header

from .trees_in_memory import (
    ALL,
    BY_HAND,
    Counted,
    found,
    pages,
    reader_of,
    tree_of,
    wanted,
)


def answers(read: Callable[[], TreeReader], items: list[Item], truth: list[Item]) -> tuple[int, list[bytes]]:
    """How many searches end with an error, and the keys for which the answer misses an item or has one too many."""
    wrong, failed = [], 0
    for key, _ in items:
        try:
            keys = [one for one, _ in found(read(), key, key + b"\0")]
        except DamagedTreeError:
            failed += 1
            continue
        if keys != [one for one, _ in wanted(truth, key, key + b"\0")]:
            wrong.append(key)
    return failed, wrong


@pytest.mark.parametrize("remote", [False, True])
def test_a_changed_byte_of_the_index_never_changes_an_answer(remote: bool) -> None:
    items = pages(60)
    tree = tree_of(items, 96)
    index = 8 + 96 * struct.unpack("<II", tree[:8])[1]
    assert index > 3 * 96
    for offset in range(index):
        for flip in (0x01, 0x80):
            changed = bytearray(tree)
            changed[offset] ^= flip
            data = bytes(changed)
            _, wrong = answers(lambda data=data: reader_of(data, 2, remote), items[::3], items)  # type: ignore[misc]
            assert not wrong, (offset, flip)


@pytest.mark.parametrize("remote", [False, True])
def test_a_changed_byte_of_a_data_block_is_noticed_or_changes_one_key(remote: bool) -> None:
    items = pages(40)
    tree = tree_of(items, 96)
    start = 8 + 96 * struct.unpack("<II", tree[:8])[1]
    for offset in range(start, len(tree), 3):
        changed = bytearray(tree)
        changed[offset] ^= 0x01
        data = bytes(changed)
        try:
            kept = found(reader_of(data, 2, remote), *ALL)
        except DamagedTreeError:
            continue
        assert len(kept) == len(items)
        assert sum(one != other for one, other in zip(kept, items, strict=True)) == 1
        assert [key for key, _ in kept] == sorted(key for key, _ in kept)


@pytest.mark.parametrize("remote", [False, True])
def test_any_change_of_a_checked_block_is_noticed(remote: bool) -> None:
    items = pages(60)
    tree = tree_of(items, 96, layout="a:u16")
    for offset in range(0, len(tree), 3):
        data = tree[:offset] + bytes((tree[offset] ^ 0x10,)) + tree[offset + 1 :]
        failed = 0
        wrong: list[bytes] = []
        try:
            failed, wrong = answers(lambda data=data: reader_of(data, 2, remote), items[::2], items)  # type: ignore[misc]
        except DamagedTreeError:
            failed = 1
        assert failed, offset
        assert not wrong, offset


@pytest.mark.parametrize("remote", [False, True])
def test_an_item_that_is_zeroed_at_the_end_of_its_block_is_noticed(remote: bool) -> None:
    items = pages(60)
    tree = tree_of(items, 96, layout="a:u16")
    header = read_header(tree, Counted(tree))
    for number in range(header.index_blocks, (header.last_block or 0) + 1):
        start, end = header.offset(number), header.offset(number + 1) - 4
        content = tree[start:end].rstrip(b"\0")
        key = content.rpartition(b"com,")[2].partition(b"\0")[0]
        size = len(content) - content.rindex(b"com,") + 1
        data = tree[: start + len(content) + 1 - size] + bytes(size) + tree[start + len(content) + 1 :]
        with pytest.raises(DamagedTreeError, match="CRC32"):
            found(reader_of(data, 2, remote), b"com," + key, b"com," + key + b"\0")


@pytest.mark.parametrize("remote", [False, True])
def test_a_truncated_tree_is_noticed_at_every_length(remote: bool) -> None:
    items = pages(40)
    tree = tree_of(items, 96)
    for size in range(0, len(tree), 5 if remote else 1):
        data = tree[:size]
        with pytest.raises(DamagedTreeError):
            found(reader_of(data, 2, remote), *ALL)
        if remote:
            _, wrong = answers(lambda data=data: reader_of(data, 2, remote), items[::4], items)  # type: ignore[misc]
            assert not wrong


def test_a_tree_with_more_at_its_end_is_noticed() -> None:
    tree = tree_of(pages(40), 96)
    for more in (b"x", bytes(96), tree[-96:]):
        with pytest.raises(DamagedTreeError):
            reader_of(tree + more, 2)


def test_a_circle_of_index_blocks_ends() -> None:
    data = bytearray(BY_HAND)
    data[22:26] = b"\x01\0\0\0"
    data[28:32] = b"\x02\0\0\0"
    for remote in (False, True):
        with pytest.raises(DamagedTreeError):
            found(reader_of(bytes(data), 2, remote), b"a", b"b")
