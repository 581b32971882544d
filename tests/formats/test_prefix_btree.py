"""Prefix B-trees of docs/formats/prefix-btree.md, written by hand and read, and read and written."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from cdxmill.formats.tree.pointer_layout import CAPTURE, CLASSIC, Layout
from cdxmill.formats.tree.prefix_btree import (
    DataBlocks,
    IndexBlock,
    are_sorted,
    format_index_block,
    out_of_order,
    parse_index_block,
    separator,
)
from cdxmill.formats.tree.tree_header import (
    CHECK,
    LEAST_BLOCK,
    MOST_BLOCK,
    Header,
    format_header,
    header_size,
    is_tree,
    parse_header,
)


def test_the_classic_pointer_has_32_bytes() -> None:
    assert CLASSIC.size == struct.calcsize("<QQIQI") == 32
    assert CLASSIC.tails([[1], [2], [3], [4], [5]]) == [b"\0" + struct.pack("<QQIQI", 1, 2, 3, 4, 5)]
    assert CAPTURE.size == 30


def test_a_header_is_two_little_endian_numbers() -> None:
    assert parse_header(b"\x00\x00\x01\x00\x03\x00\x00\x00") == Header(65536, 3)
    assert Header(65536, 3).offset(2) == 131080  # the example of the original description


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\1\0\1\0\0", bytes(8), b"\x09\0\0\0\1\0\0\0", b"\xff" * 8, b"\0\0\1\0\0\0\0\0"]
)
def test_an_impossible_header_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"corrupt|less than"):
        parse_header(data)


def test_a_changed_byte_of_our_header_is_an_error() -> None:
    header = Header(65536, 3, 7, 99, "capture", bytes(range(16)), 5, (100, 20))
    data = format_header(header)
    assert (parse_header(data + b"more"), header.start, len(data)) == (header, 77, 77)
    for offset in range(len(data)):
        with pytest.raises(ValueError, match=r"corrupt|less than"):
            parse_header(data[:offset] + bytes((data[offset] ^ 1,)) + data[offset + 1 :])


@pytest.mark.parametrize(
    ("block_size", "is_right"),
    [(LEAST_BLOCK - 1, False), (LEAST_BLOCK, True), (MOST_BLOCK, True), (MOST_BLOCK + 1, False)],
)
def test_blocks_have_a_least_and_a_largest_size(block_size: int, is_right: bool) -> None:
    for header in (Header(block_size, 1), Header(block_size, 1, 2, 7, "capture", bytes(16), 5, (9,))):
        data = format_header(header)
        if is_right:
            assert parse_header(data) == header
        else:
            with pytest.raises(ValueError, match=f"blocks of {block_size} bytes"):
                parse_header(data)
    assert is_tree(struct.pack("<II", block_size, 1), 8 + 2 * block_size) == is_right


@pytest.mark.parametrize("groups", [1, 3])
def test_a_header_whose_parts_do_not_fill_it_is_an_error(groups: int) -> None:
    header = Header(65536, 3, 7, 99, "capture", bytes(16), 5, (100, 20))
    text = bytearray(format_header(header)[:-CHECK])
    start = header.start - CHECK - 4 * len(header.names) - len(header.layout)
    struct.pack_into("<I", text, start - 4, groups)
    with pytest.raises(ValueError, match=r"the header is corrupt$"):
        parse_header(bytes(text) + crc32(text).to_bytes(CHECK, "little"))


@pytest.mark.parametrize("size", [0, 8, 52, 1 << 25, 0xFFFFFFFF])
def test_a_header_of_an_impossible_size_is_an_error(size: int) -> None:
    with pytest.raises(ValueError, match="the header is corrupt"):
        header_size(b"cdxtree1" + struct.pack("<I", size))


@pytest.mark.parametrize(
    ("head", "size", "is_one"),
    [
        (b"cdxtree1", 8, True),
        (struct.pack("<II", 100, 1), 208, True),
        (struct.pack("<II", 100, 1), 308, True),
        (struct.pack("<II", 100, 1), 108, False),
        (struct.pack("<II", 100, 2), 208, False),
        (struct.pack("<II", 100, 1), 209, False),
        (struct.pack("<II", 100, 1), 200, False),
        (struct.pack("<II", 100, 0), 208, False),
        (struct.pack("<II", 100, 1)[:7], 208, False),
        (b"\x1f\x8b\x08\0" + struct.pack("<I", 1), 8 + 2 * 0x088B1F, False),
        (b"com,a)/ ", 8, False),
    ],
)
def test_a_tree_of_2012_is_known_by_its_size(head: bytes, size: int, is_one: bool) -> None:
    assert is_tree(head, size) == is_one


def test_an_index_block_may_be_filled_to_its_last_byte() -> None:
    data = b"\x01\0\0\0c\0\x02\0\0\0"
    assert parse_index_block(data) == IndexBlock([b"c"], 1)
    assert format_index_block(IndexBlock([b"c"], 1), 10) == data
    assert parse_index_block(b"\x01\0\0\0" + bytes(6)) == IndexBlock([], 1)


def test_numbers_with_nul_bytes_and_prefixes_with_any_other_byte_are_read() -> None:
    block = IndexBlock([b"\x01", b"a\xff", b"b"], 0x00FF00FF)
    assert parse_index_block(format_index_block(block, 64)) == block


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\0\0",
        b"\x01\0\0\0c\0\x02\0\0",  # truncated
        b"\x01\0\0\0c\0\x03\0\0\0",  # not the next number
        b"\x01\0\0\0c\0\x02\0\0\0b\0\x03\0\0\0",  # not sorted
        b"\x01\0\0\0c\0\x02\0\0\0\0\0x",  # no padding
        b"\x01\0\0\0cccccccccccc",
        b"\xff\xff\xff\xffc\0\0\0\0\0",
    ],
)
def test_a_corrupt_index_block_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="corrupt"):
        parse_index_block(data)


@pytest.mark.parametrize(
    "data",
    [b"", bytes(9), b"a\0\1\2b\0\1", b"a\0\1\2\0\0b\0\1\2", b"b\0\1\2a\0\1\2", b"a" * 9, b"a\0\1\2b\0"],
)
def test_a_corrupt_data_block_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="corrupt"):
        DataBlocks(2).keys(data)


def test_a_block_without_nul_is_refused_in_a_moment() -> None:
    with pytest.raises(ValueError, match="corrupt"):
        DataBlocks(32).keys(b"a" * (1 << 22))
    with pytest.raises(ValueError, match="corrupt"):
        parse_index_block(b"a" * (1 << 22))


@pytest.mark.parametrize(
    ("left", "right", "between"),
    [
        (b"hi", b"hip", b"hip"),
        (b"ab", b"b", b"b"),
        (b"abc", b"abdef", b"abd"),
        (b"a", b"a", b"a"),
        (b"", b"xy", b"x"),
    ],
)
def test_a_separator_is_as_short_as_can_be(left: bytes, right: bytes, between: bytes) -> None:
    assert separator(left, right) == between


@pytest.mark.parametrize("text", ["", "offset", "offset:u7", "a:u8,a:u8", "a:u8,,b:u8", "a b:u8", "x" * 9999])
def test_an_invalid_layout_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid layout"):
        Layout(text)


def test_a_value_that_is_too_large_is_named() -> None:
    with pytest.raises(ValueError, match="b 65536 needs more than 16 bits"):
        Layout("a:u8,b:u16").tails([[1, 2], [3, 65536]])
    with pytest.raises(ValueError, match="a -1"):
        Layout("a:u8,b:u16").tails([[-1], [3]])


@pytest.mark.parametrize(
    ("before", "keys", "found"),
    [
        (b"a", [b"a"], None),
        (b"a", [b"a", b"b", b"b"], None),
        (b"b", [b"a", b"c"], (b"b", b"a")),
        (b"a", [b"b", b"b", b"a", b"0"], (b"b", b"a")),
        (b"b", [b"b", b"c", b"b"], (b"c", b"b")),
    ],
)
def test_the_first_key_that_is_less_than_the_one_before_is_found(
    before: bytes, keys: list[bytes], found: tuple[bytes, bytes] | None
) -> None:
    assert out_of_order(before, keys) == found
    assert are_sorted([before, *keys]) == (found is None)


@pytest.mark.parametrize("size", [1, 4, 30])
def test_pointers_with_any_bytes_are_read(size: int) -> None:
    blocks = DataBlocks(size)
    keys = [b"a", b"a", b"b\n", b"c" * 300]
    pointers = [bytes(size), b"\0" * (size - 1) + b"x", b"\n" * size, b"\xff" * size]
    data = b"".join(key + b"\0" + pointer for key, pointer in zip(keys, pointers, strict=True))
    assert blocks.size == size
    for padding in (0, 1, 99):
        assert blocks.keys(data + bytes(padding)) == keys
    assert blocks.items(data) == list(zip(keys, pointers, strict=True))
    for wrong in (data[:-1], b"\0" + data, data + b"d", data + b"d\0" + pointers[0][:-1], bytes(99), b""):
        with pytest.raises(ValueError, match="the data block is corrupt"):
            blocks.keys(wrong)
    with pytest.raises(ValueError, match="its keys are not sorted"):
        blocks.keys(data + b"b\0" + pointers[0])
