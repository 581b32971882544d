"""The index lines of `scan --captures`: how they are sorted by archive, compared with records, and reported."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.commands.scanning import captures
from cdxmill.commands.scanning.captures import (
    LineMatches,
    NamedIn,
    NamedRecord,
    NamedRecords,
    open_lines,
    sort_captures,
)
from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.storage.location import locate
from cdxmill.storage.scratch import Scratch

HINT = "index the archive again, or name the archive that was indexed"
TIME = "20200101000000"


def line(
    number: int, archive: str = "a.gz", length: int | None = 9, url: str | None = None, time: str = TIME
) -> bytes:
    shown = f"http://a.com/{number}" if url is None else url
    fields = [f'"url": "{shown}"'] if shown else []
    fields += [f'"length": "{length}"'] if length else []
    fields += [f'"offset": "{number}"', f'"filename": "{archive}"']
    return f"com,a)/{number} {time} {{{', '.join(fields)}}}".encode()


def archives(*names: str) -> list[Input]:
    return [Input(locate(f"/in/{name}"), name, f"/in/{name}") for name in names]


def sort(text: bytes, inputs: Sequence[Input], directory: Path, failures: Failures | None = None) -> NamedIn:
    file = io.BytesIO(text)

    def read_at(offset: int, size: int) -> bytes:
        file.seek(offset)
        return file.read(size)

    return sort_captures("L", read_at, inputs, Scratch(directory), failures or Failures(printed=False))


def text_of(*lines: bytes) -> bytes:
    return b"".join(one + b"\n" for one in lines)


def in_pieces(window: Any, size: int) -> Iterator[bytes]:
    at = 0
    while piece := bytes(window.get(at, size)[:size]):
        yield piece
        at += size


def found_in(named: NamedIn) -> dict[str, list[tuple[int, int | None]]]:
    return {
        archive.filename: [(one.offset, one.length) for one in records._records()]
        for archive, records in named.records.items()
    }


def test_lines_are_sorted_by_archive_and_offset(tmp_path: Path) -> None:
    lines = [line(20, "b.gz"), line(7), line(300, length=None), line(7), line(3, "b.gz"), line(7, length=8)]
    named = sort(text_of(*lines), archives("b.gz", "a.gz", "c.gz"), tmp_path)
    assert found_in(named) == {"b.gz": [(3, 9), (20, 9)], "a.gz": [(7, 8), (7, 9), (300, None)]}
    assert named.digest == hashlib.sha256(text_of(*lines)).hexdigest()
    first, second = named.records.values()
    assert (first.start, second.start) == (0, first.size)
    assert first.size + second.size == (tmp_path / "captures.rows").stat().st_size
    assert [one.line for one in first._records()] == [line(3, "b.gz"), line(20, "b.gz")]


def test_rows_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(number, name) for name in ("a.gz", "b.gz") for number in range(9)]
    named = sort(text_of(*lines), archives("a.gz", "b.gz"), tmp_path)
    whole, row = found_in(named), len(line(1)) + 51
    assert whole == {name: [(number, 9) for number in range(9)] for name in ("a.gz", "b.gz")}
    for piece in (1, row - 1, row, row + 1, 9 * row - 1, 9 * row, 9 * row + 1):
        monkeypatch.setattr(captures, "_PIECE", piece)
        assert found_in(named) == whole


def test_a_line_may_have_any_byte_but_a_line_end(tmp_path: Path) -> None:
    odd = b"com,a)/1 2020 http://a.com/\0\0\xff text/html 200 - - - 9 1 a.gz"
    (records,) = sort(text_of(odd), archives("a.gz"), tmp_path).records.values()
    assert [one.line for one in records._records()] == [odd]


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_is_no_line_is_left_out(is_packed: bool, tmp_path: Path) -> None:
    text = b" CDX N b a m s k r M S V g\n\n  \t\n" + line(1) + b"\r\n\r\n" + line(2)
    failures = Failures(printed=False)
    data = gzip.compress(text, mtime=0) if is_packed else text
    named = sort(data, archives("a.gz"), tmp_path, failures)
    assert found_in(named) == {"a.gz": [(1, 9), (2, 9)]}
    (records,) = named.records.values()
    assert [one.line for one in records._records()] == [line(1), line(2)]
    assert (failures.items, named.digest) == ([], hashlib.sha256(text).hexdigest())


def test_a_line_that_names_no_record_is_reported_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines come in several lists."""
    monkeypatch.setattr(captures, "split_lines", lambda pieces: split_lines(pieces, 100))
    monkeypatch.setattr(captures, "read_content", lambda window: in_pieces(window, 70))
    odd = b"odd " + b"x" * 200
    failures = Failures(printed=False)
    good = [line(number) for number in range(9)]
    sort(text_of(odd, *good, b"", b"x y", *good), archives("a.gz"), tmp_path, failures)
    assert [(one.path, one.offset, one.reason) for one in failures.items] == [
        (
            "--captures L",
            None,
            f"line {number} is not an index line with filename, offset and length: {shown!r}",
        )
        for number, shown in ((1, odd[:80]), (12, b"x y"))
    ]


@pytest.mark.parametrize("text", [b"", b"\n", b"  \n", b" CDX N b a\n"])
def test_a_file_without_lines_is_refused(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--captures L: has no lines"):
        sort(text, archives("a.gz"), tmp_path)


def test_lines_that_are_all_invalid_are_lines(tmp_path: Path) -> None:
    failures = Failures(printed=False)
    assert found_in(sort(b"odd\n", archives("a.gz"), tmp_path, failures)) == {}
    assert failures.count == 1


@pytest.mark.parametrize(
    ("text", "is_too_long"),
    [
        (b"x" * 32, False),
        (b"x" * 33, True),
        (b"x" * 32 + b"\n" + b"y" * 32, False),
        (b"x" * 31 + b"\n" + b"y" * 33, True),
        (b"x\n" * 99 + b"y" * 32, False),
        (b"x\n" * 99 + b"y" * 33, True),
        (b"x\ny" * 40, False),
    ],
)
@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_a_line_without_end_does_not_fill_the_memory(
    text: bytes, is_too_long: bool, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captures, "MAX_LINE", 32)
    monkeypatch.setattr(
        captures, "read_content", lambda _: (text[at : at + piece] for at in range(0, len(text), piece))
    )
    if is_too_long:
        with pytest.raises(InputError, match="--captures L: has a line of more than 0 MiB"):
            sort(b"", archives("a.gz"), tmp_path)
    else:
        sort(b"", archives("a.gz"), tmp_path)


def test_lines_that_are_corrupt_end_the_scan(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--captures L: .*; fetch the file again"):
        sort(gzip.compress(line(1), mtime=0)[:-5], archives("a.gz"), tmp_path)


@pytest.mark.parametrize(
    ("names", "named", "expected"),
    [
        (["a.gz"], "a.gz", "a.gz"),
        (["d/a.gz"], "a.gz", "d/a.gz"),
        (["d/a.gz"], "x/a.gz", "d/a.gz"),
        (["d/a.gz", "e/a.gz"], "e/a.gz", "e/a.gz"),
        (["d/a.gz", "e/a.gz"], "a.gz", None),
        (["b.gz"], "a.gz", None),
    ],
)
def test_the_archive_of_a_line(names: list[str], named: str, expected: str | None, tmp_path: Path) -> None:
    failures = Failures(printed=False)
    found = found_in(sort(text_of(line(1, named)), archives(*names), tmp_path, failures))
    assert found == ({} if expected is None else {expected: [(1, 9)]})
    assert failures.count == (expected is None)


def test_an_archive_may_be_named_twice(tmp_path: Path) -> None:
    """By two paths, too: they have one identity."""
    first = Input(locate("/in/a.gz"), "d/a.gz", "/in/a.gz")
    second = Input(locate("/in/./a.gz"), "e/a.gz", "/in/./a.gz")
    for name in ("a.gz", "d/a.gz", "e/a.gz"):
        failures = Failures(printed=False)
        assert list(sort(text_of(line(1, name)), [first, second], tmp_path / name, failures).records) == [
            first
        ]
        assert failures.count == 0


def test_lines_of_other_archives_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "_LISTED", 2)
    names = ["x/c.gz", "x/c.gz", "b.gz", "a.gz", "b.gz", "x/c.gz", "d.gz", "a.gz"]
    inputs = archives("1/b.gz", "2/b.gz", "3/b.gz", "own.gz")
    failures = Failures(printed=False)
    sort(text_of(*(line(number, name) for number, name in enumerate(names))), inputs, tmp_path, failures)
    known = "/in/1/b.gz and /in/2/b.gz"
    assert failures.items == [
        Failure("b.gz", None, f"is the base name of {known}: 2 index lines skipped", "scan these archives one by one"),
        Failure("x/c.gz", None, "is the archive of 3 index lines, but no INPUT", "name it, or a directory with it"),
        Failure("--captures L", None, "3 lines of other archives, which are no INPUT or not certain, skipped"),
    ]  # fmt: skip
    some = Failures(printed=False)
    sort(text_of(*(line(number, name) for number, name in enumerate(names[:6]))), archives("a.gz"), tmp_path / "o", some)  # fmt: skip
    assert [failure.path for failure in some.items] == ["b.gz", "x/c.gz"]


def test_failures_of_a_kind_are_shown_for_all_archives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = Failures()
    inputs = archives(*(f"{place}/{number}.gz" for place in "de" for number in range(12)))
    lines = [line(number, f"{number}.gz") for number in range(12)]
    lines += [line(number, f"x{number}.gz") for number in range(12)]
    lines += [b"odd %d" % number for number in range(12)]
    sort(text_of(*lines), inputs, tmp_path, failures)
    failures.close_listed()
    shown = capsys.readouterr().err.splitlines()
    assert [one for one in shown if "more failures" in one] == [
        "--captures L: 2 more failures of this kind: invalid lines",
        "--captures L: 2 more failures of this kind: is the base name of several archives",
        "--captures L: 2 more failures of this kind: is no INPUT",
    ]
    assert len(shown) == 33


def test_a_file_of_lines_is_opened(tmp_path: Path) -> None:
    (tmp_path / "L").write_bytes(b"abc")
    with open_lines(str(tmp_path / "L")) as read_at:
        assert read_at(1, 9) == b"bc"
    with pytest.raises(AbsentError), open_lines(str(tmp_path / "absent")):
        pass


@pytest.mark.parametrize(
    ("offset", "length", "end"), [(5, 7, 12), (5, 1, 6), (5, None, 5 + (1 << 20)), (0, 7, 7)]
)
def test_the_end_of_a_record(offset: int, length: int | None, end: int) -> None:
    assert NamedRecord(offset, length, b"").end == end


def runs_of(
    places: Sequence[tuple[int, int | None]], directory: Path, gap: int
) -> tuple[list[list[int]], list[Any]]:
    """The offsets of each run, if a request skips up to `gap` bytes; and what was asked."""
    rows = [captures._ROW % (0, offset, length or 0, b"x") + b"\n" for offset, length in places]
    directory.mkdir(exist_ok=True)
    (directory / "captures.rows").write_bytes(b"".join(rows))
    asked: list[Any] = []

    def is_near(start: int, end: int, other: tuple[int, int]) -> bool:
        asked.append((start, end, other))
        return other[0] <= end + gap

    found = NamedRecords(Scratch(directory), 0, sum(map(len, rows))).runs(is_near)
    return [[one.offset for one in run] for run in found], asked


def test_records_that_are_near_are_fetched_together(tmp_path: Path) -> None:
    places = [(0, 10), (2, 3), (12, 5), (20, 5), (28, 5)]
    found, asked = runs_of(places, tmp_path, 2)
    assert found == [[0, 2, 12], [20], [28]]
    assert asked == [
        (0, 10, (2, 5)),
        (0, 10, (12, 17)),
        (0, 17, (20, 25)),
        (20, 25, (28, 33)),
    ]
    assert runs_of([], tmp_path, 2)[0] == []
    assert runs_of([(0, None), (9, 1)], tmp_path, 0)[0] == [[0, 9]]


@pytest.mark.parametrize(("number", "sizes"), [(3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_a_run_has_at_most_so_many_records(
    number: int, sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captures, "_MOST", 3)
    found, _ = runs_of([(one, 1) for one in range(number)], tmp_path, 9)
    assert [len(run) for run in found] == sizes


URL = "http://a.com/1"


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (line(1), None),
        (line(1, url="HTTP://A.com:80/1"), None),
        (line(2), "the record is of http://a.com/1, the index line is of http://a.com/2"),
        (line(1, time="-"), None),
        (line(1, time="2021"), f"the record is from {TIME}, the index line is from 2021 ({URL})"),
        (line(1, url=""), None),
        (line(2, url=""), f"the record is of {URL}, the index line is of com,a)/2 {TIME}"),
        (line(1, url="", time="2021"), f"the record is from {TIME}, the index line is from 2021 ()"),
        (line(2, url="", time="2021"), f"the record is from {TIME}, the index line is from 2021 ()"),
        (line(1).replace(b"com,a)/1", b"com,b)/x"), None),
        (line(11, url=""), f"the record is of {URL}, the index line is of com,a)/11 {TIME}"),
    ],
)
def test_a_record_is_compared_with_its_line(named: bytes, reason: str | None) -> None:
    assert captures._difference(URL.encode(), TIME.encode(), NamedRecord(1, 9, named)) == reason


def record(url: bytes | None = URL.encode(), time: str = TIME) -> Any:
    return SimpleNamespace(time=time, header=lambda name: url if name == b"warc-target-uri" else None)


def test_one_of_several_lines_is_that_of_the_record() -> None:
    told: list[Any] = []
    matches = LineMatches(lambda *args: told.append(args))
    matches.lines = [NamedRecord(number, 9, line(number)) for number in (2, 1, 3)]
    assert matches.has(record())
    differ = "the record is of http://a.com/1, the index line is of http://a.com/"
    assert told == [(2, f"{differ}2", HINT), (3, f"{differ}3", HINT)]
    matches.lines = [NamedRecord(4, 9, line(4))]
    assert not matches.has(record())
    assert told[2:] == [(4, f"{differ}4", HINT)]
    matches.lines = [NamedRecord(1, 9, line(1))]
    assert matches.has(record(b"<http://a.com/1>"))
    matches.lines = [NamedRecord(1, 9, line(1, time="-"))]
    assert matches.has(record(time=""))
    matches.lines = [NamedRecord(1, 9, line(1))]
    assert not matches.has(record(time=""))
    assert not matches.has(record(None))
    assert told[3] == (1, f"the record is from -, the index line is from {TIME} ({URL})", HINT)
    assert len(told) == 5


def test_lines_that_no_record_matches_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "_LISTED", 3)
    told: list[Any] = []
    matches = LineMatches(lambda *args: told.append(args))
    matches.report_rest()
    matches.lines = [NamedRecord(1, 9, line(1)), NamedRecord(2, None, line(2, url=""))]
    matches.miss("no record here")
    matches.report_rest()
    assert told == [
        (1, f"no record here (http://a.com/1 {TIME})", HINT),
        (2, f"no record here (com,a)/2 {TIME})", HINT),
    ]
    matches.lines = matches.lines[:1]
    matches.miss("gone")
    matches.report_rest()
    assert len(told) == 3
    matches.miss("gone")
    matches.report_rest()
    assert told[3:] == [(None, "1 more index line without a record that matches", HINT)]
    matches.miss("gone")
    matches.report_rest()
    assert told[4:] == [(None, "2 more index lines without a record that matches", HINT)]


def test_a_line_tells_where_its_record_is() -> None:
    place = NamedRecord(1, 9, line(1)).location()
    assert (place.url, place.timestamp, place.filename, place.offset) == (URL, TIME, "a.gz", 1)
