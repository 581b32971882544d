"""Prefix B-trees at their limits: the largest and smallest blocks, keys and reads, and what is said of a damaged file."""

from __future__ import annotations

import io
import random
from itertools import pairwise

import pytest

from cdxmill.formats.tree.prefix_btree import IndexBlock, Item, format_index_block
from cdxmill.formats.tree.tree_header import MOST_BLOCK, Header, format_header, parse_header
from cdxmill.stages.prefix_tree import search_tree
from cdxmill.stages.prefix_tree.search_tree import HEAD, DamagedTreeError, TreeReader
from cdxmill.stages.prefix_tree.write_tree import ItemError, TreeWriter

from .trees_in_memory import (
    ALL,
    BY_HAND,
    ITEMS,
    Counted,
    found,
    numbered,
    opened,
    pages,
    reader_of,
    tree_of,
    wanted,
)

LAYOUTS = ("", "a:u16")


@pytest.mark.parametrize(
    ("pointer", "layout", "least"),
    [(2, "", 10), (8, "", 10), (9, "", 11), (30, "", 32), (2, "x", 14), (30, "x", 36)],
)
def test_a_block_has_room_for_an_item_and_an_index_entry(pointer: int, layout: str, least: int) -> None:
    for size in (least, MOST_BLOCK):
        TreeWriter(size, pointer, io.BytesIO, layout)
    for size in (least - 1, MOST_BLOCK + 1):
        with pytest.raises(ValueError, match=f"invalid block size {size}: expected {least} to {MOST_BLOCK}"):
            TreeWriter(size, pointer, io.BytesIO, layout)


def test_the_longest_key_and_the_longest_prefix_are_stored() -> None:
    for size in (1, 60, 61):
        items = numbered([b"a" * size])
        assert found(reader_of(tree_of(items, 64), 2), *ALL) == items
    with pytest.raises(ItemError, match="an item is longer than a block of 64 bytes: b'aaa"):
        tree_of(numbered([b"a" * 62]), 64)
    same = b"a" * 54
    items = numbered([same + b"b", same + b"c"])
    assert found(reader_of(tree_of(items, 64), 2), *ALL) == items
    with pytest.raises(ItemError, match="a prefix is longer than a block of 64 bytes: b'aaa"):
        tree_of(numbered([same + b"ab", same + b"ac"]), 64)
    with pytest.raises(ItemError) as error:
        tree_of(numbered([b"z" * 99]), 64)
    assert str(error.value).endswith(f": {b'z' * 80!r}")
    assert error.value.key == b"z" * 99


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block_size", [64, 256, 1 << 16])
def test_a_writer_counts_what_it_has_written(block_size: int, layout: str) -> None:
    items, out = pages(500), io.BytesIO()
    writer = TreeWriter(block_size, 2, io.BytesIO, layout)
    for start in range(0, len(items), 7):
        some = items[start : start + 7]
        writer.add([key for key, _ in some], [b"\0" + pointer for _, pointer in some])
        writer.add([], [])
    archives = [b"crawl/%03d.warc.gz" % number for number in range(50)] if layout else []
    assert writer.finish(out, archives) == len(out.getvalue())
    header = parse_header(out.getvalue())
    assert writer.items == len(items)
    assert header.index_blocks == writer.index_blocks
    reader = reader_of(out.getvalue(), 2)
    assert found(reader, *ALL) == items
    assert reader.count_reads() == writer.levels + 1
    room = block_size - 4 * bool(layout)
    assert -(-sum(len(key) + 3 for key, _ in items) // room) <= writer.blocks
    assert writer.blocks <= len(items) // (room // 30) + 1
    if layout:
        assert (header.data_blocks, header.items, header.archives) == (writer.blocks, 500, 50)
        assert header.last_block == writer.index_blocks + writer.blocks - 1


def fingerprint(items: list[Item], archives: list[bytes]) -> bytes:
    writer, out = TreeWriter(64, 2, io.BytesIO, "a:u16"), io.BytesIO()
    writer.add([key for key, _ in items], [b"\0" + pointer for _, pointer in items])
    writer.finish(out, archives)
    return parse_header(out.getvalue()).fingerprint


def test_trees_have_one_fingerprint_if_and_only_if_their_content_is_the_same() -> None:
    items, names = pages(20), [b"a.warc.gz", b"b.warc.gz"]
    changed = [*items[:5], (items[5][0], b"\xff\xff"), *items[6:]]
    seen = [fingerprint(items, names), fingerprint(items, names[:1]), fingerprint(items, []), fingerprint(changed, names), fingerprint(items[:-1], names)]  # fmt: skip
    assert len(set(seen)) == len(seen)
    assert fingerprint(list(items), list(names)) == seen[0]


def by_hand(*blocks: IndexBlock, data: bytes = BY_HAND[50:]) -> bytes:
    index = b"".join(format_index_block(block, 14) for block in blocks)
    return format_header(Header(14, len(blocks))) + index + data


ROOT, LEFT, RIGHT = IndexBlock([b"c"], 1), IndexBlock([b"b"], 3), IndexBlock([b"c"], 4)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (by_hand(ROOT, IndexBlock([b"b"], 4), RIGHT), "its index has the data blocks 4 to 5, but the file those from 3 to 5"),
        (by_hand(ROOT, LEFT, IndexBlock([], 4)), "its index has the data blocks 3 to 4, but the file those from 3 to 5"),
        (by_hand(ROOT, LEFT, RIGHT) + bytes(14), "its index has the data blocks 3 to 5, but the file those from 3 to 6"),
        (BY_HAND + b"x", "93 bytes are not whole blocks"),
        (BY_HAND[:-1], "91 bytes are not whole blocks"),
        (BY_HAND[:50], "50 bytes are not whole blocks"),
        (BY_HAND[:36], "36 bytes are not whole blocks"),
        (BY_HAND[:8], "8 bytes are not whole blocks"),
        (by_hand(IndexBlock([b"c"], 0), LEFT, RIGHT), "its children are no blocks below it"),
    ],
    ids=["first", "last", "more", "byte", "short", "no-data", "no-index", "header", "circle"],
)  # fmt: skip
def test_a_local_file_that_its_index_does_not_match_is_not_opened(data: bytes, reason: str) -> None:
    assert by_hand(ROOT, LEFT, RIGHT) == BY_HAND
    with pytest.raises(DamagedTreeError, match=reason):
        reader_of(data, 2)


def test_a_file_with_another_number_of_blocks_than_its_header_says_is_not_opened() -> None:
    tree = tree_of(pages(60), 96, layout="a:u16")
    reader_of(tree, 2)
    for data in (tree[:-96], tree + tree[-96:], tree[:-1]):
        with pytest.raises(DamagedTreeError) as error:
            reader_of(data, 2)
        assert str(error.value) == f"{len(data)} bytes are not whole blocks: the file is truncated or corrupt"
        assert error.value.offset == len(data)


KEPT = BY_HAND[50:64], BY_HAND[64:78], BY_HAND[78:]


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(
    ("blocks", "low", "high", "reason", "number"),
    [
        ((b"a\0\1\0abbb\0\2\0", b"a\0\3\0\0\0\0", KEPT[2]), b"a", b"d", "not behind those before", 4),
        ((KEPT[0], b"a\0\3\0", KEPT[2]), b"ba", b"c", "outside its prefixes in the index", 4),
        ((KEPT[0], b"d\0\3\0", KEPT[2]), b"ba", b"c", "outside its prefixes in the index", 4),
        ((b"bb\0\1\0", KEPT[1], KEPT[2]), b"a", b"b", "outside its prefixes in the index", 3),
        ((b"a\0\1\0bb\0\2\0", b"bb\0\3\0", KEPT[2]), b"a", b"b", "outside its prefixes in the index", 3),
        ((KEPT[0], b"aa\0\3\0", KEPT[2]), b"a", b"b", "the index does not match the data block", 4),
        ((b"b\0\1\0a\0\2\0", KEPT[1], KEPT[2]), b"a", b"b", "corrupt .its keys are not sorted", 3),
        ((b"", KEPT[1], KEPT[2]), b"a", b"b", "corrupt .it has no item", 3),
    ],
    ids=["before", "lower", "upper", "later", "last", "behind", "unsorted", "empty"],
)
def test_a_data_block_that_the_index_does_not_match_is_reported(
    blocks: tuple[bytes, ...], low: bytes, high: bytes, reason: str, number: int, remote: bool
) -> None:
    data = b"".join(block.ljust(14, b"\0") for block in blocks)
    reader = reader_of(by_hand(ROOT, LEFT, RIGHT, data=data), 2, remote)
    with pytest.raises(DamagedTreeError, match=reason) as error:
        found(reader, low, high)
    assert error.value.offset == 8 + 14 * number


@pytest.mark.parametrize("block", [b"b\0\1\0a\0\2\0", b"", b"a" * 14])
def test_a_corrupt_block_is_found_without_compiled_code(
    block: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_tree, "outline_block", None)
    data = by_hand(ROOT, LEFT, RIGHT, data=b"".join((block.ljust(14, b"\0"), *KEPT[1:])))
    for remote in (False, True):
        with pytest.raises(DamagedTreeError, match="the data block is corrupt") as error:
            found(reader_of(data, 2, remote), b"a", b"b")
        assert error.value.offset == 50


def test_index_blocks_outside_of_their_parent_are_reported() -> None:
    for left, right, key in (
        (IndexBlock([b"cc"], 3), RIGHT, b"a"),
        (LEFT, IndexBlock([b"bb"], 4), b"d"),
    ):
        with pytest.raises(DamagedTreeError, match="outside those of its parent"):
            found(reader_of(by_hand(ROOT, left, right), 2, remote=True), key, key + b"\0")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_block_that_the_file_does_not_have_is_reported_with_its_offset(layout: str) -> None:
    items = pages(60)
    tree = tree_of(items, 96, layout=layout)
    header = parse_header(tree)
    for size in (len(tree) - 96, len(tree) - 95, len(tree) - 1):
        with pytest.raises(DamagedTreeError, match="truncated") as error:
            found(reader_of(tree[:size], 2, remote=True), *ALL)
        assert error.value.offset == size - (size - header.start) % 96


def test_what_is_read_again_over_a_network_is_checked_again() -> None:
    items = pages(6000)
    data = Counted(tree_of(items, 256, layout="a:u16"))
    reader = opened(data, 2)
    low, high = items[5000][0], items[5010][0]
    start, _ = reader.first_read(low, high)
    assert start > HEAD
    assert found(reader, low, high) == items[5000:5010]
    assert found(reader, items[5980][0], items[5981][0]) == items[5980:5981]
    data.data = data.data[: start + 9] + b"\xff" + data.data[start + 10 :]
    with pytest.raises(DamagedTreeError, match="CRC32"):
        found(reader, low, high)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("most", "largest"), [(0, 2), (5, 5), (6, 6), (1000, None)])
def test_no_read_is_larger_than_the_limit(
    most: int, largest: int | None, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = pages(3000)
    data = Counted(tree_of(items, 256, layout=layout))
    monkeypatch.setattr(search_tree, "_MOST_AHEAD", 256 * most)
    reader = opened(data, 2)
    data.reads.clear()
    assert found(reader, *ALL) == items
    edge = 0 if layout else search_tree._EDGE
    blocks = [(size - edge) // 256 for _, size in data.reads if size > 256 + edge]
    assert max(blocks) == largest or (largest is None and max(blocks) > 64)
    assert all(after in (2 * before, largest) for before, after in pairwise(blocks[:-1]))
    places = sorted(read for read in data.reads if read[1] > 256)
    assert all(one[0] + one[1] - edge == other[0] for one, other in pairwise(places))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_first_read_of_a_range_is_known_before_it(layout: str) -> None:
    items = pages(3000)
    data = Counted(tree_of(items, 256, layout=layout))
    rng = random.Random(5)
    for _ in range(60):
        start, end = sorted(rng.sample(range(len(items)), 2))
        low, high = items[start][0], items[rng.choice((start + 1, end))][0]
        reader = opened(data, 2)
        known = reader.first_read(low, high)
        data.reads.clear()
        assert found(reader, low, high) == wanted(items, low, high)
        assert sum(known) <= HEAD or data.reads[0] == known
        data.reads.clear()
        assert found(reader, high, low) == found(reader, low, low) == []
        assert data.reads == []


def test_index_blocks_can_be_read_by_others() -> None:
    items = pages(3000)
    data = Counted(tree_of(items, 128, layout="a:u16"))
    reader, plain = opened(data, 2), opened(data, 2)
    key = items[1700][0]
    path = [0]
    data.reads.clear()
    while path[-1] < reader.header.index_blocks:
        number = path[-1]
        if number:
            assert reader.unknown_index([number, 0, number]) == [number]
            offset = reader.header.offset(number)
            reader.take_index(number, data.data[offset : offset + 128])
        assert reader.unknown_index([0, *path]) == []
        path.append(reader.child(number, key))
    assert len(path) == reader.count_reads()
    assert plain.unknown_index([2, 0, 1, 2]) == [1, 2]
    data.reads.clear()
    assert found(reader, key, key + b"\0") == [items[1700]]
    assert {offset for offset, _ in data.reads} == {reader.header.offset(path[-1])}
    assert found(plain, key, key + b"\0") == [items[1700]]
    with pytest.raises(DamagedTreeError, match="CRC32"):
        reader.take_index(1, bytes(128))


def test_a_reader_of_index_blocks_is_used_for_them_alone() -> None:
    items = pages(3000)
    data, index = (Counted(tree_of(items, 128)) for _ in range(2))
    reader: TreeReader = opened(data, 2, remote=False)
    reader = TreeReader(data, reader.header, 2, None)
    reader.read_index = index
    data.reads.clear()
    assert found(reader, items[9][0], items[2000][0]) == items[9:2000]
    start = reader.header.offset(reader.header.index_blocks)
    assert index.reads
    assert max(offset for offset, _ in index.reads) < start
    assert min(offset for offset, _ in data.reads) >= start


def test_a_tree_of_items_by_hand_is_searched_without_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_tree, "outline_block", None)
    for remote in (False, True):
        assert found(reader_of(BY_HAND, 2, remote), *ALL) == ITEMS
        items = pages(400)
        reader = reader_of(tree_of(items, 4096), 2, remote)
        for number in range(0, 400, 3):
            key = items[number][0]
            assert found(reader, key, key + b"\0") == [items[number]]
