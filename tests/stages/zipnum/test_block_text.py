"""A search in one block: its lines, whether the block goes on, and how little is inflated for it."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest

from cdxmill.errors import InputError, OutageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.zipnum import MAX_BLOCK, BlockRef, key_of
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.zipnum import block_pieces
from cdxmill.stages.zipnum.block_pieces import BlockPieces, Tables
from cdxmill.stages.zipnum.block_text import BlockText
from cdxmill.stages.zipnum.find_lines import BlockReader, count_lines, find_lines
from cdxmill.stages.zipnum.kept_texts import BlockMemory
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

PIECE = 64
LINES = [b"com,h%03d)/ 2020 %040x" % (number, number**15) for number in range(200)]


class Shard:
    """A block in memory, and how much of it was read."""

    def __init__(self, lines: list[bytes], section_lines: int) -> None:
        compressor = Compressor("zlib", 6, section_lines)
        self.data = compressor.compress_block(len(lines), text_of(lines), key_of(lines[0]))
        self.block = BlockRef(key_of(lines[0]), b"s", 0, len(self.data))
        self.reads: list[tuple[int, int]] = []

    def __call__(self, _: bytes, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.data[offset : offset + size]

    def text(self, tables: Tables | None = None) -> BlockText:
        return BlockText(BlockPieces(self.block, self, tables or Tables()))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PIECE", "_SECTION_PIECE", "_SMALL", "HEAD"):
        monkeypatch.setattr(block_pieces, name, PIECE)


def pieces_needed(data: bytes, high: bytes) -> int:
    """The fewest pieces from the start of a gzip member that have a whole line >= `high`."""
    inflater, text = zlib.decompressobj(31), b""
    for number, start in enumerate(range(0, len(data), PIECE), 1):
        text += inflater.decompress(data[start : start + PIECE])
        if text[: text.rfind(b"\n") + 1].split(b"\n")[-2:][0] >= high:
            return number
    return -(-len(data) // PIECE)


RANGES: list[tuple[int, int]] = [(number, number + 1) for number in range(len(LINES) - 1)]
RANGES += [(0, 199), (10, 50), (50, 60), (60, 190), (190, 199)]


@pytest.mark.usefixtures("small_pieces")
def test_a_block_is_inflated_to_the_first_line_after_the_answer_and_no_further() -> None:
    shard = Shard(LINES, 0)
    assert len(shard.data) > 50 * PIECE
    for first, end in RANGES:
        shard.reads.clear()
        low, high = LINES[first], LINES[end]
        text = shard.text()
        assert text.between(low, high) == (LINES[first:end], True)
        assert len(shard.reads) == pieces_needed(shard.data, high)
        assert text.count(low, high) == (end - first, True)
        assert text.between(low, high) == (LINES[first:end], True)
        assert len(shard.reads) == pieces_needed(shard.data, high)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("section_lines", [0, 20])
@pytest.mark.parametrize("step", [1, 3, 19, 70])
def test_searches_in_ascending_order_have_all_lines(section_lines: int, step: int) -> None:
    text = Shard(LINES, section_lines).text()
    for first, end in pairwise(range(0, 200, step)):
        assert text.between(LINES[first], LINES[end]) == (LINES[first:end], True)
        assert text.can_answer(LINES[first])
        assert not text.can_answer(LINES[first][:-1])
    assert text.between(LINES[199], b"\xff") == ([LINES[199]], False)
    assert text.count(b"d", b"e") == (0, False)


@pytest.mark.usefixtures("small_pieces")
def test_a_section_that_follows_is_not_read_if_its_key_is_beyond() -> None:
    shard, tables = Shard(LINES, 20), Tables()
    shard.text(tables).between(LINES[0], LINES[1])
    sections = tables.of_blocks[shard.block]
    assert len(sections.keys) == 10
    for number in range(9):
        high = sections.keys[number + 1]
        for top, is_read in ((high, False), (high + b"\0", True)):
            text = shard.text(tables)
            shard.reads.clear()
            line = LINES[number * 20 + 19]
            assert text.between(line, top) == ([line], True)
            assert text.count(line, top) == (1, True)
            assert text.between(line, top) == ([line], True)
            start, end = sections.starts[number : number + 2]
            reads = shard.reads if not is_read else shard.reads[:1]
            assert reads[0][0] == start
            assert len(reads) == 1
            assert is_read or reads == [(start, end - start)]


@pytest.mark.usefixtures("small_pieces")
def test_sections_between_two_searches_are_not_read() -> None:
    shard, tables = Shard(LINES, 20), Tables()
    shard.text(tables).between(LINES[0], LINES[1])
    starts = tables.of_blocks[shard.block].starts
    shard.reads.clear()
    text = shard.text(tables)
    for number in (25, 26, 35, 165, 170, 175):
        assert text.between(LINES[number], LINES[number + 1]) == ([LINES[number]], True)
    assert shard.reads == [(starts[part], starts[part + 1] - starts[part]) for part in (1, 8)]


def test_a_block_that_was_corrupt_is_corrupt_in_the_next_search() -> None:
    shard = Shard(LINES, 0)
    shard.data = shard.data[:-8] + bytes(8)
    text = shard.text()
    for reason in ("the block is corrupt", "the block is corrupt .as reported before"):
        with pytest.raises(DamagedCluster, match=reason):
            text.between(LINES[0], b"\xff")


@pytest.mark.parametrize(
    ("low", "high", "lines", "is_beyond"),
    [
        (b"a 1", b"a 2", [b"a 1"], True),
        (b"a 1", b"b", [b"a 1", b"a 2"], False),
        (b"a 2", b"b", [b"a 2"], False),
        (b"a 2", b"a 2!", [b"a 2"], False),
        (b"a 3", b"b", [], False),
        (b"a 0", b"a 1", [], True),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_last_line_may_have_no_line_end(
    low: bytes, high: bytes, lines: list[bytes], is_beyond: bool, end: bytes
) -> None:
    shard = Shard([b"a 1", b"a 2"], 0)
    shard.data = gzip.compress(b"a 1\na 2" + end, mtime=0)
    shard.block = shard.block._replace(length=len(shard.data))
    assert shard.text().between(low, high) == (lines, is_beyond)
    assert shard.text().count(low, high) == (len(lines), is_beyond)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("section_lines", [0, 20])
def test_a_reader_opens_its_block_again_for_a_line_before_the_last_search(
    section_lines: int, join: bool
) -> None:
    shard = Shard(LINES, section_lines)
    reader = BlockReader(shard)
    for number in (150, 10, 10, 180, 179):
        low, high = LINES[number], LINES[number + 1]
        assert list(find_lines([shard.block], reader, low, high, join)) == [[LINES[number]]]


def test_a_reader_keeps_its_block_open_for_the_same_lines() -> None:
    shard = Shard(LINES, 20)
    reader = BlockReader(shard)
    text = reader.text_of(shard.block, LINES[50])
    text.between(LINES[50], LINES[51])
    for low in (LINES[50], LINES[60]):
        assert reader.text_of(shard.block, low) is text
        assert next(iter(reader.read_all([shard.block], low))) is text
    assert reader.text_of(shard.block, LINES[49]) is not text


def tables_without_room() -> Tables:
    """No text of a block is kept in them, but keys are."""
    memory = BlockMemory(1 << 17)
    for number in range(9):
        memory.texts.add(number, bytes(memory.texts.largest))
        for _ in range(9):
            memory.texts.get(number)
    return Tables(memory)


@pytest.mark.parametrize(
    ("section_lines", "key", "is_beyond"),
    [
        (0, b"com,h050)/x", False),  # what follows the block has to be asked
        (0, b"com,z)/", False),
        (20, b"com,h050)/x", True),
        (20, b"com,h179)/x", True),
        (20, b"com,h198)/x", False),
        (20, b"com,z)/", False),
    ],
)
def test_a_key_that_is_known_to_be_missing_costs_no_read(
    section_lines: int, key: bytes, is_beyond: bool
) -> None:
    shard = Shard(LINES, section_lines)
    tables = tables_without_room()
    found = []
    for _ in range(4):
        shard.reads.clear()
        found.append((*shard.text(tables).between(key + b" ", key + b"!"), len(shard.reads)))
    assert found[-1] == ([], is_beyond, 0)
    assert shard.text(tables).count(key + b" ", key + b"!") == (0, is_beyond)


def test_a_block_whose_text_is_kept_ends_where_it_ended_before() -> None:
    shard, tables = Shard(LINES, 0), Tables(BlockMemory(1 << 20))
    for _ in range(4):
        shard.reads.clear()
        assert shard.text(tables).between(LINES[198], b"\xff") == (LINES[198:], False)
        assert shard.text(tables).between(LINES[0], LINES[1]) == (LINES[:1], True)
    assert shard.reads == []


class Unsectioned(BlockPieces):
    may_have_sections = False


@pytest.mark.parametrize(
    ("section_lines", "pieces", "first_reads", "later_reads"),
    [(0, BlockPieces, 2, 1), (20, BlockPieces, 2, 1), (0, Unsectioned, 1, 1), (20, Unsectioned, 1, 1)],
)
def test_a_block_alone_is_read_by_sections_unless_its_shard_has_none(
    section_lines: int,
    pieces: type[BlockPieces],
    first_reads: int,
    later_reads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it has some is only known after the first read."""
    monkeypatch.setattr(block_pieces, "_SMALL", 0)
    lines = [b"com,h%03d)/ 2020 %0400x" % (number, number**150) for number in range(200)]
    shard, tables = Shard(lines, section_lines), Tables()
    assert len(shard.data) > 1 << 14
    for reads in (first_reads, later_reads):
        shard.reads.clear()
        reader = BlockReader(shard, pieces, tables)
        assert list(find_lines([shard.block], reader, b"", b"\xff", True)) == [lines]
        assert len(shard.reads) == reads
        if reads == 2:
            assert shard.reads[0] == (0, 4096)


def test_neighbors_are_one_read_and_the_block_that_is_open_is_one_of_them() -> None:
    shard = Shard(LINES, 0)
    size = shard.block.length
    shard.data *= 5
    blocks = [shard.block._replace(offset=size * number) for number in range(5)]
    for first in (0, 1):
        reader = BlockReader(shard)
        assert len(reader.text_of(blocks[first], b"").between(b"", b"\xff")[0]) == len(LINES)
        shard.reads.clear()
        found = list(find_lines(blocks[first:], reader, b"", b"\xff", True))
        assert found == [LINES] * (5 - first)
        assert count_lines(blocks[first:], reader, b"", b"\xff", True) == (5 - first) * len(LINES)
        assert shard.reads == [(size * first, size * (5 - first))] * 2


def test_a_block_of_an_impossible_length_is_skipped_without_a_read() -> None:
    shard = Shard(LINES, 0)
    large = BlockRef(b"com,h00", b"t", 0, MAX_BLOCK + 1)
    tables = Tables()
    for _ in range(2):
        reader, skipped = BlockReader(shard, tables=tables), list[BlockRef]()
        shard.reads.clear()
        with pytest.raises(DamagedCluster, match="bytes are too many for a block"):
            list(find_lines([large, shard.block], reader, b"", b"\xff", True))
        assert shard.reads == []
        found = find_lines(
            [large, shard.block],
            reader,
            b"",
            b"\xff",
            True,
            skip=lambda block, _: skipped.append(block),  # noqa: B023
        )
        assert (list(found), skipped) == ([LINES], [large])
        tables.without.add(b"t")


class Failing:
    """Reads of a shard, of which those of one part fail."""

    def __init__(self, shard: Shard, error: Exception) -> None:
        self.shard, self.error = shard, error

    def __call__(self, name: bytes, offset: int, size: int) -> bytes:
        if name == b"broken":
            raise self.error
        return self.shard(name, offset, size)


@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize(
    "error",
    [InputError("cdx-0.gz", "is gone"), DamagedCluster("is corrupt", "so it is")],
    ids=["gone", "corrupt"],
)
def test_blocks_that_cannot_be_read_are_skipped_one_by_one(error: Exception, join: bool) -> None:
    shard = Shard(LINES, 0)
    size = shard.block.length
    broken = [BlockRef(b"com,h00", b"broken", number * size, size) for number in range(3)]
    blocks = [*broken, shard.block]
    skipped: list[BlockRef] = []

    def skip(block: BlockRef, found: Exception) -> None:
        assert found is error
        skipped.append(block)

    reader = BlockReader(Failing(shard, error))
    assert list(find_lines(blocks, reader, b"", b"\xff", join, skip=skip)) == [LINES]
    assert skipped == broken
    assert count_lines(blocks, reader, b"", b"\xff", join, skip) == len(LINES)
    with pytest.raises(type(error)):
        list(find_lines(blocks, reader, b"", b"\xff", join))
    outage = BlockReader(Failing(shard, OutageError("cdx-0.gz", "no answer")))
    with pytest.raises(OutageError):
        list(find_lines(blocks, outage, b"", b"\xff", join, skip=skip))
