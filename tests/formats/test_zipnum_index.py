"""Lines of part, idx and loc files, read by pywb too."""

from __future__ import annotations

import os
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.zipnum import (
    BlockRef,
    find_places,
    format_location,
    format_part_line,
    format_path_index,
    key_of,
    number_of,
    one_key,
    parse_index_line,
    parse_locations,
    parse_path_index,
    part_name,
    shard_name,
)

with warnings.catch_warnings():  # what pywb imports is deprecated in newer Pythons
    warnings.simplefilter("ignore")
    from pywb.warcserver.index.cdxobject import IDXObject

numbers = st.integers(0, 2**53)
words = st.text(st.characters(min_codepoint=0x21, exclude_categories=["Cs"]), min_size=1).map(str.encode)
keys = (
    st.tuples(words, st.from_regex(rb"\A[0-9]{14}\Z")).map(b" ".join).filter(lambda key: key == key.strip())
)
wild_keys = st.binary(max_size=20).filter(lambda key: b"\n" not in key)


@given(keys, st.integers(0, 99_999), numbers, numbers)
def test_a_part_line_says_to_pywb_what_it_says_to_us(
    key: bytes, shard: int, offset: int, length: int
) -> None:
    block = BlockRef(key, shard_name(shard).encode(), offset, length)
    line = format_part_line(block)
    theirs = IDXObject(line)
    assert parse_index_line(line) == block
    assert theirs["urlkey"].encode() == block.key
    assert theirs["part"] == shard_name(shard)
    assert (theirs["offset"], theirs["length"]) == (offset, length)


@given(wild_keys, numbers, numbers)
def test_any_key_comes_back_and_leaves_the_columns_whole(key: bytes, offset: int, length: int) -> None:
    block = BlockRef(key, b"cdx-00000.gz", offset, length)
    line = format_part_line(block)
    assert line.count(b"\t") == 3
    assert line.count(b"\n") == 1
    assert parse_index_line(line) == parse_index_line(line[:-1] + b"\t17\n") == block


@given(st.lists(wild_keys, min_size=2, max_size=2).map(sorted))
def test_lines_are_in_the_order_of_their_keys(pair: list[bytes]) -> None:
    first, second = (format_part_line(BlockRef(key, b"s", 0, 0)).split(b"\t")[0] for key in pair)
    assert first <= second


@pytest.mark.parametrize(
    "line",
    [b"", b"a 2020", b"a 2020\ts\t1", b"a 2020\ts\tx\t1", b"a 2020\ts\t1\t", b"a 2020\ts\t-1\t5", b"a 2020\ts\t1\t1.5",
     b"a 2020\ts\t1\t" + b"9" * 30],
)  # fmt: skip
def test_what_is_no_index_line_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a line of a ZipNum index"):
        parse_index_line(line)


@given(st.binary(max_size=60).filter(lambda line: b"\n" not in line))
def test_the_key_is_the_first_two_fields_of_a_line(line: bytes) -> None:
    assert key_of(line) == b" ".join(line.split(b" ")[:2])


paths = (
    st.binary(min_size=1)
    .map(os.fsdecode)
    .filter(lambda path: not set(path) & set("\t\n") and not path.endswith("\r"))
)


@given(st.dictionaries(st.integers(0, 99_999).map(shard_name), paths))
def test_locations_come_back(locations: dict[str, str]) -> None:
    data = b"".join(format_location(shard, location) for shard, location in locations.items())
    rows = [(shard, [path]) for shard, path in locations.items()]
    assert parse_locations(data) == (rows, [])


@given(st.binary() | st.text("ab\t\r\n", max_size=30).map(str.encode))
def test_every_line_of_any_locations_is_a_row_or_a_fault(data: bytes) -> None:
    rows, faults = parse_locations(data)
    assert len(rows) <= len(data.split(b"\n"))
    assert len(rows) + len(faults) >= data.count(b"\n")
    assert all(row.shard and row.locations and all(row.locations) for row in rows)
    assert bool(faults) == (data != b"" and not all(_is_sound(line) for line in _lines(data)))


def _lines(data: bytes) -> list[bytes]:
    """Lines without LF and one CR; for a truncated last line, an empty one that is never sound."""
    lines = data.split(b"\n")
    lines[-1:] = [] if not lines[-1] else [b""]
    return [line.removesuffix(b"\r") for line in lines]


def _is_sound(line: bytes) -> bool:
    return b"\t" in line and all(line.split(b"\t"))


def test_a_shard_may_have_several_locations() -> None:
    data = b"cdx-00000.gz\t/a/cdx-00000.gz\thttp://b/cdx-00000.gz\n\ncdx-00001.gz\n"
    rows, faults = parse_locations(data)
    assert rows == [("cdx-00000.gz", ["/a/cdx-00000.gz", "http://b/cdx-00000.gz"])]
    assert [fault.split(",")[0] for fault in faults] == [
        "line 2 is not a shard with its locations",
        "line 3 is not a shard with its locations",
    ]


@pytest.mark.parametrize("byte", [b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\r"])
def test_only_a_line_feed_ends_a_line_of_locations(byte: bytes) -> None:
    rows, faults = parse_locations(b"cdx-00000.gz\t/a%bb\n" % byte)
    assert (rows, faults) == ([("cdx-00000.gz", [os.fsdecode(b"/a%bb" % byte)])], [])


def test_locations_of_a_file_with_crlf_have_no_cr() -> None:
    assert parse_locations(b"a\t/a\r\nb\t/b\r\n") == ([("a", ["/a"]), ("b", ["/b"])], [])


def test_a_truncated_last_line_of_locations_is_a_fault_and_still_a_row() -> None:
    assert parse_locations(b"a\t/a\nb\t/b") == ([("a", ["/a"]), ("b", ["/b"])], ["line 2 is truncated"])


def test_names_have_five_digits_and_more_where_they_must() -> None:
    assert (shard_name(0), part_name(99_999)) == ("cdx-00000.gz", "part-99999")
    assert shard_name(123_456) == "cdx-123456.gz"


NAMES_OF_FILES = st.sampled_from(["a", "aa", "a.warc.gz", "b", "\udcff", "a b"])


@given(st.lists(st.tuples(NAMES_OF_FILES, st.sampled_from(["/1/a", "/2/\udcff", "s3://b/c d"])), max_size=9))
def test_a_path_index_has_all_places_of_a_name(listed: list[tuple[str, str]]) -> None:
    data, left = format_path_index(listed)
    assert not left
    wanted = {name: sorted({place for one, place in listed if one == name}) for name, _ in listed}
    assert dict(parse_path_index(data)) == wanted
    assert data.split(b"\n")[:-1] == sorted(data.split(b"\n")[:-1])
    for name in ("a", "aa", "b", "\udcff", "none", ""):
        assert find_places(data, name) == wanted.get(name, [])
        assert find_places(data[:-1], name) == wanted.get(name, [])


@pytest.mark.parametrize(
    "row", [("", "/a"), ("a", ""), ("a\t", "/a"), ("a", "/\ta"), ("a\n", "/a"), ("a", "/a\r")]
)
def test_a_place_that_no_line_can_have_is_left(row: tuple[str, str]) -> None:
    assert format_path_index([("b", "/b"), row]) == (b"b\t/b\n", [row[1]])


@pytest.mark.parametrize("digits, is_valid", [(18, True), (19, False)])
def test_a_number_of_an_index_has_up_to_eighteen_digits(digits: int, is_valid: bool) -> None:
    number = "9" * digits
    for columns in ((number, "1", "1"), ("1", number, "1"), ("1", "1", number)):
        line = "\t".join(("k", "cdx-00000.gz", *columns)).encode()
        if is_valid:
            assert parse_index_line(line) == BlockRef(b"k", b"cdx-00000.gz", int(columns[0]), int(columns[1]))
            assert number_of(line) == int(columns[2])
        else:
            assert number_of(line) is None
            with pytest.raises(ValueError, match="not a line of a ZipNum index"):
                parse_index_line(line)


@pytest.mark.parametrize(
    ("low", "high", "key"),
    [
        (b"k", b"k!", b"k"),
        (b"k 2020", b"k 2021", b"k"),
        (b"k 2020", b"k!", b"k"),
        (b"k", b'k"', None),
        (b"k", b"l", None),
        (b"", b"!", b""),
    ],
)
def test_a_range_may_be_that_of_one_key(low: bytes, high: bytes, key: bytes | None) -> None:
    assert one_key(low, high) == key


@pytest.mark.parametrize(
    ("line", "key"),
    [(b"a 1 {}", b"a 1"), (b"a 1", b"a 1"), (b"a", b"a"), (b"a  x", b"a "), (b" b c", b" b"), (b"", b"")],
)
def test_a_line_may_have_fewer_fields_than_a_key(line: bytes, key: bytes) -> None:
    assert key_of(line) == key


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b"com,a)/ 2020 {}", b"com,a)/ 2020"),
        (b"com,a)/ 2020 a b", b"com,a)/ 2020"),
        (b"com,a)/ 2020", b"com,a)/ 2020"),
        (b"com,a)/ 2020 ", b"com,a)/ 2020"),
        (b"com,a)/ ", b"com,a)/ "),
        (b"com,a)/  x", b"com,a)/ "),
        (b"com,a)/", b"com,a)/"),
        (b" 2020 {}", b" 2020"),
        (b"  ", b" "),
        (b" ", b" "),
        (b"", b""),
    ],
)
def test_the_key_of_a_line_is_what_stands_before_its_second_space(line: bytes, key: bytes) -> None:
    assert key_of(line) == key
