"""Members and frames with several records: damage inside them costs the damaged record, and no other.

A member whose first record was bad gave nothing, however many good records followed it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from cdxmill.capture import Record
from cdxmill.cli.main import main
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_records import read_records

from ..reliability.sources import dictionary_frame
from .test_recompress import (
    CRLF,
    RECORDS,
    SKIPPABLE,
    decompressed,
    failures,
    frame,
    member,
    recompress,
    record,
)
from .test_recompress_damaged import FIRST, SECOND, with_dictionary

GOOD = [record(b"number %d" % number * 20, number) for number in range(100)]
LENGTH = b"Content-Length: "


def with_length(length: bytes) -> Callable[[bytes], bytes]:
    """A change of the Content-Length of a record."""

    def change(data: bytes) -> bytes:
        before, _, after = data.partition(LENGTH)
        return before + LENGTH + length + after[after.index(b"\r\n") :]

    return change


def _without_length(data: bytes) -> bytes:
    return data.replace(LENGTH, b"X-Length: ", 1)


BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no length": (_without_length, "missing Content-Length"),
    "invalid length": (with_length(b"many"), "invalid Content-Length"),
    "enormous length": (with_length(b"9" * 30), "Content-Length is too large"),
    "too short": (with_length(b"1"), "wrong Content-Length"),
    "too long": (with_length(b"800"), ""),
    "longer than all": (with_length(b"1000000"), "truncated file or wrong Content-Length"),
    "version": (lambda data: data.replace(b"WARC/1.0", b"WARC/7.0", 1), "unknown WARC version"),
    "garbage": (lambda data: b"GARBAGE" + data[9:], "no WARC or ARC record starts here"),
}


@pytest.mark.parametrize("to_unit", [member, frame], ids=["gz", "zst"])
@pytest.mark.parametrize("place", [0, 50, 99])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_record_in_a_unit_of_many_costs_only_itself(
    kind: str, place: int, to_unit: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    change, reason = BAD[kind]
    bad = change(GOOD[place])
    unit = to_unit(b"".join([*GOOD[:place], bad, *GOOD[place + 1 :]]))
    source = tmp_path / f"a.warc.{'gz' if to_unit is member else 'zst'}"
    source.write_bytes(to_unit(RECORDS[0]) + unit + to_unit(RECORDS[1]))
    assert recompress("-o", tmp_path / "out", "--to", "gz", source) == 1
    rest = [*GOOD[:place], *GOOD[place + 1 :]]
    assert decompressed(tmp_path / "out/a.warc.gz") == [RECORDS[0], *rest, RECORDS[1]]
    ((told,),) = failures(tmp_path / "out").values()
    position = sum(map(len, GOOD[:place]))
    assert told.startswith(reason)
    assert "wrong Content-Length" in told or kind != "too long"
    assert told.endswith(f"; {len(bad)} bytes skipped, at byte {position} of the decompressed content")


@pytest.mark.parametrize("to_unit", [member, frame], ids=["gz", "zst"])
def test_an_index_tells_how_many_records_and_bytes_it_skips(
    to_unit: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    unit = to_unit(b"".join([_without_length(GOOD[0]), *GOOD[1:]]))
    source = tmp_path / "a.warc.gz"
    source.write_bytes(to_unit(RECORDS[0]) + unit + to_unit(RECORDS[1]))
    assert main(["index", "-q", "-o", str(tmp_path / "cdx"), str(source)]) == 1
    ((told,),) = failures(tmp_path / "cdx").values()
    what = "gzip member" if to_unit is member else "zstd frame"
    assert told == (
        f"the {what} contains more than one record: 99, and 1 damaged (missing Content-Length, at byte 0); "
        f"{len(unit)} bytes skipped"
    )


@pytest.mark.parametrize("to_unit", [member, frame], ids=["gz", "zst"])
def test_scan_and_count_take_such_units_apart(to_unit: Callable[[bytes], bytes], tmp_path: Path) -> None:
    pages = [page(number) for number in range(50)]
    source = tmp_path / "a.warc.gz"
    source.write_bytes(to_unit(page(99)) + to_unit(b"".join([_without_length(pages[0]), *pages[1:]])))
    found = tmp_path / "found"
    assert main(["scan", "-q", "--where", "type=response", "-o", str(found), str(source)]) == 1
    (lines,) = found.glob("*.jsonl*")
    assert len(read_lines(lines)) == 50
    counts = tmp_path / "counts"
    assert main(["count", "-q", "tags", "-o", str(counts), str(source)]) == 1
    assert counts.read_text() == "p\t50\n"
    (reason,) = failures(found).values()
    assert len(reason) == 1


def page(number: int) -> bytes:
    """A response with a page of one tag."""
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>%d" % number
    data = record(body, number).replace(b"resource", b"response", 1)
    return data.replace(
        b"\r\nContent-L", b"\r\nContent-Type: application/http; msgtype=response\r\nContent-L", 1
    )


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file, gzipped or not."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()


def test_the_payload_of_a_damaged_record_is_no_record(tmp_path: Path) -> None:
    """It is a WARC file that was archived. Nothing says that its records were captured."""
    inner = b"".join(GOOD[:3])
    source = tmp_path / "a.warc.gz"
    source.write_bytes(member(_without_length(record(inner, 7))) + member(RECORDS[1]))
    assert recompress("-o", tmp_path / "out", "--to", "gz", source) == 1
    assert decompressed(tmp_path / "out/a.warc.gz") == [RECORDS[1]]
    ((told,),) = failures(tmp_path / "out").values()
    assert told.startswith("missing Content-Length")


def found(data: bytes) -> tuple[list[tuple[int, int]], list[str]]:
    """The ranges of the records that an index finds, and all that it says."""
    ranges, said = [], []
    for item in read_records(lambda offset, size: data[offset : offset + size]):
        if isinstance(item, Record):
            ranges.append((item.offset, item.length))
        else:
            said.append(item.reason)  # type: ignore[union-attr]
    return ranges, said


def _pieces(data: bytes, *places: int) -> bytes:
    edges = [0, *places, len(data)]
    return b"".join(frame(data[start:end]) for start, end in pairwise(edges))


@pytest.mark.parametrize(
    "closing", [True, False], ids=["closing in the last frame", "closing in its own frame"]
)
def test_a_record_in_two_frames_whose_payload_is_a_warc_is_one_record(closing: bool, tmp_path: Path) -> None:
    """WARC-Zstd 1.0 allows it. Content-Length decides where the record ends, not the looks of the next frame."""
    outer = record(b"".join(GOOD[:3]), 7)
    head = outer.index(CRLF) + 4
    inner = [head + sum(map(len, GOOD[:number])) for number in range(3)]
    parts = _pieces(outer, head, *inner[1:], *([] if closing else [len(outer) - 4]))
    data = frame(RECORDS[0]) + parts + frame(RECORDS[1])
    ranges, said = found(data)
    assert said == []
    assert [start for start, _ in ranges] == [0, len(frame(RECORDS[0])), len(frame(RECORDS[0]) + parts)]
    source = tmp_path / "a.warc.zst"
    source.write_bytes(data)
    assert recompress("-o", tmp_path / "out", "--to", "gz", source) == 0
    assert decompressed(tmp_path / "out/a.warc.gz") == [RECORDS[0], outer, RECORDS[1]]


def test_a_length_that_is_too_long_does_not_cost_the_next_frames(tmp_path: Path) -> None:
    for length in (b"1000", b"100000"):
        data = frame(with_length(length)(GOOD[0])) + b"".join(map(frame, GOOD[1:]))
        ranges, said = found(data)
        assert len(ranges) == 99
        assert len(said) == 1
        assert said[0].startswith(f"Content-Length is {length.decode()}, but the block has only")


def test_a_member_that_continues_in_one_that_looks_like_a_record(tmp_path: Path) -> None:
    """A record in two gzip members breaks the rules, but its payload is no capture."""
    outer = record(b"".join(GOOD[:3]), 7)
    head = outer.index(CRLF) + 4
    source = tmp_path / "a.warc.gz"
    source.write_bytes(member(outer[:head]) + member(outer[head:]) + member(RECORDS[1]))
    ranges, (said,) = found(source.read_bytes())
    assert len(ranges) == 1
    assert said.startswith("the record continues in the next gzip member")
    assert recompress("-o", tmp_path / "out", "--to", "gz", source) == 0
    assert decompressed(tmp_path / "out/a.warc.gz") == [outer, RECORDS[1]]


def skippable(data: bytes, kind: bytes = b"\x50") -> bytes:
    return kind + SKIPPABLE + len(data).to_bytes(4, "little") + data


def kind_of(record: FullRecord) -> list[bytes]:
    """A counter."""
    return [record.kind]


def test_frames_in_a_skippable_frame_are_ignored_and_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hidden = skippable(frame(RECORDS[2]) + frame(RECORDS[3]))
    seek_table = skippable(b"a seek table", b"\x5e")
    source = tmp_path / "a.warc.zst"
    source.write_bytes(frame(RECORDS[0]) + hidden + frame(RECORDS[1]) + seek_table)
    assert main(["index", "-q", "-o", str(tmp_path / "cdx"), str(source)]) == 0
    offset = len(frame(RECORDS[0]))
    own = ["count", "--call", "tests.commands.test_recompress_inside:kind_of"]
    for command, status in ((["scan"], 0), (["count", "tags"], 2), (own, 0)):  # it has no tags
        out = tmp_path / command[-1].rpartition(":")[2]
        assert main([*command, "-q", "-o", str(out), str(source)]) == status
    said = capfd.readouterr().err
    note = f"{source}@{offset}: note: a skippable zstd frame contains frames, which are ignored"
    assert said.count(note) == 4, said
    assert recompress("-o", tmp_path / "out", source) == 0
    assert decompressed(tmp_path / "out/a.warc.zst") == RECORDS[:2]
    size = len(hidden) + len(seek_table)
    said = capfd.readouterr().err
    assert f"@{offset}: note: 2 skippable zstd frames ({size} bytes) are not copied" in said


def test_a_second_dictionary_is_one_failure_of_an_index_and_none_of_recompress(tmp_path: Path) -> None:
    """Two files that were concatenated. Readers know only the dictionary at the start of a file."""
    first = dictionary_frame(FIRST.as_bytes()) + b"".join(with_dictionary(one, FIRST) for one in GOOD[:9])
    second = dictionary_frame(SECOND.as_bytes()) + b"".join(with_dictionary(one, SECOND) for one in GOOD[9:])
    source = tmp_path / "a.warc.zst"
    source.write_bytes(first + second + first)
    ranges, (said,) = found(source.read_bytes())
    assert len(ranges) == 18
    assert said == (
        f"another zstd dictionary starts here (id 50000), and readers know only the one at the start of a file; "
        f"{len(second)} bytes skipped"
    )
    assert recompress("-o", tmp_path / "out", "--to", "gz", source) == 0
    assert decompressed(tmp_path / "out/a.warc.gz") == GOOD + GOOD[:9]


def test_the_same_dictionary_twice_is_no_failure(tmp_path: Path) -> None:
    data = dictionary_frame(FIRST.as_bytes()) + b"".join(with_dictionary(one, FIRST) for one in GOOD[:9])
    assert len(found(data + data)[0]) == 18
    assert found(data + data)[1] == []


def test_frames_that_need_a_missing_dictionary_are_one_failure() -> None:
    lost = b"".join(with_dictionary(one, FIRST) for one in GOOD[:9])
    ranges, said = found(frame(RECORDS[0]) + lost + frame(RECORDS[1]))
    assert len(ranges) == 2
    assert said == [
        f"the frame needs the zstd dictionary 40000, and the file has none; {len(lost)} bytes skipped"
    ]
    assert zstandard.get_frame_parameters(lost).dict_id == 40000
