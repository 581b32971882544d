"""What is kept of blocks is bounded, and a block is read in as few and as small parts as its table allows."""

from __future__ import annotations

import zlib

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.sections import Sections, format_trailer, header_bytes, parse_sections
from cdxmill.formats.clusters.zipnum import BlockRef, key_of
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.zipnum import block_pieces
from cdxmill.stages.zipnum.block_pieces import BlockPieces, Tables
from cdxmill.stages.zipnum.block_text import BlockText
from cdxmill.stages.zipnum.kept_texts import BlockMemory
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

SECTIONS = Sections([b"a"], [0, 1], [0])
LINES = [b"com,h%05d)/ 2020 %040x" % (number, number**9) for number in range(3000)]


def block_of(lines: list[bytes], section_lines: int) -> tuple[BlockRef, bytes]:
    data = Compressor("zlib", 6, section_lines).compress_block(len(lines), text_of(lines), key_of(lines[0]))
    return BlockRef(key_of(lines[0]), b"s", 0, len(data)), data


class Shard:
    """A shard in memory, and what was read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, shard: bytes, offset: int, size: int) -> bytes:
        assert shard == b"s" and size > 0
        self.reads.append((offset, size))
        return self.data[offset : offset + size]


def test_the_tables_of_many_blocks_are_bounded_and_the_oldest_go_first() -> None:
    tables = Tables()
    blocks = [BlockRef(b"k", b"s", number, 1) for number in range(4100)]
    for block in blocks:
        tables.add(block, SECTIONS)
    assert list(tables.of_blocks) == blocks[4:]
    tables.add(blocks[0], SECTIONS)
    assert list(tables.of_blocks) == [*blocks[5:], blocks[0]]


@pytest.mark.parametrize(("size", "is_kept"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_the_text_of_a_large_block_is_not_kept(size: int, is_kept: bool) -> None:
    tables = Tables(BlockMemory(1 << 20))
    block = BlockRef(b"k", b"s", 0, size)
    assert [tables.kept(block) for _ in range(2)] == [None, None]
    assert not tables.lacks(block, b"k")
    pieces = list(tables.keep(block, size, iter([b"a 1\n", b"b 1\n"])))
    assert b"".join(pieces) == b"a 1\nb 1\n"
    assert len(pieces) == (1 if is_kept else 2)
    assert tables.kept(block) == (b"a 1\nb 1\n" if is_kept else None)


def test_a_text_that_turns_out_to_be_too_large_is_inflated_no_further() -> None:
    memory = BlockMemory(1 << 16)
    tables, block = Tables(memory), BlockRef(b"k", b"s", 0, 99)
    for _ in range(2):
        assert tables.kept(block) is None
    pieces = iter([b"x" * 999 + b"\n"] * 50)
    found = tables.keep(block, 99, pieces)
    first = next(found)
    assert memory.texts.largest < len(first) < memory.texts.largest + 1001
    assert first + b"".join(found) == (b"x" * 999 + b"\n") * 50
    assert tables.kept(block) is None


def test_a_search_in_a_block_with_sections_reads_its_table_and_one_section() -> None:
    block, data = block_of(LINES, 300)
    shard, tables = Shard(data), Tables()
    sections = parse_sections(data, len(data))
    assert sections is not None and len(sections.keys) == 10
    for number, first_reads in ((4, 2), (7, 1)):
        line = LINES[number * 300 + 150]
        shard.reads.clear()
        text = BlockText(BlockPieces(block, shard, tables))
        assert text.between(line, line + b"!") == ([line], True)
        assert len(shard.reads) == first_reads
        start, stop = sections.starts[number : number + 2]
        assert shard.reads[-1] == (start, stop - start)
        assert sum(size for _, size in shard.reads) < len(data) // 2


@pytest.mark.parametrize("count", [1, 2, 4])
def test_neighboring_sections_are_one_read(count: int) -> None:
    block, data = block_of(LINES, 300)
    shard, tables = Shard(data), Tables()
    BlockText(BlockPieces(block, shard, tables)).between(LINES[0], LINES[1])
    shard.reads.clear()
    lines = LINES[910 : 910 + 300 * count - 20]
    text = BlockText(BlockPieces(block, shard, tables))
    assert text.between(lines[0], lines[-1] + b"!") == (lines, True)
    starts = tables.of_blocks[block].starts
    assert shard.reads == [(starts[3], starts[3 + count] - starts[3])]


@pytest.mark.parametrize("kept", [3, 4, 9])
def test_a_section_whose_text_is_kept_is_followed_by_the_next_ones(kept: int) -> None:
    block, data = block_of(LINES, 300)
    shard, tables = Shard(data), Tables(BlockMemory(1 << 22))
    line = LINES[300 * kept + 150]
    for _ in range(4):
        assert BlockText(BlockPieces(block, shard, tables)).between(line, line + b"!")[0] == [line]
    assert tables.kept(block, kept) is not None
    for low, high in ((LINES[0], b"\xff"), (line, b"\xff"), (LINES[950], LINES[2000])):
        lines = [one for one in LINES if low <= one < high]
        assert BlockText(BlockPieces(block, shard, tables)).between(low, high) == (lines, high != b"\xff")


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("section_lines", [0, 300])
def test_all_lines_of_a_block_come_whatever_its_form(section_lines: int, at_once: bool) -> None:
    block, data = block_of(LINES, section_lines)
    shard, tables = Shard(data + b"more"), Tables()
    for _ in range(2):
        text = BlockText(BlockPieces(block, shard, tables, at_once))
        assert text.between(b"", b"\xff") == (LINES, False)
        assert BlockText(BlockPieces(block, shard, tables, at_once)).count(b"", b"\xff") == (3000, False)
    assert (b"s" in tables.without) == (section_lines == 0)
    shard.reads.clear()
    assert BlockText(BlockPieces(block, shard, tables, at_once)).between(b"", b"\xff")[0] == LINES
    if section_lines or at_once:
        assert len(shard.reads) <= 2


@pytest.mark.parametrize("section_lines", [0, 300])
@pytest.mark.parametrize("change", ["key", "cut", "shorter", "longer", "flip"])
def test_a_block_that_is_not_what_its_index_says_is_damaged(section_lines: int, change: str) -> None:
    block, data = block_of(LINES, section_lines)
    if change == "key":
        block = block._replace(key=b"com,h00000)/ 2021")
        reason = (
            r"the block does not begin with its key b'com,h00000\)/ 2021'; index and shard are from different"
        )
    elif change == "cut":
        data, reason = data[:-9], "the shard ends before its"
    elif change in ("shorter", "longer"):
        block = block._replace(length=block.length + (1 if change == "longer" else -1))
        data, reason = data + b"x", "are not one gzip member|is corrupt|does not end"
    else:
        at = len(data) - 200
        data = data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]
        reason = "the block is corrupt"
    with pytest.raises(DamagedCluster, match=reason):
        BlockText(BlockPieces(block, Shard(data), Tables())).between(b"", b"\xff")


@pytest.mark.parametrize("section_lines", [0, 300])
def test_a_key_of_the_index_may_be_shorter_than_that_of_the_block(section_lines: int) -> None:
    """Other tools may write it so. The table of sections has at most 255 bytes of it."""
    lines = [b"com,%b 2020 {}" % (b"%04d" % number * 99) for number in range(900)]
    block, data = block_of(lines, section_lines)
    for key in (block.key, block.key[:300], block.key[:20], b""):
        text = BlockText(BlockPieces(block._replace(key=key), Shard(data), Tables()))
        assert text.between(b"", b"\xff") == (lines, False)


@pytest.mark.parametrize("section_lines", [0, 300])
def test_a_block_has_a_largest_text(section_lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    block, data = block_of(LINES, section_lines)
    size = len(text_of(LINES))
    assert len(data) < size - 1
    for most, is_read in ((size, True), (size - 1, False)):
        monkeypatch.setattr(block_pieces, "MAX_BLOCK", most)
        text = BlockText(BlockPieces(block, Shard(data), Tables()))
        if is_read:
            assert text.count(b"", b"\xff") == (len(LINES), False)
            continue
        with pytest.raises(DamagedCluster, match="it has more than 1 GiB of lines"):
            text.count(b"", b"\xff")


def test_a_text_of_exactly_the_largest_size_is_kept_only_if_it_is_whole() -> None:
    for pieces, is_kept in (([b"x" * 127 + b"\n"], True), ([b"x" * 127 + b"\n", b"b 1\n"], False)):
        memory = BlockMemory(1024 * 8 // 7)
        tables, block = Tables(memory), BlockRef(b"k", b"s", 0, 99)
        assert memory.texts.largest == 128
        for _ in range(2):
            assert tables.kept(block) is None
        assert b"".join(tables.keep(block, 99, iter(pieces))) == b"".join(pieces)
        assert tables.kept(block) == (pieces[0] if is_kept else None)


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_small_block_is_read_at_once(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    block, data = block_of(LINES[:300], 100)
    monkeypatch.setattr(block_pieces, "_SMALL", len(data) - beyond)
    monkeypatch.setattr(block_pieces, "_PIECE", 1000)
    shard = Shard(data)
    BlockText(BlockPieces(block, shard, Tables())).between(LINES[0], LINES[1])
    assert shard.reads[0] == (0, 1000 if beyond else len(data))


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("missing", [-1, 0, 1, 100])
def test_the_rest_of_a_large_table_is_read(
    at_once: bool, missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, data = block_of(LINES, 100)
    size = header_bytes(data)
    for name in ("_PIECE", "HEAD"):
        monkeypatch.setattr(block_pieces, name, size - missing)
    shard, tables = Shard(data), Tables()
    text = BlockText(BlockPieces(block, shard, tables, at_once))
    assert text.between(LINES[1500], LINES[1501]) == ([LINES[1500]], True)
    start, stop = tables.of_blocks[block].starts[15:17]
    rest = [(size - missing, missing)] if missing > 0 else []
    assert shard.reads == [(0, size - missing), *rest, (start, stop - start)]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_block_with_a_large_extra_field_of_another_tool_is_read(at_once: bool) -> None:
    lines = LINES[:900]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    field = b"XX" + (20_000).to_bytes(2, "little") + bytes(20_000)
    header = b"\x1f\x8b\x08\x04" + bytes(6) + len(field).to_bytes(2, "little") + field
    text = text_of(lines)
    data = header + packer.compress(text) + packer.flush() + format_trailer(zlib.crc32(text), len(text))
    assert len(data) > 1 << 15
    block = BlockRef(key_of(lines[0]), b"s", 0, len(data))
    for low, found in ((b"", lines), (lines[-1], lines[-1:])):
        shard = Shard(data)
        search = BlockText(BlockPieces(block, shard, Tables(), at_once))
        assert search.between(low, b"\xff") == (found, False)
        assert sum(size for _, size in shard.reads) == len(data)


@pytest.mark.parametrize("change", [-1, 1, 1 << 14])
def test_a_length_that_is_not_that_of_the_member_is_named(change: int) -> None:
    block, data = block_of(LINES, 0)
    block = block._replace(length=len(data) + change)
    with pytest.raises(DamagedCluster, match=f"its {block.length} bytes are not one gzip member"):
        BlockText(BlockPieces(block, Shard(data + bytes(1 << 15)), Tables())).between(b"", b"\xff")


def test_a_small_block_without_sections_is_one_read() -> None:
    block, data = block_of(LINES[:300], 0)
    assert len(data) < 1 << 14
    for at_once in (False, True):
        shard = Shard(data)
        text = BlockText(BlockPieces(block, shard, Tables(), at_once))
        assert text.between(b"", b"\xff") == (LINES[:300], False)
        assert shard.reads == [(0, len(data))]
