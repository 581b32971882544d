"""A range of keys in a cluster gives the lines that a plain filter over all of them gives."""

from __future__ import annotations

import gzip
import random
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.zipnum import BlockRef, format_part_line, parse_index_line
from cdxmill.stages.lines.line_lists import cut_blocks
from cdxmill.stages.zipnum.block_pieces import Tables
from cdxmill.stages.zipnum.find_lines import (
    BlockReader,
    count_lines,
    find_backwards,
    find_lines,
    wanted_blocks,
)
from cdxmill.stages.zipnum.kept_texts import BlockMemory, KeptTexts
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex
from cdxmill.stages.zipnum.write_shard import write_shard

word = st.text("ab/\t\x08é", min_size=1, max_size=4).map(str.encode)
line = st.builds(
    lambda key, time, rest: b"%b %b %b" % (key, time, rest), word, st.sampled_from([b"1", b"2"]), word
)
sorted_lines = st.lists(line | word, unique=True, max_size=40).map(sorted)


compressors = st.sampled_from([Compressor(), Compressor("zlib", 1, 1), Compressor("zlib-ng", 5, 2)])


class Shards:
    """A cluster of one shard in memory; `index` may be changed."""

    def __init__(self, lines: list[bytes], numlines: int = 1, compressor: Compressor = Compressor()) -> None:  # noqa: B008
        shard, part = BytesIO(), BytesIO()
        write_shard(cut_blocks([lines], numlines), "cdx-00000.gz", shard, part, compressor)
        self.shard, self.index = shard.getvalue(), part.getvalue()
        self.reads: list[tuple[int, int]] = []

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.shard[offset : offset + size]

    def find(self, low: bytes, high: bytes, join: bool = True, page: int = 4096) -> list[bytes]:
        index = self.index
        found = SecondaryIndex(lambda offset, size: index[offset : offset + size], len(index), page)
        blocks = wanted_blocks(found, low, high)
        lists = find_lines(blocks, BlockReader(self.read), low, high, join)
        return [line for lines in lists for line in lines]


@given(sorted_lines, st.integers(1, 5), compressors, word, word)
def test_a_range_gives_the_lines_in_it_and_reads_only_blocks_that_may_have_them(
    lines: list[bytes], numlines: int, compressor: Compressor, low: bytes, high: bytes
) -> None:
    low, high = low + b" ", high + b"!"
    shards = Shards(lines, numlines, compressor)
    wanted = [line for line in lines if low <= line < high]
    assert shards.find(low, high) == wanted
    assert len(shards.reads) <= 1
    blocks = [parse_index_line(line) for line in shards.index.split(b"\n")[:-1]]
    first, size = shards.reads[0] if shards.reads else (0, 0)
    assert sum(first <= block.offset < first + size for block in blocks) <= len(wanted) // numlines + 2
    assert shards.find(low, high, join=False) == wanted


@given(
    sorted_lines,
    st.integers(1, 9),
    compressors,
    st.lists(st.tuples(word, word), max_size=9).map(sorted),
    st.booleans(),
)
def test_one_reader_answers_many_queries(
    lines: list[bytes],
    numlines: int,
    compressor: Compressor,
    questions: list[tuple[bytes, bytes]],
    join: bool,
) -> None:
    shards = Shards(lines, numlines, compressor)
    index = SecondaryIndex(lambda offset, size: shards.index[offset : offset + size], len(shards.index), 32)
    reader = BlockReader(shards.read)
    for low, high in questions + questions[::-1]:
        lists = find_lines(wanted_blocks(index, low, high), reader, low, high, join)
        assert [line for part in lists for line in part] == [line for line in lines if low <= line < high]


@given(
    sorted_lines,
    st.integers(1, 9),
    compressors,
    st.lists(st.tuples(word, word), min_size=1, max_size=9),
    st.booleans(),
    st.sampled_from([1 << 20, 400]),
)
def test_texts_that_are_needed_again_are_not_read_again(
    lines: list[bytes],
    numlines: int,
    compressor: Compressor,
    questions: list[tuple[bytes, bytes]],
    join: bool,
    memory: int,
) -> None:
    shards = Shards(lines, numlines, compressor)
    index = SecondaryIndex(lambda offset, size: shards.index[offset : offset + size], len(shards.index), 32)
    tables = Tables(BlockMemory(memory))
    for turn in range(3):
        shards.reads.clear()
        for low, high in questions:
            reader = BlockReader(shards.read, tables=tables)
            lists = find_lines(wanted_blocks(index, low, high), reader, low, high, join)
            assert [line for part in lists for line in part] == [line for line in lines if low <= line < high]
        assert shards.reads == [] or turn < 2 or memory == 400


def noisy_lines() -> list[bytes]:
    """Lines of which 20 are several reads long, even compressed."""
    noise = random.Random(1)
    return [b"%d 2020 %b" % (number, noise.randbytes(3000).hex().encode()) for number in range(10, 70)]


@given(
    sorted_lines,
    st.integers(1, 9),
    compressors,
    st.lists(st.tuples(word, st.sampled_from([(b" ", b"!"), (b" 1", b" 2"), (b" 2", b"!")])), max_size=9),
    st.booleans(),
)
def test_questions_for_one_key_have_their_lines_whatever_is_known_of_the_blocks(
    lines: list[bytes],
    numlines: int,
    compressor: Compressor,
    questions: list[tuple[bytes, tuple[bytes, bytes]]],
    join: bool,
) -> None:
    shards = Shards(lines, numlines, compressor)
    index = SecondaryIndex(lambda offset, size: shards.index[offset : offset + size], len(shards.index), 32)
    tables, reader = Tables(BlockMemory(1 << 20)), BlockReader(shards.read)
    for key, (first, end) in questions * 4:
        low, high = key + first, key + end
        wanted = [line for line in lines if low <= line < high]
        for read in (BlockReader(shards.read, tables=tables), reader):
            lists = find_lines(wanted_blocks(index, low, high), read, low, high, join)
            assert [line for part in lists for line in part] == wanted
            assert count_lines(wanted_blocks(index, low, high), read, low, high, join) == len(wanted)


@pytest.mark.parametrize("compressor", [Compressor("zlib", 6), Compressor("zlib-ng", 5, 10)])
def test_a_key_that_is_not_there_is_not_searched_again_in_a_text_that_is_not_kept(
    compressor: Compressor,
) -> None:
    shards = Shards(noisy_lines(), 20, compressor)
    index = SecondaryIndex(lambda offset, size: shards.index[offset : offset + size], len(shards.index))
    memory = BlockMemory(1 << 21)
    for number in range(30):  # no room is left for texts
        memory.texts.get(number)
        memory.texts.add(number, bytes(1 << 17))
    tables, reads = Tables(memory), []
    for number in range(5):
        shards.reads.clear()
        low, high = b"25%d " % number, b"25%d!" % number
        reader = BlockReader(shards.read, tables=tables)
        assert list(find_lines(wanted_blocks(index, low, high), reader, low, high, False)) == []
        reads.append(len(shards.reads))
    assert reads[0] > 0 == reads[-1]
    assert tables.kept(parse_index_line(shards.index.split(b"\n")[0])) is None
    low, high = b"25 ", b"25!"
    found = find_lines(
        wanted_blocks(index, low, high), BlockReader(shards.read, tables=tables), low, high, False
    )
    assert [line[:3] for line in next(found)] == [b"25 "]


def test_a_text_that_is_too_large_to_be_kept_is_not_read_to_its_end() -> None:
    shards = Shards(noisy_lines(), 20, Compressor("zlib", 6))
    block = parse_index_line(shards.index.split(b"\n")[0])
    tables = Tables(BlockMemory(1 << 10))
    for _ in range(9):
        shards.reads.clear()
        text = BlockReader(shards.read, tables=tables).text_of(block, b"11")
        assert [line[:2] for line in text.between(b"11", b"12")[0]] == [b"11"]
        assert len(shards.reads) == 1


def test_random_questions_seldom_replace_a_kept_text_and_new_hot_ones_do() -> None:
    texts, source = KeptTexts(40 * 100), random.Random(1)

    def ask(key: int) -> tuple[bool, bool]:
        """Whether the text is kept, and whether it is added."""
        is_kept = texts.get(key) is not None
        is_added = not is_kept and texts.is_wanted(key)
        if is_added:
            texts.add(key, b"t" * 100)
        return is_kept, is_added

    for number in range(5000):
        ask(number % 30)
    rows = [ask(source.randrange(100, 300)) for _ in range(20_000)]
    kept, added = (sum(column) for column in zip(*rows, strict=True))
    assert kept > 3000  # a fifth of the texts fits
    assert added < 400
    hot = [[ask(number)[0] for number in range(1000, 1030)] for _ in range(50)]
    assert all(map(all, hot[-25:]))


def test_short_texts_are_bounded_with_what_they_take_beside_their_bytes() -> None:
    texts = KeptTexts(1000, 500, 90)
    for number in range(60):
        for _ in range(3):
            texts.get(number)
        texts.add(number, b"t" * 10)
    assert [number for number in range(60) if texts.get(number) is not None] == list(range(50, 60))


def test_texts_are_kept_as_long_as_there_is_room() -> None:
    texts = KeptTexts(1000)
    for number in range(12):
        texts.get(number)
        texts.get(number)
        if texts.is_wanted(number):
            texts.add(number, b"t" * 100)
    assert [number for number in range(12) if texts.get(number) is not None] == list(range(10))


def test_a_block_without_sections_costs_no_read_for_its_table() -> None:
    lines = noisy_lines()
    shards = Shards(lines, 20, Compressor("zlib", 6))
    index = SecondaryIndex(lambda offset, size: shards.index[offset : offset + size], len(shards.index), 32)
    reader = BlockReader(shards.read)
    for number in (11, 31, 51):
        shards.reads.clear()
        low, high = b"%d" % number, b"%d" % (number + 1)
        blocks = wanted_blocks(index, low, high)
        found = [line for part in find_lines(blocks, reader, low, high, False) for line in part]
        assert found == [lines[number - 10]]
        assert len(shards.reads) == 1, number


@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 90, 300])
def test_lines_are_found_from_the_end_and_not_more_is_read_than_is_taken(count: int, join: bool) -> None:
    lines = [b"a %05d {}" % number for number in range(count)]
    shards = Shards([*lines, b"b 1 {}"])
    blocks = [parse_index_line(line) for line in shards.index.split(b"\n")[:-2]]
    found: list[list[bytes]] = []
    for part in find_backwards(blocks, BlockReader(shards.read), b"a", b"b", join):
        found.append(part)
        if not join:
            assert len(shards.reads) == len(found)
    assert [line for part in reversed(found) for line in part] == lines
    counts = [sum(start <= one.offset < start + size for one in blocks) for start, size in shards.reads]
    assert sum(counts) == count
    doubled = [2, 4, 8, 16, *[32] * 9] if join else [1] * count
    assert counts[:-1] == doubled[: len(counts) - 1]


@pytest.mark.parametrize("size", [1 << 16, 300_000])
def test_keys_longer_than_a_read_are_found(size: int) -> None:
    lines = sorted(
        b"%b%05d 2020 {}" % (letter * size, number) for letter in (b"a", b"c", b"e") for number in range(5)
    )
    shards = Shards([*lines, b"z 2020 {}"], 2)
    for line in lines:
        assert shards.find(line[:-8], line + b"!") == [line]
    assert shards.find(b"b", b"d") == lines[5:10]
    assert shards.find(b"z", b"{") == [b"z 2020 {}"]


def damaged(shards: Shards) -> str:
    with pytest.raises(DamagedCluster) as error:
        shards.find(b"a", b"b")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("flip", [4, 12, -1, -5])
def test_a_corrupt_block_is_reported_with_shard_and_offset(flip: int) -> None:
    shards = Shards([b"a 1 {}", b"a 2 {}"])
    second = parse_index_line(shards.index.split(b"\n")[1]).offset
    data = bytearray(shards.shard)
    data[flip + (len(data) if flip < 0 else second)] ^= 0xFF
    shards.shard = bytes(data)
    if flip != 4:  # the time in a gzip header means nothing
        assert f"cdx-00000.gz@{second}: the block is corrupt" in damaged(shards)


def test_a_corrupt_block_stays_corrupt_when_it_is_read_again() -> None:
    shards = Shards([b"a %d {}" % number for number in range(9)], 9)
    index = SecondaryIndex(lambda offset, size: shards.index[offset : offset + size], len(shards.index))
    shards.shard = shards.shard[:-8] + b"\0" * 8
    reader = BlockReader(shards.read)
    for _ in range(3):
        with pytest.raises(DamagedCluster, match="the block is corrupt"):
            list(find_lines(wanted_blocks(index, b"a", b"b"), reader, b"a", b"b", False))


def test_a_truncated_shard_is_corrupt() -> None:
    shards = Shards([b"a 1 {}"])
    shards.shard = shards.shard[:-3]
    assert "the block is corrupt" in damaged(shards)


def test_a_block_that_does_not_begin_with_its_key_is_corrupt() -> None:
    shards = Shards([b"a 1 {}"])
    shards.shard = gzip.compress(b"b 1 {}\n")
    shards.index = format_part_line(BlockRef(b"a 1", b"cdx-00000.gz", 0, len(shards.shard)))
    assert "does not begin with its key" in damaged(shards)


def test_two_members_in_place_of_one_block_are_corrupt() -> None:
    shards = Shards([b"a 1 {}", b"a 2 {}"])
    shards.index = format_part_line(BlockRef(b"a 1", b"cdx-00000.gz", 0, len(shards.shard)))
    assert "the block is corrupt" in damaged(shards)


@pytest.mark.parametrize("index", [b"a 1\n", b"a 1\tcdx-00000.gz\t0\n", b"\n", b"a 1\tcdx-00000.gz\tx\t5\n"])
def test_a_corrupt_index_is_reported(index: bytes) -> None:
    shards = Shards([b"a 1 {}"])
    shards.index = index
    assert "the index is corrupt" in damaged(shards)


def test_an_impossible_length_is_corrupt_and_reads_nothing() -> None:
    shards = Shards([b"a 1 {}"])
    shards.index = format_part_line(BlockRef(b"a 1", b"cdx-00000.gz", 0, 10**15))
    assert "the block is corrupt" in damaged(shards)
    assert shards.reads == []


def test_a_block_without_a_last_line_end_has_its_last_line() -> None:
    shards = Shards([b"a 1 {}"])
    shards.shard = gzip.compress(b"a 1 {}\na 2 {}")
    shards.index = format_part_line(BlockRef(b"a 1", b"cdx-00000.gz", 0, len(shards.shard)))
    assert shards.find(b"a", b"b") == [b"a 1 {}", b"a 2 {}"]


def test_an_empty_cluster_has_no_lines() -> None:
    assert Shards([]).find(b"a", b"b") == []


def test_the_block_whose_key_is_the_end_of_a_range_is_not_wanted() -> None:
    """All its lines are longer than its key."""
    data = b"".join(b"%b\tc\t%d\t10\n" % (key, 10 * at) for at, key in enumerate((b"a", b"b", b"c")))
    index = SecondaryIndex(lambda offset, size: data[offset : offset + size], len(data))
    for high, keys in ((b"b", [b"a"]), (b"b!", [b"a", b"b"]), (b"a", [])):
        assert [block.key for block in wanted_blocks(index, b"a", high)] == keys
