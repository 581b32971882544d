"""`index`, one step at a time: what is asked, one archive, all together, and what is said of them."""

from __future__ import annotations

import gc
import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.per_archive.index import (
    IndexOptions,
    IndexSummary,
    IndexTask,
    capture_options,
    index_one,
    index_options,
    index_to_directory,
    index_to_file,
    index_to_stream,
    with_header,
)
from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.inputs.named import Input, named_input
from cdxmill.options.archives import Indexing
from cdxmill.outputs.existing import Rule
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.captures.capture_options import DEFAULT_RECORDS, CaptureOptions
from cdxmill.storage.location import Location, locate


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a.warc.gz of three captures, b.warc.gz of one, and bad.warc.gz, whose second one is corrupt."""
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes(b"".join(map(member, (3, 1, 2))))
    Path("b.warc.gz").write_bytes(member(1))
    damaged = bytearray(member(2))
    damaged[-6] ^= 1
    Path("bad.warc.gz").write_bytes(member(1) + bytes(damaged) + member(3))
    return tmp_path


def member(number: int, kind: str = "resource") -> bytes:
    block = b"page %d" % number
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.b/{number}\r\n"
        f"WARC-Date: 2020-01-0{number}T00:00:00Z\r\nContent-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0)


def named(*names: str) -> list[Input]:
    return [named_input(name, name) for name in names]


def keys(data: bytes) -> list[str]:
    return [line.split(" ")[0][-1] for line in data.decode().splitlines()]


HERE = IndexOptions(quiet=True)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, {"records": DEFAULT_RECORDS}),
        ({"records": "all"}, {"records": None}),
        ({"records": "response,Revisit"}, {"records": {b"response", b"revisit"}}),
        ({"records": ["response", "request,metadata"]}, {"records": {b"response", b"request", b"metadata"}}),
        *(({name: True}, {name: True}) for name in ("post_append", "minimal", "unsurt", "keep_www", "check_digests")),
    ],
)  # fmt: skip
def test_captures_are_those_that_were_asked_for(asked: dict[str, Any], wanted: dict[str, object]) -> None:
    found = capture_options(Indexing("a.warc.gz", output="o", **asked))
    assert found == CaptureOptions(**wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("records", ["", "page", "all,response", ["response", "x"]])
def test_an_unknown_type_of_record_is_wrong_usage(records: Any) -> None:
    with pytest.raises(UsageError, match="--records: invalid record type"):
        capture_options(Indexing("a.warc.gz", output="o", records=records))


def test_how_archives_are_indexed_is_as_it_was_asked_for() -> None:
    asked = Indexing("a.warc.gz", output="o", line_format="cdx9", processes=3, keep_www=True)
    found = index_options(asked, Rule.RENEW)
    assert (found.line_format, found.processes, found.existing) == ("cdx9", 3, Rule.RENEW)
    assert (found.captures.keep_www, found.quiet) == (True, asked.quiet)
    assert found.settings() == (found.captures, "cdx9")


@pytest.mark.parametrize(
    ("line_format", "header"),
    [("cdxj", []), ("cdx11", [[b" CDX N b a m s k r M S V g"]]), ("cdx9", [[b" CDX N b a m s k r V g"]])],
)
def test_lines_come_after_the_header_of_their_format(line_format: str, header: list[list[bytes]]) -> None:
    assert list(with_header(line_format, [[b"a"], [b"b"]])) == [*header, [b"a"], [b"b"]]


@pytest.mark.parametrize(
    ("output", "where"),
    [
        ("", ""),
        ("o", ", listed in o/failures.tsv"),
        ("o/", ", listed in o/failures.tsv"),
        ("s3://bucket/o", ", listed in s3://bucket/o/_....failures beside each output"),
    ],
)
def test_a_summary_says_where_failures_are_listed(output: str, where: str) -> None:
    failures = Failures(printed=False)
    summary = IndexSummary(2, 0, 3, 9)
    assert summary.report(failures, output) == "3 captures of 2 archives (9 B)"
    for path in "aab":
        failures.report(Failure(path, None, "is corrupt"))
    last = summary.report(failures, output).splitlines()[1]
    assert last == f"3 failures in 2 inputs{where}; the rest is indexed"
    assert summary._replace(captures=0).report(failures, output).endswith(f"inputs{where}")
    assert summary._replace(kept=4, kept_as="skipped").report(Failures(), output).endswith(", 4 skipped")


def task(name: str, *, is_part: bool = False, output: str = "out.cdx.gz") -> IndexTask:
    archive = named_input(name, name)
    directory = Path.cwd()
    return IndexTask(
        archive, locate(directory / output), directory, directory / "s", HERE.settings(), is_part=is_part
    )


def test_an_archive_has_its_lines_in_order_in_its_output() -> None:
    found = index_one(task("a.warc.gz"))
    assert (found.size, found.captures) == (Path("a.warc.gz").stat().st_size, 3)
    assert (found.failures, found.notes, found.runs) == ([], [], [])
    assert keys(gzip.decompress(Path("out.cdx.gz").read_bytes())) == ["1", "2", "3"]
    assert not Path("s").exists()


def test_an_archive_with_damage_has_the_lines_of_the_rest() -> None:
    found = index_one(task("bad.warc.gz"))
    assert (found.captures, [failure.offset for failure in found.failures]) == (2, [len(member(1))])
    assert keys(gzip.decompress(Path("out.cdx.gz").read_bytes())) == ["1", "3"]
    assert Path("failures.tsv").read_text().count("\n") == 1


def test_an_archive_that_is_absent_leaves_an_output_as_it_is() -> None:
    Path("out.cdx.gz").write_bytes(b"of an earlier run")
    found = index_one(task("absent.warc.gz"))
    assert (found.size, found.captures, len(found.failures)) == (0, 0, 1)
    assert Path("out.cdx.gz").read_bytes() == b"of an earlier run"
    assert Path("failures.tsv").read_text().count("\n") == 1


@pytest.mark.parametrize("is_part", [True, False])
def test_an_archive_whose_storage_did_not_answer_is_not_read(
    is_part: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would be written of it could not be recorded."""
    answers, status = [OutageError("a.warc.gz", "does not answer", "try again")], Location.status

    def fail_once(place: Location) -> object:
        if answers:
            raise answers.pop()
        return status(place)

    monkeypatch.setattr(Location, "status", fail_once)
    found = index_one(task("a.warc.gz", is_part=is_part))
    wanted = Failure("a.warc.gz", None, "does not answer", "try again", is_outage=True)
    assert (found.captures, found.failures, found.runs) == (0, [wanted], [])
    assert not Path("out.cdx.gz").exists()


@pytest.mark.parametrize(("name", "captures"), [("a.warc.gz", 3), ("bad.warc.gz", 2), ("absent.warc.gz", 0)])
def test_a_part_of_an_output_leaves_only_runs(name: str, captures: int) -> None:
    found = index_one(task(name, is_part=True))
    assert found.captures == captures == sum(run.lines for run in found.runs)
    assert {run.name.split("/")[0] for run in found.runs} <= {"s"}
    assert all(Path(run.name).exists() for run in found.runs)
    assert not Path("out.cdx.gz").exists()
    assert not Path("failures.tsv").exists()


def test_all_archives_are_one_sorted_stream() -> None:
    out, failures = io.BytesIO(), Failures(printed=False)
    found = index_to_stream(named("a.warc.gz", "b.warc.gz", "bad.warc.gz"), out, HERE, failures)
    size = sum(Path(name).stat().st_size for name in ("a.warc.gz", "b.warc.gz", "bad.warc.gz"))
    assert found == IndexSummary(3, 0, 6, size)
    assert keys(out.getvalue()) == ["1", "1", "1", "2", "3", "3"]
    assert failures.count == 1
    assert not Path("failures.tsv").exists()
    with pytest.raises(UsageError):
        index_to_stream([], out, HERE, failures)
    header = io.BytesIO()
    index_to_stream(named("a.warc.gz"), header, IndexOptions(quiet=True, line_format="cdx11"), failures)
    assert header.getvalue().startswith(b" CDX N b a m s k r M S V g\nb,a)/1 20200101000000 ")


def write(*names: str, replace: bool = False, output: str = "all.cdxj") -> IndexSummary:
    options = IndexOptions(quiet=True, existing=Rule.REPLACE if replace else Rule.REFUSE)
    return index_to_file(named(*names), output, options, Failures(printed=False))


def test_one_file_is_written_whole_or_not_at_all() -> None:
    assert write("a.warc.gz", "b.warc.gz").captures == 4
    whole = Path("all.cdxj").read_bytes()
    assert keys(whole) == ["1", "1", "2", "3"]
    with pytest.raises(UsageError, match="--replace"):
        write("a.warc.gz")
    with pytest.raises(InputError) as raised:
        write("absent.warc.gz", replace=True)
    assert str(raised.value) == "all.cdxj: was not written, because no archive gave a line"
    assert Path("all.cdxj").read_bytes() == whole
    assert write("absent.warc.gz", "b.warc.gz", replace=True).captures == 1
    assert keys(Path("all.cdxj").read_bytes()) == ["1"]
    write("b.warc.gz", output="b.cdxj.gz")
    assert gzip.decompress(Path("b.cdxj.gz").read_bytes()) == Path("all.cdxj").read_bytes()


def test_without_lines_and_failures_the_file_is_empty() -> None:
    Path("info.warc.gz").write_bytes(member(1, "warcinfo"))
    assert write("info.warc.gz").captures == 0
    assert Path("all.cdxj").read_bytes() == b""


def test_one_file_is_never_one_of_its_archives() -> None:
    before = Path("a.warc.gz").read_bytes()
    for replace in (True, False):
        with pytest.raises(UsageError):
            write("a.warc.gz", replace=replace, output="a.warc.gz")
    assert Path("a.warc.gz").read_bytes() == before


@pytest.mark.parametrize(
    ("existing", "kept_as"),
    [(Rule.REFUSE, "up to date"), (Rule.UPDATE, "skipped"), (Rule.RENEW, "up to date")],
)
def test_what_is_there_is_kept_and_counted(existing: Rule, kept_as: str) -> None:
    names = {one: one.filename.replace(".warc.gz", ".cdx.gz") for one in named("a.warc.gz", "b.warc.gz")}
    options, failures = IndexOptions(quiet=True, existing=existing), Failures(printed=False)
    first = index_to_directory(names, "o", options, failures)
    assert (first.files, first.kept, first.captures, first.kept_as) == (2, 0, 4, kept_as)
    again = index_to_directory(names, "o", options, failures)
    assert again == IndexSummary(0, 2, 0, 0, kept_as)
    Path("b.warc.gz").write_bytes(member(2) + member(3))
    if existing is Rule.REFUSE:
        with pytest.raises(UsageError):
            index_to_directory(names, "o", options, failures)
        return
    third = index_to_directory(names, "o", options, failures)
    assert (third.files, third.kept, third.captures) == (1, 1, 2)
    assert third.bytes == Path("b.warc.gz").stat().st_size


@pytest.mark.parametrize("name", ["a.warc.gz", "absent.warc.gz"])
def test_the_garbage_collector_works_as_before(name: str) -> None:
    gc.unfreeze()
    out, failures = io.BytesIO(), Failures(printed=False)
    index_to_stream(named(name), out, HERE, failures)
    assert gc.get_freeze_count() == 0


def test_notes_of_an_archive_are_said_with_its_name(capfd: pytest.CaptureFixture[str]) -> None:
    """A record without a date has a line, and a note."""
    text = gzip.decompress(member(1)).replace(b"WARC-Date: 2020-01-01T00:00:00Z\r\n", b"WARC-Date: today\r\n")
    Path("odd.warc").write_bytes(text)
    index_to_stream(named("odd.warc"), io.BytesIO(), HERE, Failures())
    said = capfd.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("odd.warc@0: ")] == said
    assert len(said) == 1


def test_many_failures_of_an_archive_are_counted_only_if_a_file_lists_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    damaged = bytearray(member(1))
    damaged[-6] ^= 1
    Path("bad.warc.gz").write_bytes(bytes(damaged) * 13)
    index_to_stream(named("bad.warc.gz"), io.BytesIO(), HERE, failures := Failures())
    assert failures.count == len(capfd.readouterr().err.splitlines()) == 13
    index_to_directory({named("bad.warc.gz")[0]: "bad.cdx.gz"}, "o", HERE, failures := Failures())
    said = capfd.readouterr().err.splitlines()
    assert (failures.count, len(said)) == (13, 11)
    assert said[-1].startswith("bad.warc.gz: 3 more failures of this kind: ")


def test_a_library_that_an_archive_needs_is_missed_before_anything_is_indexed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def require(place: Location) -> None:
        raise UsageError(f"{place}: needs a library")

    monkeypatch.setattr(Location, "require", require)
    out = io.BytesIO()
    with pytest.raises(UsageError, match=r"a\.warc\.gz: needs a library"):
        index_to_stream(named("a.warc.gz"), out, HERE, Failures())
    assert out.getvalue() == b""


def test_two_archives_with_one_name_in_lines_are_refused_before_they_are_read(here: Path) -> None:
    Path("x").mkdir()
    Path("x/a.warc.gz").write_bytes(member(1))
    two = [named_input("a.warc.gz", "a.warc.gz"), named_input("x/a.warc.gz", "a.warc.gz")]
    why = r"a\.warc\.gz and x/a\.warc\.gz would both have the file name a\.warc\.gz in the index"
    with pytest.raises(UsageError, match=why):
        index_to_stream(two, io.BytesIO(), HERE, Failures())
    with pytest.raises(UsageError, match=why):
        index_to_directory(dict(zip(two, ("a.cdx.gz", "b.cdx.gz"), strict=True)), "o", HERE, Failures())
    assert not Path("o").exists()


def test_many_notes_of_a_kind_are_counted_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    text = gzip.decompress(member(1)).replace(b"2020-01-01T00:00:00Z", b"today")
    Path("odd.warc").write_bytes(text * 13)
    index_to_stream(named("odd.warc"), io.BytesIO(), HERE, Failures())
    said = capfd.readouterr().err.splitlines()
    assert (len(said), "3 more notes of this kind" in said[-1]) == (11, True)
