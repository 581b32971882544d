"""The record of the outputs of a directory, and its list of failures."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.own_records import APART, FAILURES, OUTPUTS
from cdxmill.inputs.named import Input, named_input
from cdxmill.outputs.record import (
    OutputRecord,
    OutputRow,
    Summed,
    append_made,
    check_failure_list,
    check_own_records,
    failed_in,
    forgetting,
    keep_apart,
    link_outputs,
    list_beside,
    list_in,
    recorded,
    records_of,
    row_of_stamp,
    state_of,
    without_outputs,
)
from cdxmill.running.failures import Failure
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location


def make(path: Path, data: bytes, archive: str = "/in/a", settings: str = "s") -> OutputRow:
    """Write an output, and record it in its directory. Its time is 5 seconds."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (5, 5))
    sha256 = hashlib.sha256(data).hexdigest()
    row = OutputRow(path.name, archive, settings, "9-tag", len(data), sha256, 5_000_000_000)
    append_made(path.parent, row)
    return row


def test_records_are_apart_in_a_directory_of_their_own_only(tmp_path: Path) -> None:
    apart = tmp_path / APART
    assert records_of(tmp_path) == tmp_path
    apart.write_text("mine")
    assert records_of(tmp_path) == tmp_path
    apart.unlink()
    apart.symlink_to(tmp_path)
    assert records_of(tmp_path) == tmp_path
    with pytest.raises(UsageError, match="is a symbolic link"):
        keep_apart(tmp_path)
    apart.unlink()
    row = make(tmp_path / "o", b"data")
    for _ in range(2):
        keep_apart(tmp_path)
        assert records_of(tmp_path) == apart
        assert sorted(path.name for path in tmp_path.iterdir()) == [APART, "o"]
        assert OutputRecord(tmp_path).last_rows() == [row]


@pytest.mark.parametrize("archive", ["/in/a b\t%20ü", "/in/\udcff"])
def test_a_stamp_is_read_back(archive: str) -> None:
    row = OutputRow("", archive, "settings", "9-a b", 10**19 - 1, "0f", 0)
    assert row_of_stamp(row.stamp()) == row
    assert row_of_stamp(row._replace(size=10**19).stamp()) is None  # more digits than a size has
    assert row_of_stamp(f"{row.stamp()} more") is None
    assert row_of_stamp(row.stamp().replace(str(row.size), f"{row.size}x")) is None
    assert row_of_stamp("") is None


def test_a_long_archive_or_state_is_shortened() -> None:
    name = "/" + "x" * 999
    assert recorded(Location(name)) == name
    assert recorded(Location(f"{name}x")) == f"sha256:{hashlib.sha256(f'{name}x'.encode()).hexdigest()}"
    assert state_of(Entry(7, 0.0, tag="t" * 101)) == f"7-{'t' * 100}"
    assert state_of(None) == ""


def test_a_file_is_summed_while_it_is_written(tmp_path: Path) -> None:
    with (tmp_path / "o").open("wb") as raw:
        file = Summed(raw)
        assert (file.write(b"ab"), file.write(b"c"), file.size) == (2, 1, 3)
        assert file.sha256() == hashlib.sha256(b"abc").hexdigest()
        os.utime(tmp_path / "o", (5, 5))
        time = file.time()
        assert (tmp_path / "o").read_bytes() == b"abc"
        assert file.is_on_disk()
        with (tmp_path / "o").open("r+b") as other:
            other.write(b"x")
        assert not file.is_on_disk()
    assert time > 5_000_000_000


def test_the_last_row_that_matches_an_output_counts(tmp_path: Path) -> None:
    make(tmp_path / "o", b"first", "/in/a")
    row = make(tmp_path / "o", b"other", "/in/b")
    same = make(tmp_path / "o", b"other", "/in/c")
    killed = same._replace(archive="/in/killed", sha256="0")
    append_made(tmp_path, killed._replace(time=6), killed._replace(size=6))
    append_made(tmp_path, same._replace(output="absent"), same._replace(output="e", size=0))
    (tmp_path / "e").touch()
    os.utime(tmp_path / "e", (5, 5))
    record = OutputRecord(tmp_path)
    assert [one.archive for one in record.last_rows()] == ["/in/killed", "/in/c", "/in/c"]
    assert [record.made_from(Location(str(tmp_path / name))) for name in ("o", "absent", "e", "new")] == [
        same,
        None,
        None,
        None,
    ]
    (tmp_path / "o").write_bytes(b"first")
    os.utime(tmp_path / "o", (7, 7))
    found = record.made_from(Location(str(tmp_path / "o")))
    assert found is not None
    assert (found.archive, found.sha256, row.size) == ("/in/a", hashlib.sha256(b"first").hexdigest(), 5)
    before = (tmp_path / OUTPUTS).read_bytes()
    record.keep_times()
    added = (tmp_path / OUTPUTS).read_bytes().removeprefix(before)
    assert added.startswith(b"o\t/in/a\t")
    assert added.endswith(b"\t7000000000\n")
    (tmp_path / "o").write_bytes(b"fifth")
    assert record.made_from(Location(str(tmp_path / "o"))) is None


def test_what_a_run_made_of_its_other_inputs_is_no_input(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.gz"
    source.write_bytes(b"archive")
    for name, archive in (("own", str(source)), ("b", "/in/of others")):
        make(tmp_path / name, name.encode(), archive)
    (tmp_path / "sub").mkdir()
    make(tmp_path / "sub/own", b"own", str(source))  # in a directory with a record of its own
    inputs: list[Input] = [
        named_input(tmp_path / name, name) for name in ("a.warc.gz", "own", "b", "sub/own")
    ]
    notes: list[str] = []
    for directory in (tmp_path, os.path.relpath(tmp_path)):
        left = without_outputs([*inputs, named_input("/elsewhere/own", "own")], directory, notes.append)
        assert [one.path for one in left] == [
            str(tmp_path / "a.warc.gz"), str(tmp_path / "b"), str(tmp_path / "sub/own"), "/elsewhere/own",
        ]  # fmt: skip
        assert notes.pop().endswith(
            "1 archive there came from other inputs of this run, and will not be read"
        )
    assert without_outputs(inputs, "s3://bucket/out", notes.append) == inputs
    assert without_outputs(inputs[2:], tmp_path, notes.append) == inputs[2:]
    assert notes == []


def test_outputs_get_a_second_name_with_their_rows(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    rows = [make(old / name, name.encode()) for name in ("a", "b")]
    (old / "sub").mkdir()
    (old / "sub/unrecorded").write_bytes(b"x")
    (new / "sub").mkdir(parents=True)
    (new / "a").write_bytes(b"of a killed run")
    link_outputs(old, new, ["absent", "a", "b", "sub/unrecorded"])
    for name in ("a", "b", "sub/unrecorded"):
        assert (new / name).samefile(old / name)
    assert OutputRecord(new).last_rows() == rows
    link_outputs(old, tmp_path / "other/new", ["sub/unrecorded"])
    assert (tmp_path / "other/new/sub/unrecorded").samefile(old / "sub/unrecorded")
    with pytest.raises(UsageError, match="is not a directory"):
        link_outputs(old, old / "a", ["b"])


def fails(archive: str, offset: int | None = None) -> Failure:
    return Failure(archive, offset, "is corrupt")


def test_failures_are_listed_beside_an_output(tmp_path: Path) -> None:
    output = Location(str(tmp_path / "a.cdx.gz"))
    list_beside(output, [fails("/a", 7), fails("/a")])
    assert (tmp_path / "_a.cdx.gz.failures").read_bytes() == b"/a\t7\tis corrupt\t\n/a\t\tis corrupt\t\n"


def test_failures_of_earlier_runs_are_forgotten_and_no_others(tmp_path: Path) -> None:
    listed = tmp_path / FAILURES
    with forgetting(None, {"/a"}), forgetting(tmp_path, {"/a"}):
        pass
    assert list(tmp_path.iterdir()) == []
    with forgetting(tmp_path, {"/a"}):
        list_in(tmp_path, [fails("/a")])
    assert failed_in(tmp_path) == {"/a"}
    listed.unlink()
    list_in(tmp_path, [fails("/a"), fails("/b", 7), fails("https://h/c.wacz/x"), fails("/a", 1)])
    (tmp_path / "copy").hardlink_to(listed)
    before = listed.read_bytes()
    with forgetting(tmp_path, {"/none"}):
        pass
    assert listed.read_bytes() == before
    with forgetting(tmp_path, {"/a"}):
        list_in(tmp_path, [fails("/a", 2), fails("/d")])
    assert listed.read_bytes() == b"/b\t7\tis corrupt\t\nhttps://h/c.wacz/x\t\tis corrupt\t\n" + (
        b"/a\t2\tis corrupt\t\n/d\t\tis corrupt\t\n"
    )
    assert (tmp_path / "copy").read_bytes() == before
    with forgetting(tmp_path, {"https://h/c.wacz"}):
        pass
    assert failed_in(tmp_path) == {"/a", "/b", "/d"}
    list_in(tmp_path, [fails("https://h/c.wacz/y")])
    with forgetting(tmp_path, {"https://h/c.wacz/y"}):
        pass
    with pytest.raises(KeyError), forgetting(tmp_path, {"/b"}):
        raise KeyError
    assert failed_in(tmp_path) == {"/a", "/b", "/d"}
    with forgetting(tmp_path, {"/a", "/b", "/d"}):
        pass
    assert not listed.exists()


@pytest.mark.parametrize(
    ("data", "is_own"),
    [
        (b"", True),
        (b"/a\t17\tis corrupt\tfetch it again\n", True),
        (b"/a\t\tis corrupt\t\n", True),
        (b"/a\t\tis corrupt\t\n/b", True),
        (b"/a\t\tis corrupt\t\n/b\tx", True),
        (b"/a\t1", True),
        (b"/a\t", True),
        (b"/a\t1\tis", True),
        (b"/a", False),
        (b"/a\tx", False),
        (b"/a\tx\t17\t\n", False),
        (b"/a\t17\tis corrupt\n", False),
        (b"/a\t17\tis corrupt\t\t\n", False),
        (b"mine\n/a\t17\tis corrupt\t\n", False),
        (b"/a\t17\tis corrupt\t\nmine\n", False),
    ],
)
def test_a_list_of_failures_is_known_by_its_rows(data: bytes, is_own: bool, tmp_path: Path) -> None:
    path = tmp_path / FAILURES
    path.write_bytes(data)
    for check in (lambda: check_failure_list(Location(str(path))), lambda: check_own_records(tmp_path)):
        refuses(check, is_own)


def refuses(check: Callable[[], None], is_own: bool) -> None:
    if is_own:
        check()
    else:
        with pytest.raises(UsageError, match="move it away"):
            check()


ROW = b"o\t/in/a\ts\t9-tag\t5\t0f\t7\n"


@pytest.mark.parametrize(
    ("data", "is_own"),
    [
        (b"", True),
        (ROW, True),
        (ROW[:-1], True),
        (ROW[:3], True),
        (ROW + b"mine", True),
        (b"half\to\n" + ROW, True),
        (b"mine", False),
        (b"mine\n", False),
        (b"a\tb\nmine", False),
        (ROW.replace(b"\t5\t", b"\tx\t"), False),
    ],
)
def test_a_record_is_known_by_a_row(data: bytes, is_own: bool, tmp_path: Path) -> None:
    (tmp_path / OUTPUTS).write_bytes(data)
    refuses(lambda: check_own_records(tmp_path), is_own)


def test_records_below_a_file_or_link_are_no_records(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    check_failure_list(Location(str(tmp_path / "file/failures.tsv")))
    (tmp_path / FAILURES).symlink_to("file")
    with pytest.raises(UsageError, match="is a symbolic link, and cdxmill needs this name"):
        check_failure_list(Location(str(tmp_path / FAILURES)))


def test_the_list_of_failures_moves_with_the_record_if_there_is_one(tmp_path: Path) -> None:
    list_in(tmp_path, [fails("/a", 0)])
    keep_apart(tmp_path)
    assert (records_of(tmp_path) / FAILURES).read_bytes() == b"/a\t0\tis corrupt\t\n"
    assert [path.name for path in tmp_path.iterdir()] == [APART]
    keep_apart(tmp_path)
    assert failed_in(tmp_path) == {"/a"}


def test_a_row_has_numbers_of_at_most_19_digits(tmp_path: Path) -> None:
    for size, time in (("5", "7"), ("x", "7"), ("5", "x"), ("5", "-7"), ("5", "9" * 19), ("5", "9" * 20)):
        row = f"o\t/in/a\ts\t9-tag\t{size}\t0f\t{time}\n"
        (tmp_path / OUTPUTS).write_text(row)
        is_row = size == "5" and len(time) < 20 and time.isdecimal()
        assert len(OutputRecord(tmp_path).last_rows()) == is_row, row


@pytest.mark.parametrize(
    ("entry", "stamp_size", "is_made"),
    [
        (Entry(5, 1.0), 5, True),
        (Entry(6, 1.0), 5, False),
        (Entry(5, 1.0), None, False),
        (None, 5, False),
        (None, None, False),
    ],
)
def test_an_output_at_a_url_has_its_row_itself(
    entry: Entry | None, stamp_size: int | None, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = OutputRow("", "/in/a", "s", "9-tag", stamp_size or 0, "0f", 0)
    stamp = row.stamp() if stamp_size else ""
    monkeypatch.setattr(Location, "stamped", lambda self: (entry, stamp))
    record = OutputRecord(None)
    assert record.made_from(Location("s3://b/o")) == (row if is_made else None)
    record.keep_times()
    assert record.last_rows() == []


def test_a_directory_that_cannot_be_written_keeps_its_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "o", b"data")
    os.utime(tmp_path / "o", (7, 7))
    record = OutputRecord(tmp_path)
    assert record.made_from(Location(str(tmp_path / "o"))) is not None

    def refuse(*asked: object) -> None:
        raise StoppedError("is read-only")

    monkeypatch.setattr("cdxmill.outputs.record.append_rows", refuse)
    record.keep_times()


def test_names_that_no_file_can_have_and_files_beside_the_directory_have_no_row(tmp_path: Path) -> None:
    target = tmp_path / "out"
    row = make(target / "o", b"data", str(tmp_path / "a"))
    append_made(target, row._replace(output="a\0b"))
    assert OutputRecord(target).made_from(Location(f"{target}/a\0b")) is None
    beside = named_input(tmp_path / "out2/o", "o")
    source = named_input(tmp_path / "a", "a")
    assert without_outputs([source, beside], target, pytest.fail) == [source, beside]


@pytest.mark.parametrize("name", [FAILURES, OUTPUTS])
def test_a_record_that_cannot_be_written_stops_the_run_before_it_begins(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_in(tmp_path, [fails("/a")])
    make(tmp_path / "o", b"data")
    check_own_records(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != name)
    with pytest.raises(StoppedError, match=rf"{name}.*Permission denied"):
        check_own_records(tmp_path)
    (tmp_path / name).unlink()
    check_own_records(tmp_path)


def test_a_list_at_a_url_is_read_as_far_as_it_shows_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = {"s3://b/own": b"/a\t17\tis corrupt\t\n/b", "s3://b/other": b"mine"}
    monkeypatch.setattr("cdxmill.outputs.record.first_bytes", lambda place, size: heads[place.text][:size])
    check_failure_list(Location("s3://b/own"))
    with pytest.raises(UsageError, match=r"^s3://b/other: is not of cdxmill"):
        check_failure_list(Location("s3://b/other"))


def test_rows_are_appended_for_one_name_of_the_record_only(tmp_path: Path) -> None:
    row = make(tmp_path / "o", b"data")
    (tmp_path / "copy").hardlink_to(tmp_path / OUTPUTS)
    before = (tmp_path / "copy").read_bytes()
    with forgetting(tmp_path, set()):
        append_made(tmp_path, row)
    assert (tmp_path / "copy").read_bytes() == before
    assert (tmp_path / OUTPUTS).read_bytes() == before * 2


@pytest.mark.parametrize("text", ["/" + "ä" * 166, "/" + "ä" * 167])
def test_a_name_is_recorded_if_its_stamp_is_short(text: str) -> None:
    is_short = len(text) == 167
    assert (recorded(Location(text)) == text) is is_short


def test_what_is_uploaded_later_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdxmill.outputs.record.written", lambda file: None)
    with (tmp_path / "o").open("wb") as raw:
        assert Summed(raw).is_on_disk()
