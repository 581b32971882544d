"""The parts of a report, one by one: what a shard or a CDX file adds up to, and what is said of its faults."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdxmill.checks.claims import ClusterFiles, read_claims, shard_tasks
from cdxmill.commands.reporting import parts
from cdxmill.commands.reporting.parts import PartSums, ReportPart, read_part
from cdxmill.errors import InputError, UsageError
from cdxmill.stages.report.capture_sums import CaptureSums, PackedSamples
from cdxmill.stages.report.tables import ReportTables
from cdxmill.stages.window import chunk_of
from cdxmill.stages.zipnum.check_shard import read_texts
from cdxmill.storage.location import locate
from tests.material.cdx_files import write_plain
from tests.material.clusters import write_raw_cluster

BAD = b'com,b)/%02d 2020 {"mime": }'
WITHOUT_END = InputError("a.cdxj", "is corrupt")


def line(number: int, length: int = 1) -> bytes:
    return b'com,a)/%04d 20200101000000 {"url": "http://a.com/", "length": "%d"}' % (number, length)


def text(*lines: bytes) -> bytes:
    return b"".join(one + b"\n" for one in lines)


def added(*texts: bytes, with_urls: bool = False) -> PartSums:
    """A CDX file whose text is read in these pieces."""
    reader = parts._Reader(ReportPart("a.cdxj", None, with_urls))
    for one in texts:
        reader._take(one, None)
    return reader.report()


def pieces_of(pieces: list[bytes | InputError]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, InputError):
            raise piece
        yield piece


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        ([], []),
        ([b""], []),
        ([b"a"], [b"a"]),
        ([b"a\n"], [b"a\n"]),
        ([b"ab\n"], [b"ab\n"]),
        ([b"abc\n"], [b"abc\n"]),
        ([b"ab", b"c\nd"], [b"abc\n", b"d"]),
        ([b"ab", b"c\nd\n", b"e\n"], [b"abc\nd\n", b"e\n"]),
        ([b"abcd", b"efgh", b"i\nj"], [b"abcdefghi\n", b"j"]),
        ([b"a\nb\nc", b"d\nef", b"g\n"], [b"a\nb\n", b"cd\n", b"efg\n"]),
        ([b"\nabc", b"d", b"\n"], [b"\n", b"abcd\n"]),
        ([b"abc\n", b"d", b"ef", b"\n"], [b"abc\n", b"def\n"]),
        ([b"abc\nd", b"e\n", b"\n"], [b"abc\n", b"de\n\n"]),
    ],
)
def test_a_file_is_added_in_texts_of_whole_lines(
    pieces: list[bytes], texts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_TEXT", 4)
    assert list(parts._whole_lines(iter(pieces))) == texts


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        ([], []),
        ([b"a"], []),
        ([b"\n"], [b"\n"]),
        ([b"a\nb"], [b"a\n"]),
        ([b"abcdef"], []),
        ([b"abc\nd", b"e\n\nf"], [b"abc\n", b"de\n\n"]),
        ([b"abc\n"], [b"abc\n"]),
    ],
)
def test_whole_lines_before_a_corrupt_place_are_added(
    pieces: list[bytes], texts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_TEXT", 4)
    found = list[bytes]()
    with pytest.raises(InputError, match=r"a\.cdxj: is corrupt"):
        for one in parts._whole_lines(pieces_of([*pieces, WITHOUT_END])):
            found.append(one)
    assert found == texts


@pytest.mark.parametrize("name", ["publicsuffixlist", "datasketches"])
def test_a_library_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "datasketches":
        monkeypatch.setattr(parts, "find_spec", lambda asked: None if asked == name else 1)
    else:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"report needs more libraries; run .*\[report\]"):
        parts.public_suffixes.__wrapped__()


def test_the_lines_of_a_text_are_counted() -> None:
    reader = parts._Reader(ReportPart("a.cdxj", None, False))
    texts = [
        text(line(1), line(2), line(2)),
        b"",
        text(BAD % 1, line(3), b"", b" CDX N b a"),
        text(BAD % 2),
        line(4),
    ]
    assert [reader._take(one, None) for one in texts] == [3, 0, 2, 1, 1]
    found = reader.report()
    assert (found.totals.captures, found.invalid, found.path) == (5, 2, "a.cdxj")
    assert (found.first_key, found.totals.key) == (b"com,a)/0001", b"com,a)/0004")
    assert (list(found.block_bytes), list(found.block_lines)) == ([], [])


@pytest.mark.parametrize(
    ("numbers", "listed", "more"),
    [
        ([0], 0, ""),
        ([9], 9, ""),
        ([10], 10, ""),
        ([11], 10, "1 more lines of this kind"),
        ([9, 1], 10, ""),
        ([9, 3], 10, "2 more lines of this kind"),
        ([10, 1], 10, "1 more lines of this kind"),
        ([12, 5], 10, "7 more lines of this kind"),
    ],
)
def test_ten_invalid_lines_of_a_part_are_shown(numbers: list[int], listed: int, more: str) -> None:
    lines = [[BAD % (row + 50 * one) for row in range(number)] for one, number in enumerate(numbers)]
    found = added(*(text(*some, line(1)) for some in lines))
    shown = [one for some in lines for one in some][:listed]
    reasons = [f"neither a CDX nor a CDXJ line: {one!r}" for one in shown]
    assert [one.reason for one in found.findings] == [*reasons, *[more][: bool(more)]]
    assert {(one.path, one.offset) for one in found.findings} <= {("a.cdxj", None)}
    assert found.invalid == sum(numbers)


def test_an_invalid_line_is_shown_in_part() -> None:
    long = b"com,a)/ 2020 {" + b"x" * 200
    (finding,) = added(text(long)).findings
    assert finding.reason == f"neither a CDX nor a CDXJ line: {long[:80]!r}"


@pytest.mark.parametrize(
    ("blocks", "largest"),
    [
        ([[0, 1, 2]], [2, 1]),
        ([[10, *[30] * 19], [20]], [*[30] * 19, 20]),
        ([[10, *[30] * 19], [10, 9, 11]], [*[30] * 19, 11]),
        ([[10, *[30] * 18], [20, 5]], [*[30] * 18, 20, 10]),
        ([list(range(1, 41))], list(range(40, 20, -1))),
        ([list(range(1, 21)), list(range(21, 31)), list(range(5, 30))], [30, *(n for n in range(29, 20, -1) for _ in range(2)), 20]),
    ],
)  # fmt: skip
def test_the_largest_records_of_all_texts_are_kept(blocks: list[list[int]], largest: list[int]) -> None:
    found = added(*(text(*(line(row, size) for row, size in enumerate(sizes))) for sizes in blocks))
    assert [size for size, _ in found.largest] == largest
    assert all(b'"length": "%d"' % size in one for size, one in found.largest)


@pytest.mark.parametrize(("most", "drained"), [(8, 5), (11, 1), (12, 1), (13, 0)])
def test_groups_are_taken_when_there_are_many(
    most: int, drained: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line has nine groups, and the lines after it one more each."""
    lines = [
        b'com,h%d)/ 20200101000000 {"url": "http://h%d.com/", "length": "1"}' % (row, row) for row in range(5)
    ]
    assert len(sums_of(lines[:1])) == 9
    taken: list[int] = []
    take = ReportTables.take

    def noted(tables: Any, groups: Any) -> None:
        taken.append(1)
        take(tables, groups)

    whole = added(text(*lines))
    monkeypatch.setattr(ReportTables, "take", noted)
    monkeypatch.setattr(parts, "_DRAIN", most)
    found = added(*(text(one) for one in lines))
    assert found.tables == whole.tables
    assert len(taken) - 1 == drained


def sums_of(lines: list[bytes]) -> CaptureSums:
    reader = parts._Reader(ReportPart("a.cdxj", None, False))
    reader._take(text(*lines), None)
    return reader._sums


def shard_part(directory: Path, with_urls: bool = False) -> ReportPart:
    files = ClusterFiles(locate(directory))
    (shard,) = shard_tasks(files, read_claims(files, lambda found: None))
    return ReportPart(str(shard.place), shard, with_urls)


def test_a_shard_is_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(read_at: Any, lengths: Any, chunk: int, **options: Any) -> Any:
        asked.append((lengths, chunk, options))
        return read_texts(read_at, lengths, chunk, **options)

    monkeypatch.setattr(parts, "read_texts", noted)
    rows = [line(row) for row in range(4)]
    write_raw_cluster(tmp_path / "C", [*rows, BAD % 1], 2)
    blocks = [gzip.compress(text(*some), mtime=0) for some in (rows[:2], rows[2:], [BAD % 1])]
    sizes = [len(block) for block in blocks]
    found = read_part(shard_part(tmp_path / "C"))
    ends = {0: sizes[0], sizes[0]: sizes[1], sum(sizes[:2]): sizes[2]}
    assert asked == [(ends, chunk_of(False), {"check_sections": False})]
    assert (list(found.block_bytes), list(found.block_lines)) == (sizes, [2, 2, 1])
    path = str(tmp_path / "C/cdx-00000.gz")
    assert found.path == path
    assert [(one.path, one.offset) for one in found.findings] == [(path, sum(sizes[:2]))]


@pytest.mark.parametrize("number", [1, 10, 11, 13])
def test_ten_corrupt_blocks_of_a_shard_are_shown(number: int, tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", [line(row) for row in range(number + 1)], 1)
    shard = tmp_path / "C/cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    size = len(data) // (number + 1)
    offsets = [int(row.split(b"\t")[2]) for row in (tmp_path / "C/cluster.idx").read_bytes().splitlines()[1:]]
    for offset in offsets:
        data[offset + size // 2] ^= 255
    shard.write_bytes(data)
    found = read_part(shard_part(tmp_path / "C"))
    assert [one.offset for one in found.findings] == offsets[:11]
    assert (len(found.block_bytes), found.totals.captures) == (1, 1)
    if number > 10:
        assert found.findings[10].reason == f"{number - 10} more corrupt blocks"
    assert all("block" in one.reason and one.path == str(shard) for one in found.findings)


def test_a_part_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", [line(1)])
    part = shard_part(tmp_path / "C")
    (tmp_path / "C/cdx-00000.gz").unlink()
    found = read_part(part)
    assert [(one.path, one.reason) for one in found.findings] == [
        (part.path, "cannot be read (No such file or directory)")
    ]
    cut = tmp_path / "a.cdxj.gz"
    cut.write_bytes(gzip.compress(text(line(1), line(2)), mtime=0)[:-4])
    found = read_part(ReportPart(str(cut), None, False))
    assert [one.path for one in found.findings] == [str(cut)]
    assert "truncated" in found.findings[0].reason


@pytest.mark.parametrize("with_urls", [False, True])
def test_urls_are_sampled_if_that_is_asked_for(with_urls: bool, tmp_path: Path) -> None:
    path = write_plain(tmp_path / "a.cdxj", [line(1), line(1), line(2)])
    found = read_part(ReportPart(str(path), None, with_urls))
    assert not isinstance(found.samples, PackedSamples)
    assert found.samples.sampled("urls")[1] == (2 if with_urls else 0)
    assert (found.totals.urls, found.findings) == (2, [])
