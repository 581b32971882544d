"""Shards, parts and gzip files of lines, opened by Python's gzip."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.zipnum import key_of, parse_index_line
from cdxmill.stages.lines.line_lists import MEMBER, cut_blocks, write_gzip_lines
from cdxmill.stages.zipnum.write_shard import write_shard

line = st.binary(min_size=1, max_size=12).filter(lambda line: b"\n" not in line)
sorted_lines = st.lists(line, unique=True, max_size=60).map(sorted)
compressors = st.sampled_from([Compressor(), Compressor("zlib", 1)])


def pieces(lines: list[bytes], sizes: list[int]) -> list[list[bytes]]:
    """The lines in lists of these sizes."""
    lists, start = [], 0
    for size in [*sizes, len(lines)]:
        lists.append(lines[start : start + size])
        start += size
    return [piece for piece in lists if piece]


@given(sorted_lines, st.lists(st.integers(1, 20)), st.integers(1, 10), compressors)
def test_a_shard_is_the_lines_in_blocks_and_its_part_says_where_they_are(
    lines: list[bytes], sizes: list[int], numlines: int, compressor: Compressor
) -> None:
    shard, part = BytesIO(), BytesIO()
    report = write_shard(cut_blocks(pieces(lines, sizes), numlines), "cdx-00003.gz", shard, part, compressor)
    data = shard.getvalue()
    blocks = [parse_index_line(line) for line in part.getvalue().split(b"\n")[:-1]]
    assert [block.shard for block in blocks] == [b"cdx-00003.gz"] * len(blocks)
    end = 0
    for number, block in enumerate(blocks):
        wanted = lines[number * numlines : (number + 1) * numlines]
        content = zlib.decompress(data[block.offset : block.offset + block.length], zlib.MAX_WBITS | 16)
        assert content == b"".join(line + b"\n" for line in wanted)
        assert block.key == key_of(wanted[0])
        assert block.offset == end
        end += block.length
    assert end == len(data) or not lines
    digest = hashlib.sha256(data).hexdigest()
    assert report == ("cdx-00003.gz", len(data), len(lines), len(blocks), digest)
    assert report.blocks == -(-len(lines) // numlines)


@given(st.sampled_from([[], [[]]]), compressors)
def test_a_shard_without_lines_is_one_empty_member(lists: list[list[bytes]], compressor: Compressor) -> None:
    shard, part = BytesIO(), BytesIO()
    report = write_shard(cut_blocks(lists, 3000), "cdx-00000.gz", shard, part, compressor)
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert inflater.decompress(shard.getvalue()) == b""
    assert inflater.eof
    assert inflater.unused_data == b""
    assert part.getvalue() == b""
    assert (report.lines, report.blocks, report.bytes) == (0, 0, len(shard.getvalue()))


@given(sorted_lines, st.lists(st.integers(1, 20)))
def test_a_gzip_file_of_lines_has_all_of_them_whatever_the_lists(
    lines: list[bytes], sizes: list[int]
) -> None:
    file = BytesIO()
    size = write_gzip_lines(pieces(lines, sizes), file)
    assert size == len(file.getvalue()) > 0
    assert gzip.decompress(file.getvalue()) == b"".join(line + b"\n" for line in lines)


@pytest.mark.parametrize("first", [b"a", b"a" * 30_000])
def test_members_are_of_at_most_a_mebibyte_plain(first: bytes) -> None:
    lines = [first, *(b"b%04d" % number + b"x" * 9000 for number in range(500))]
    file = BytesIO()
    write_gzip_lines([lines], file)
    data, sizes = file.getvalue(), []
    while data:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        sizes.append(len(inflater.decompress(data)))
        data = inflater.unused_data
    assert max(sizes) <= MEMBER + 1000
    assert len(sizes) <= sum(sizes) // (MEMBER - 40_000) + 1
