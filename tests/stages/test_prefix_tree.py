"""Prefix B-trees in memory: what is written is found, in few reads, and damage is noticed."""

from __future__ import annotations

import io
import struct
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.tree.prefix_btree import (
    DataBlocks,
    Header,
    IndexBlock,
    Item,
    format_header,
    format_index_block,
)
from cdxmill.stages.native import outline_block
from cdxmill.stages.prefix_tree import search_tree
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError, TreeReader
from cdxmill.stages.prefix_tree.write_tree import ItemError, NotSortedError, TreeWriter

ALL = b"", b"\xff" * 99


def tree_of(items: list[Item], block_size: int, batch: int = 1 << 20) -> bytes:
    writer = TreeWriter(block_size, len(items[0][1]), io.BytesIO)
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


def reader_of(data: bytes, size: int, remote: bool = False) -> TreeReader:
    return TreeReader(Counted(data), size, None if remote else len(data))


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


def test_a_tree_written_by_hand_is_read() -> None:
    for remote in (False, True):
        reader = reader_of(BY_HAND, 2, remote)
        assert found(reader, *ALL) == ITEMS
        assert found(reader, b"b", b"c") == ITEMS[2:4]
        assert found(reader, b"aa", b"b\0") == ITEMS[1:3]
        assert [found(reader, key, key + b"\0") for key, _ in ITEMS] == [[item] for item in ITEMS]
        assert found(reader, b"bc", b"bd") == found(reader, b"d", b"e") == found(reader, b"", b"a") == []


def test_the_writer_writes_it_with_the_same_bytes() -> None:
    assert tree_of(ITEMS, 14) == BY_HAND
    assert tree_of(ITEMS, 14, batch=1) == BY_HAND


def test_a_tree_of_one_block_has_a_root_without_prefixes() -> None:
    data = tree_of(ITEMS[:2], 14)
    assert data == b"\x0e\0\0\0\x01\0\0\0" + b"\x01".ljust(14, b"\0") + BY_HAND[50:64]
    assert found(reader_of(data, 2), *ALL) == ITEMS[:2]


def test_a_tree_whose_index_blocks_share_no_child_is_read() -> None:
    """The description leaves open where an index block starts: here each starts right of the prefix above it."""
    blocks = [IndexBlock([b"c"], 1), IndexBlock([b"b"], 3), IndexBlock([], 5)]
    index = b"".join(format_index_block(block, 14) for block in blocks)
    data = format_header(Header(14, 3)) + index + BY_HAND[50:]
    for remote in (False, True):
        reader = reader_of(data, 2, remote)
        assert found(reader, *ALL) == ITEMS
        assert [found(reader, key, key + b"\0") for key, _ in ITEMS] == [[item] for item in ITEMS]


def test_prefixes_that_start_no_key_are_read() -> None:
    data = BY_HAND.replace(b"b\0\x04\0\0\0\0", b"ac\0\x04\0\0\0", 1)
    for remote in (False, True):
        reader = reader_of(data, 2, remote)
        assert [found(reader, key, key + b"\0") for key, _ in ITEMS] == [[item] for item in ITEMS]
        assert found(reader, b"ad", b"c") == ITEMS[2:4]


KEYS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=12).map(lambda key: key.replace(b"\0", b"\1")),
        st.text("ab", min_size=1, max_size=10).map(str.encode),
        st.sampled_from([b"com,a)/", b"com,a)/x", b"com,a,b)/", b"com,ab)/"]),
    ),
    min_size=1,
    max_size=120,
)


@settings(max_examples=150, deadline=None)
@given(KEYS, st.integers(22, 200), st.integers(1, 50), st.data())
def test_every_range_of_every_tree_is_found(
    keys: list[bytes], block_size: int, batch: int, data: st.DataObject
) -> None:
    items = numbered(keys)
    tree = tree_of(items, block_size, batch)
    for remote in (False, True):
        reader = reader_of(tree, 2, remote)
        assert found(reader, *ALL) == items
        for _ in range(6):
            low = data.draw(st.one_of(st.sampled_from(keys), st.binary(max_size=6)))
            high = data.draw(
                st.one_of(
                    st.sampled_from(keys), st.just(low + b"\0"), st.just(low + b"\xff"), st.binary(max_size=6)
                )
            )
            assert found(reader, low, high) == wanted(items, low, high)
            assert found(reader, low, high) == wanted(items, low, high)  # a second time, with known outlines


def test_many_equal_keys_are_all_found() -> None:
    items = numbered([b"a"] * 3 + [b"m"] * 500 + [b"z"] * 3)
    for remote in (False, True):
        reader = reader_of(tree_of(items, 64), 2, remote)
        assert found(reader, b"m", b"m\0") == items[3:503]
        assert found(reader, b"n", b"z\0") == items[503:]
        assert found(reader, b"b", b"m") == []


def pages(count: int) -> list[Item]:
    return numbered([b"com,host%04d)/page/%06d" % (number % 700, number) for number in range(count)])


def test_any_range_starts_after_at_most_one_read_per_level() -> None:
    items = pages(6000)
    data = Counted(tree_of(items, 1 << 10))
    levels = TreeReader(data, 2, None).count_reads()
    assert levels == 3
    keys = [key for key, _ in items]
    for number in range(0, len(keys), 7):
        for low, high in (
            (keys[number], keys[number] + b"\0"),  # a key
            (keys[number] + b"x", keys[number] + b"y"),  # no key
            (keys[number][:-1], keys[number][:-1] + b"\xff"),  # a prefix
            (keys[number][:10], b"\xff"),
        ):
            data.reads.clear()
            next(TreeReader(data, 2, None).scan(low, high), None)
            assert len([size for _, size in data.reads if size]) <= levels


def test_a_scan_reads_ever_more_blocks_at_once_and_none_behind_its_end() -> None:
    items = pages(6000)
    data = Counted(tree_of(items, 1 << 10))
    reader = TreeReader(data, 2, None)
    data.reads.clear()
    low, high = b"com,host0100", b"com,host0200"
    assert found(reader, low, high) == wanted(items, low, high)
    sizes = [size // 1024 for _, size in data.reads]
    blocks = -(-sum(len(key) + 3 for key, _ in wanted(items, low, high)) // 1024) + 1
    scans = [size for size in sizes if size > 1]
    assert scans[:3] == [3, 5, 9]  # 2, 4 and 8 blocks, and a part of the next
    assert sum(size - 1 for size in scans) <= blocks + 1


@pytest.mark.parametrize("block_size", [256, 1 << 18])
def test_the_memory_of_a_reader_has_a_limit(block_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_INDEX_BYTES", "_OUTLINE_BYTES"):
        monkeypatch.setattr(search_tree, limit, 1 << 15)
    items = pages(40_000)
    data = tree_of(items, block_size)
    reader = TreeReader(lambda offset, size: data[offset : offset + size], 2, len(data))
    tracemalloc.start()
    try:
        assert sum(map(len, reader.scan(*ALL))) == len(items)
        assert tracemalloc.get_traced_memory()[0] < 1 << 16
    finally:
        tracemalloc.stop()


def test_a_billion_urls_need_three_reads() -> None:
    """66 bytes per URL, as in the crawl of 2012. Prefixes of 19,000 of its URLs have 23 bytes on average; here they have 30."""
    block, billion = 1 << 16, 10**9
    for pointer in (32, 34):
        data_blocks = billion // (block // (66 + 1 + pointer)) + 1
        per_block = (block - 4) // (30 + 5)
        levels = 0
        while data_blocks > 1:
            data_blocks = -(-data_blocks // (per_block - 1))
            levels += 1
        assert levels + 1 == 3


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ([b"b", b"a"], "not sorted"),
        ([b"a", b"b\0c"], "a key with a NUL"),
        ([b"", b"a"], "an empty key"),
        ([b"a", b"k" * 62], "longer than a block of 64 bytes"),
    ],
)
def test_what_no_tree_can_have_is_an_error(keys: list[bytes], reason: str) -> None:
    for batch in (1, 2):
        writer = TreeWriter(64, 2, io.BytesIO)
        with pytest.raises(ItemError, match=reason):
            for start in range(0, 2, batch):
                some = keys[start : start + batch]
                writer.add(some, [b"\0\1\1"] * len(some))


def test_a_key_that_just_fits_is_stored() -> None:
    items = numbered([b"a" * 61, b"b" * 61, b"b" * 60 + b"c"])
    with pytest.raises(ItemError, match="a prefix is longer"):
        tree_of(items, 64)
    items = numbered([b"a" * 55, b"b" * 55, b"b" * 54 + b"c"])
    assert found(reader_of(tree_of(items, 64), 2), *ALL) == items


def test_a_disorder_between_two_batches_is_an_error() -> None:
    writer = TreeWriter(64, 2, io.BytesIO)
    writer.add([b"b"], [b"\0\1\1"])
    with pytest.raises(NotSortedError) as error:
        writer.add([b"a"], [b"\0\1\1"])
    assert (error.value.before, error.value.key) == (b"b", b"a")


@pytest.mark.parametrize("size", [0, 9, 1 << 25])
def test_impossible_block_sizes_are_an_error(size: int) -> None:
    with pytest.raises(ValueError, match="block size"):
        TreeWriter(size, 2, io.BytesIO)


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


def test_the_blocks_of_the_index_are_in_order() -> None:
    items = pages(2000)
    tree = tree_of(items, 256)
    index_blocks = struct.unpack("<II", tree[:8])[1]
    from cdxmill.formats.tree.prefix_btree import parse_index_block

    blocks = [
        parse_index_block(tree[8 + 256 * number : 8 + 256 * (number + 1)]) for number in range(index_blocks)
    ]
    assert all(block.prefixes for block in blocks)
    leaves = [block for block in blocks if block.first >= index_blocks]
    assert leaves[0].first == index_blocks
    assert all(one.last == other.first for one, other in pairwise(leaves))


@settings(max_examples=300, deadline=None)
@given(
    st.integers(10, 40),
    st.integers(1, 4),
    st.lists(st.sampled_from([0, 1, 2, 3, 4, 97, 98, 255]), max_size=200),
)
def test_any_bytes_are_searched_or_are_an_error(block_size: int, index_blocks: int, body: list[int]) -> None:
    data = struct.pack("<II", block_size, index_blocks) + bytes(body)
    for remote in (False, True):
        try:
            reader = reader_of(data, 2, remote)
            keys = [key for key, _ in found(reader, *ALL)]
            assert keys == sorted(keys)
            reader.count_reads()
            found(reader, b"a", b"b")
        except DamagedTreeError as error:
            assert 0 <= error.offset <= 8 + block_size * (1 << 32)


@settings(max_examples=500, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.sampled_from([b"a", b"b", b"ab", b"\xff", b"\0", b"\0\1", b"\0\1\2\3"]), max_size=150),
)
def test_compiled_code_outlines_a_block_as_python_does(size: int, parts: list[bytes]) -> None:
    data = b"".join(parts)
    try:
        wanted = search_tree._outline_of(data, DataBlocks(size))
    except ValueError:
        wanted = None
    assert outline_block is not None
    assert outline_block(data, size, 32) == wanted


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 200])
def test_a_valid_block_has_an_outline(count: int) -> None:
    data = b"".join(b"%03d\0\0\1" % (number // 2) for number in range(count)) + bytes(count % 3)
    assert outline_block is not None
    found = outline_block(data, 2, 32)
    assert found == search_tree._outline_of(data, DataBlocks(2))
    assert found[1] == [*range(0, 6 * count, 6 * 32), 6 * count]
