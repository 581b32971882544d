"""Prefix B-trees in memory: what is written is found, in few reads, and damage is noticed."""

from __future__ import annotations

import io
import struct
import tracemalloc
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.tree.prefix_btree import (
    DataBlocks,
    IndexBlock,
    format_index_block,
)
from cdxmill.formats.tree.tree_header import Header, format_header
from cdxmill.stages.native import outline_block
from cdxmill.stages.prefix_tree import search_tree, write_tree
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError
from cdxmill.stages.prefix_tree.write_tree import ItemError, NotSortedError, TreeWriter

from .trees_in_memory import (
    ALL,
    BY_HAND,
    ITEMS,
    Counted,
    Unseen,
    found,
    numbered,
    opened,
    pages,
    reader_of,
    tree_of,
    wanted,
)


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
    trees = tree_of(items, block_size, batch), tree_of(items, block_size + 4, batch, "a:u16")
    for tree, remote in product(trees, (False, True)):
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


def test_any_range_starts_after_at_most_one_read_per_level() -> None:
    items = pages(6000)
    data = Counted(tree_of(items, 1 << 10))
    levels = opened(data, 2).count_reads()
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
            next(opened(data, 2).scan(low, high), None)
            assert len([size for _, size in data.reads if size]) <= levels


def test_a_scan_reads_ever_more_blocks_at_once_and_none_behind_its_end() -> None:
    items = pages(6000)
    data = Counted(tree_of(items, 1 << 10))
    reader = opened(data, 2)
    data.reads.clear()
    low, high = b"com,host0500", b"com,host0600"
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
    reader = opened(Unseen(data), 2, remote=False)
    tracemalloc.start()
    try:
        assert sum(map(len, reader.scan(*ALL))) == len(items)
        assert tracemalloc.get_traced_memory()[0] < 1 << 16
    finally:
        tracemalloc.stop()


def test_a_billion_urls_need_three_reads() -> None:
    """66 bytes per URL, as in the crawl of 2012. Prefixes of 19,000 of its URLs have 23 bytes on average; here they have 30."""
    block, billion = 1 << 16, 10**9
    for pointer in (32, 30):
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


def test_more_blocks_than_a_tree_can_number_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    items = numbered([b"%050d" % number for number in range(9)])
    monkeypatch.setattr(write_tree, "MOST_BLOCKS", 10)
    assert found(reader_of(tree_of(items, 64), 2), *ALL) == items
    monkeypatch.setattr(write_tree, "MOST_BLOCKS", 9)
    with pytest.raises(ItemError, match="the tree has too many blocks"):
        tree_of(items, 64)


@pytest.mark.parametrize("size", [0, 9, 1 << 25])
def test_impossible_block_sizes_are_an_error(size: int) -> None:
    with pytest.raises(ValueError, match="block size"):
        TreeWriter(size, 2, io.BytesIO)


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


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=200, deadline=None)
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


def test_a_range_without_items_gives_no_empty_lists() -> None:
    reader = reader_of(BY_HAND, 2)
    for low, high in ((b"aa", b"ab"), (b"b\x01", b"ba"), (b"c\x01", b"d")):
        assert list(reader.scan(low, high)) == []
    assert list(map(len, reader.scan(b"a", b"c"))) == [2, 2]


def test_the_blocks_of_a_short_range_are_one_request() -> None:
    items = numbered([b"%06d" % number for number in range(60_000)])
    reads = Counted(tree_of(items, 1024))
    reader = opened(reads, 2)
    assert found(reader, b"030000", b"030150") == wanted(items, b"030000", b"030150")
    data = reader.header.offset(reader.header.index_blocks)
    assert len([offset for offset, _ in reads.reads if offset >= data]) == 1
