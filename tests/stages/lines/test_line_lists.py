"""Lines of CDX files, plain or gzip of any making: exactly those that are there, or an error."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.stages.lines.cdx_text import read_content
from cdxmill.stages.lines.line_lists import (
    convert_captures,
    cut_blocks,
    distinct_captures,
    divide,
    group_lines,
    is_capture_line,
    lines_between,
    split_lines,
    without_headers,
    write_gzip_lines,
    write_lines,
)
from cdxmill.stages.window import MemberError, Window

line = st.binary(max_size=12) | st.sampled_from(
    [b"", b"\r", b"\0", b"\t", b" CDX N b", b"\x1f\x8b\x08\0", b"x" * 3000]
)
contents = st.builds(b"\n".join, st.lists(line, max_size=30))
chunks = st.sampled_from([1, 7, 64, 1 << 12, 4 << 20])


def window_of(data: bytes, chunk: int = 4 << 20) -> Window:
    return Window(lambda offset, size: data[offset : offset + size], chunk)


def lines_in(data: bytes, chunk: int = 4 << 20) -> list[bytes]:
    return [line for lines in split_lines(read_content(window_of(data, chunk)), 1) for line in lines]


def lines_of(content: bytes) -> list[bytes]:
    """What a file of this content holds: a last line end ends the last line."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def members(content: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Gzip members that hold the content, cut anywhere, by turns of two libraries."""
    bounds = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    pieces = [content[low:high] for low, high in pairwise(bounds)]
    pack = Compressor().compress
    return [gzip.compress(piece) if number % 2 else pack(piece) for number, piece in enumerate(pieces)]


def test_lists_of_lines_have_the_size_that_was_asked_for() -> None:
    pieces = [b"%09d\n" % number for number in range(7)]
    assert [len(lines) for lines in split_lines(pieces, 30)] == [3, 3, 1]
    assert [len(lines) for lines in split_lines(pieces, 31)] == [4, 3]
    assert [len(lines) for lines in split_lines(pieces, 1)] == [1] * 7
    assert [len(lines) for lines in split_lines(pieces)] == [7]
    assert [len(lines) for lines in split_lines([b"a" * 40, b"b\nc\nd", b"\n"], 30)] == [2, 1]


@given(contents.filter(lambda content: content[:1] != b"\x1f" and content[1:2] != b"\x8b"), chunks)
def test_a_plain_file_has_the_lines_between_its_line_feeds(content: bytes, chunk: int) -> None:
    assert lines_in(content, chunk) == lines_of(content)


@given(contents, st.lists(st.integers(0, 1000), max_size=6), chunks)
def test_gzip_of_any_number_of_members_has_the_lines_of_the_whole(
    content: bytes, cuts: list[int], chunk: int
) -> None:
    assert lines_in(b"".join(members(content, cuts)), chunk) == lines_of(content)


@given(st.lists(st.binary(max_size=30)))
def test_a_stream_has_the_lines_of_its_pieces_joined(pieces: list[bytes]) -> None:
    lists = list(split_lines(pieces))
    assert [line for lines in lists for line in lines] == lines_of(b"".join(pieces))


@given(contents.filter(len), st.lists(st.integers(0, 1000), max_size=3), st.data())
def test_a_cut_member_is_an_error(content: bytes, cuts: list[int], data: st.DataObject) -> None:
    parts = members(content, cuts)
    whole = b"".join(parts)
    ends = {sum(map(len, parts[:count])) for count in range(len(parts) + 1)}
    size = data.draw(st.integers(1, len(whole) - 1).filter(lambda size: size not in ends))
    with pytest.raises(MemberError):
        lines_in(whole[:size])


@given(contents.filter(len), st.integers(0, 1000), st.data())
def test_a_flipped_bit_is_an_error_or_changes_nothing(content: bytes, cut: int, data: st.DataObject) -> None:
    whole = bytearray(b"".join(members(content, [cut])))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        assert lines_in(bytes(whole)) == lines_of(content)
    except MemberError as error:
        assert str(error)


@pytest.mark.parametrize("garbage", [b"\0", b"garbage", bytes(512), b"a\n" * 40, gzip.compress(b"b\n")[-8:]])
def test_garbage_behind_or_between_members_is_an_error(garbage: bytes) -> None:
    member = gzip.compress(b"b\n")
    for data in (member + garbage, member + garbage + member):
        with pytest.raises(MemberError):
            lines_in(data)


def test_a_gzip_file_cut_to_its_first_byte_is_an_error() -> None:
    with pytest.raises(MemberError, match="truncated inside"):
        lines_in(gzip.compress(b"a\n")[:1])


def test_an_empty_file_and_empty_members_have_no_lines() -> None:
    assert lines_in(b"") == lines_in(gzip.compress(b"")) == lines_in(gzip.compress(b"") * 3) == []


def test_members_too_large_for_the_quick_way_are_read_in_pieces() -> None:
    content = b"".join(b"%09d %s\n" % (number, b"x" * (number % 90)) for number in range(60_000))
    stored = gzip.compress(content, 0)
    packed = zlib.compress(content, 9, zlib.MAX_WBITS | 16)
    assert lines_in(stored + packed) == 2 * lines_of(content)


def test_lists_stay_small_whatever_the_members() -> None:
    content = b"com,example)/ 20200101000000 {}\n" * 600_000
    for data in (
        content,
        gzip.compress(content, 1),
        b"".join(members(content, range(0, len(content), 100_000))),
    ):
        sizes = [sum(map(len, lines)) for lines in split_lines(read_content(window_of(data)))]
        assert max(sizes) < 2 << 20


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(b"", False), (b" CDX N b a", False), (b" ", True), (b"a 1 {}", True), (b" cdx", True)],
)
def test_headers_and_empty_lines_are_no_captures(text: bytes, is_one: bool) -> None:
    assert is_capture_line(text) is is_one


@pytest.mark.parametrize("lists", [[], [[]], [[b"a"], [], [b"b", b"c"]]])
@pytest.mark.parametrize("name", ["a.cdx", "a.cdx.gz", "A.CDX.GZ", "a.gz.cdx"])
def test_lines_are_written_as_the_name_of_the_file_says(lists: list[list[bytes]], name: str) -> None:
    file, packed = BytesIO(), BytesIO()
    count = sum(map(len, lists))
    assert write_lines(lists, file, name) == count
    is_gzip = name.lower().endswith(".gz")
    assert (gzip.decompress(file.getvalue()) if is_gzip else file.getvalue()) == b"a\nb\nc\n"[: 2 * count]
    assert write_gzip_lines(lists, packed) == len(packed.getvalue()) > 0
    assert (file.getvalue() == packed.getvalue()) == is_gzip


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("sizes", [[], [0], [6], [1] * 6, [2, 4], [5, 0, 1]])
def test_blocks_have_their_number_of_lines_and_the_last_one_has_the_rest(
    lines: int, sizes: list[int]
) -> None:
    every = [b"%d" % number for number in range(sum(sizes))]
    lists = [every[sum(sizes[:at]) : sum(sizes[: at + 1])] for at in range(len(sizes))]
    found = list(cut_blocks(lists, lines))
    assert b"".join(block.text for block in found) == b"".join(one + b"\n" for one in every)
    assert [block.lines for block in found] == [
        min(lines, len(every) - start) for start in range(0, len(every), lines)
    ]
    assert all(block.text.count(b"\n") == block.lines for block in found)


@pytest.mark.parametrize(
    ("lists", "kept"),
    [
        ([], []),
        ([[]], []),
        ([[b"", b""]], []),
        ([[b"a"]], [[b"a"]]),
        ([[b"a", b"a", b"b", b"b"]], [[b"a", b"b"]]),
        ([[b"a"], [b"a"], [b"a", b"b"], [b"b", b"c"]], [[b"a"], [b"b"], [b"c"]]),
        ([[b"", b" CDX N", b" CDX a", b" b"], [b" b"]], [[b" b"]]),
        ([[b""], [b" CDX"], [b" CDX "], [b" CDXZ"]], []),
        ([[b" CDW", b" CDX", b" CDY"]], [[b" CDW", b" CDY"]]),
        ([[b" CDW"], [b" CDW", b" CDXX"], [b" CDY"]], [[b" CDW"], [b" CDY"]]),
        ([[b" CDY", b" CDY"], [b"a"]], [[b" CDY"], [b"a"]]),
        ([[b"\0"], [b"\0", b"\1"]], [[b"\0"], [b"\1"]]),
        ([[b"", b"\0", b" CDX"]], [[b"\0"]]),
    ],
    ids=range(13),
)
def test_the_distinct_captures_of_sorted_lists(lists: list[list[bytes]], kept: list[list[bytes]]) -> None:
    assert list(distinct_captures([list(one) for one in lists])) == kept
    assert [line for one in lists for line in without_headers(sorted(one)) if not line] == []
    for one in lists:
        assert without_headers(one) == [line for line in one if is_capture_line(line)]


@pytest.mark.parametrize("low", [None, b"", b"a", b"b", b"bb", b"c", b"d", b"e"])
@pytest.mark.parametrize("high", [None, b"", b"a", b"b", b"bb", b"c", b"d", b"e"])
def test_the_lines_between_two_bounds(low: bytes | None, high: bytes | None) -> None:
    for lines in ([], [b"b"], [b"b", b"c", b"d"]):
        wanted = [one for one in lines if (low is None or one >= low) and (high is None or one < high)]
        assert lines_between(lines, low, high) == wanted


@pytest.mark.parametrize(
    ("lines", "points", "shards"),
    [
        ([], [b"b"], []),
        ([b"a", b"b"], [], [(0, [b"a", b"b"])]),
        ([b"a", b"b", b"c"], [b"b"], [(0, [b"a"]), (1, [b"b", b"c"])]),
        ([b"b"], [b"b"], [(1, [b"b"])]),
        ([b"a", b"e"], [b"b", b"c", b"d"], [(0, [b"a"]), (3, [b"e"])]),
        ([b"b", b"c"], [b"b", b"c", b"d"], [(1, [b"b"]), (2, [b"c"])]),
        ([b"a\xff", b"b\0"], [b"b"], [(0, [b"a\xff"]), (1, [b"b\0"])]),
    ],
)
def test_lines_are_divided_at_the_split_points(
    lines: list[bytes], points: list[bytes], shards: list[tuple[int, list[bytes]]]
) -> None:
    assert list(divide(lines, points)) == shards


@pytest.mark.parametrize(
    ("size", "groups"), [(0, [1, 1, 1, 1]), (1, [1, 1, 1, 1]), (3, [2, 1, 1]), (4, [2, 1, 1]), (5, [2, 2]), (7, [3, 1]), (8, [4]), (99, [4])]
)  # fmt: skip
def test_groups_of_lines_have_a_largest_size(size: int, groups: list[int]) -> None:
    lines = [b"a", b"bb", b"dddd", b"e"]
    found = list(group_lines(lines, size))
    assert [one for group in found for one in group] == lines
    assert [len(group) for group in found] == groups


def test_captures_are_converted_and_headers_left_out() -> None:
    line = b"com,a)/ 20200101000000 http://a.com/ 12 0 a.warc.gz"
    assert convert_captures([]) == convert_captures([b"", b" CDX N b a"]) == []
    (found,) = convert_captures([b" CDX N b a S V g", b"", line])
    assert found.startswith(b"com,a)/ 20200101000000 {")
    with pytest.raises(ValueError, match=r"."):
        convert_captures([b"text"])
