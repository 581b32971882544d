"""Split points as text and as a SequenceFile, which a second writer here makes from Hadoop's description."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.clusters import split_points
from cdxmill.formats.clusters.split_points import (
    format_boundaries,
    format_partition_file,
    format_sequence_file,
    format_text,
    parse,
    parse_boundaries,
    parse_sequence_file,
    parse_text,
)

TEXT, NULL = b"org.apache.hadoop.io.Text", b"org.apache.hadoop.io.NullWritable"
MARKER = bytes(range(16))
HADOOP_3 = 102_400

point = st.binary(min_size=1, max_size=30).filter(lambda data: b"\n" not in data and data[:3] != b"SEQ")
points = st.lists(point, unique=True, max_size=30).map(sorted)


def vint(number: int) -> bytes:
    """WritableUtils.writeVLong for numbers from 0."""
    if number <= 127:
        return struct.pack("b", number)
    size = next(size for size in range(1, 9) if number < 256**size)
    return struct.pack("b", -112 - size) + number.to_bytes(size, "big")


def text(value: bytes) -> bytes:
    return vint(len(value)) + value


class Written(bytes):
    """A SequenceFile; at `ends` it can be cut unseen."""

    ends: frozenset[int]


def written(
    keys: Sequence[bytes],
    spacing: int = HADOOP_3,
    classes: tuple[bytes, bytes] = (TEXT, NULL),
    flags: bytes = b"\0\0",
    metadata: Sequence[tuple[bytes, bytes]] = (),
) -> Written:
    """As SequenceFile.Writer does it: a sync marker before a record once `spacing` bytes have passed."""
    out = b"SEQ\x06" + text(classes[0]) + text(classes[1]) + flags + struct.pack(">i", len(metadata))
    out += b"".join(text(name) + text(value) for name, value in metadata) + MARKER
    last_sync, ends = 0, {len(out)}
    for key in keys:
        if len(out) >= last_sync + spacing:
            out += struct.pack(">i", -1) + MARKER
            last_sync = len(out)
            ends.add(len(out))
        record = text(key)
        out += struct.pack(">ii", len(record), len(record)) + record
        ends.add(len(out))
    file = Written(out)
    file.ends = frozenset(ends)
    return file


@given(points)
def test_text_is_read_as_written(splits: list[bytes]) -> None:
    assert parse_text(format_text(splits)) == parse(format_text(splits)) == splits


@given(points)
def test_a_sequence_file_is_read_as_written(splits: list[bytes]) -> None:
    data = format_sequence_file(splits)
    assert parse_sequence_file(data) == parse(data) == splits


@given(points)
def test_a_sequence_file_is_written_as_hadoop_writes_it(splits: list[bytes]) -> None:
    assert format_sequence_file(splits, MARKER) == written(splits)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=12))
def test_long_points_have_hadoops_sync_markers_and_are_read_again(sizes: list[int]) -> None:
    splits = [b"%03d" % number + b"x" * size for number, size in enumerate(sizes)]
    data = format_sequence_file(splits, MARKER)
    assert data == written(splits)
    assert parse_sequence_file(data) == splits
    assert parse_text(format_text(splits)) == splits


@pytest.mark.parametrize("size", [HADOOP_3 - 1, HADOOP_3, HADOOP_3 + 1])
def test_a_sync_marker_is_where_hadoop_writes_it_at_the_latest(size: int) -> None:
    """It is in front of a record at byte `size`, and of a record `size` bytes after the last marker."""
    empty = len(written([]))
    one = b"a" * (size - empty - 12)  # behind two lengths, and a vint of four bytes
    splits = [one, b"b" * (size - 12), b"c"]
    data = format_sequence_file(splits, MARKER)
    assert len(written([one])) == size
    assert data == written(splits)


@given(points, st.integers(0, 300), st.lists(st.tuples(point, point), max_size=3))
def test_other_spacings_of_sync_markers_and_metadata_are_read(
    splits: list[bytes], spacing: int, metadata: list[tuple[bytes, bytes]]
) -> None:
    assert parse_sequence_file(written(splits, spacing, metadata=metadata)) == splits


@pytest.mark.parametrize("size", [1, 127, 128, 255, 256, 65_535, 65_536, 1 << 24])
def test_sizes_at_the_borders_of_hadoops_vints_come_back(size: int) -> None:
    splits = [b"k" * size]
    assert parse_sequence_file(format_sequence_file(splits)) == splits
    assert format_sequence_file(splits, MARKER) == written(splits)


@given(points.filter(len), st.data())
def test_a_cut_file_is_refused_or_ends_with_a_whole_record(splits: list[bytes], data: st.DataObject) -> None:
    file = written(splits, 50)
    size = data.draw(st.integers(0, len(file) - 1))
    if size in file.ends:
        found = parse_sequence_file(file[:size])
        assert found == splits[: len(found)]
    else:
        with pytest.raises(ValueError, match=r"truncated|corrupt|not a SequenceFile") as error:
            parse_sequence_file(file[:size])
        assert "\n" not in str(error.value)


@given(points, st.integers(0, 200), st.data())
def test_a_flipped_bit_is_refused_or_gives_increasing_points(
    splits: list[bytes], spacing: int, data: st.DataObject
) -> None:
    file = bytearray(written(splits, spacing))
    file[data.draw(st.integers(0, len(file) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = parse_sequence_file(bytes(file))
    except ValueError as error:
        assert str(error)
        assert "\n" not in str(error)
    else:
        assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"SEQ\x05" + written([b"a"])[4:], "version 6"),
        (written([b"a"], classes=(b"org.apache.hadoop.io.BytesWritable", NULL)), "Text keys"),
        (written([b"a"], classes=(TEXT, TEXT)), "NullWritable"),
        (written([b"a"], flags=b"\1\0"), "uncompressed"),
        (written([b"a"], flags=b"\1\1"), "uncompressed"),
        (written([b"a"]).replace(b"\x19org", b"\x8borg", 1), "bad length at 4"),
        (written([b"b", b"a"]), "must increase"),
        (written([b"a", b"a"]), "must increase"),
        (written([b"a", b"b"], 0).replace(b"\xff\xff\xff\xff" + MARKER, b"\xff\xff\xff\xff" + bytes(16)), "no sync"),
        (written([b"abc"]).replace(b"\0\0\0\4\3abc", b"\0\0\0\4\2abc"), "corrupt"),
        (written([b"abc"]).replace(b"\0\0\0\4\0\0\0\4", b"\0\0\0\4\0\0\0\3"), "corrupt"),
        (written([b"abc"]).replace(b"\0\0\0\4\0\0\0\4", b"\0\0\0\2\0\0\0\4"), "corrupt"),
    ],
)  # fmt: skip
def test_files_that_hadoop_would_refuse_are_refused_with_the_reason(file: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(file)


@pytest.mark.parametrize("data", [b"b\na\n", b"a\na\n"])
def test_text_that_does_not_increase_is_refused_with_the_number(data: bytes) -> None:
    with pytest.raises(ValueError, match="number 2"):
        parse_text(data)


def test_text_may_have_blank_lines_and_no_last_line_end() -> None:
    assert parse_text(b"\na 2020\n\nb 2021") == [b"a 2020", b"b 2021"]
    assert parse_text(b"") == parse_text(b"\n") == []


def test_a_point_of_a_text_file_may_begin_as_a_sequence_file_does() -> None:
    assert parse(b"SEQ.com 2020\n") == [b"SEQ.com 2020"]


def test_a_partition_file_has_keys_of_bytes_with_their_length() -> None:
    points = [b"com,a)/ 2020", b"com,b)/" * 50]
    data = format_partition_file(points)
    classes = text(b"org.apache.hadoop.io.BytesWritable") + text(NULL)
    head = b"SEQ\x06" + classes + bytes(6)
    assert data.startswith(head)
    records = b"".join(struct.pack(">iii", len(key) + 4, len(key) + 4, len(key)) + key for key in points)
    assert data[len(head) + 16 :] == records


@given(st.lists(st.tuples(st.text("ab)/\udcff", min_size=1), st.text("0123 ")), unique=True))
def test_boundaries_are_read_as_written(rows: list[tuple[str, str]]) -> None:
    points = sorted({" ".join(filter(None, row)).encode("utf-8", "surrogateescape") for row in rows})
    assert parse_boundaries(format_boundaries(points)) == points


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "is not a list"),
        (b'[["a"]]', "is not a list"),
        (b'[["a", "b", "c"]]', "is not a list"),
        (b'[["a", 1]]', "is not a list"),
        (b'["ab"]', "is not a list"),
        (b'[["", ""]]', "is empty or has a line end"),
        (b'[["a\\n", ""]]', "is empty or has a line end"),
        (b'[["b", ""], ["a", ""]]', "must increase, but number 2"),
        (b'[["a", "1"], ["a", "1"]]', "must increase, but number 2"),
    ],
)
def test_a_file_without_boundaries_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_boundaries(data)


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (b"\x8c\0\0\0\1", None),
        (b"\x8f\1", None),
        (b"\x8b\0\0\0\0\1", "bad length"),
        (b"\x90", "bad length"),
        (b"\xff", "bad length"),
    ],
)
def test_a_length_takes_up_to_four_more_bytes(length: bytes, reason: str | None) -> None:
    key = length + b"a"
    record = struct.pack(">ii", len(key), len(key)) + key
    data = written([]) + record
    if reason is None:
        assert parse(data) == [b"a"]
        return
    with pytest.raises(ValueError, match=rf"{reason} at {len(data) - len(key)}"):
        parse(data)


@pytest.mark.parametrize(
    ("data", "points"),
    [
        (b"SEQ a\n", [b"SEQ a"]),
        (b"SEQ\n", None),
        (b"SEQ\x1f\n", None),
        (b"SEP\n", [b"SEP"]),
        (b"SE", [b"SE"]),
        (b"SEQ", None),
    ],
)
def test_a_control_character_tells_a_sequence_file_from_text(data: bytes, points: list[bytes] | None) -> None:
    if points is not None:
        assert parse(data) == points
        return
    with pytest.raises(ValueError, match=r"."):
        parse(data)


def test_a_marker_is_made_where_md5_is_not_allowed_for_security(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def md5(data: bytes, usedforsecurity: bool = True) -> object:
        seen.append(usedforsecurity)
        return hashlib.new("md5", data, usedforsecurity=usedforsecurity)

    monkeypatch.setattr(split_points, "hashlib", SimpleNamespace(md5=md5))
    assert parse(format_sequence_file([b"a", b"b"])) == [b"a", b"b"]
    assert seen == [False]
