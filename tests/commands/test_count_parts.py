"""`cdxmill count` of records of which it has, or needs, only a part."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

import pytest

import cdxmill.commands.count
from cdxmill.cli.main import main
from cdxmill.commands.count import CountTask, GroupResult, count_watched
from cdxmill.inputs.named import Input
from cdxmill.stages.counting.count_records import count_records
from cdxmill.stages.counting.counters import COUNTERS
from cdxmill.stages.counting.tally import sum_lines
from cdxmill.stages.lines.line_lists import write_lines
from cdxmill.stages.lines.merge_lines import merge_runs
from cdxmill.storage.location import Location
from cdxmill.storage.scratch import Scratch
from tests.commands.test_count import INFO, page, record, rows, text


def test_a_page_of_which_a_part_is_missing_is_counted_and_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    link = b"<a href=http://b.org/>"
    large = link + b"." * (32 << 20) + link
    for number, body in enumerate((gzip.compress(link + b"</a>")[:-9], gzip.compress(large, 1))):
        archive = tmp_path / f"{number}.warc.gz"
        archive.write_bytes(INFO + record("response", head + body))
        for what, item in (("links", b"com.example org.b"), ("tags", b"a")):
            assert main(["count", what, "-o", str(tmp_path / f"{what}{number}"), str(archive)]) == 0
            assert (tmp_path / f"{what}{number}").read_bytes() == item + b"\t1\n"
            reason = ("the payload is truncated", "the page is larger than 32 MiB")[number]
            assert f"{archive}@{len(INFO)}: note: {reason}" in capsys.readouterr().err


def test_only_texts_need_all_of_a_very_large_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A video costs the archive nothing, and a page is used as far as the rule for pages says."""
    for kind, notes in (("video/mp4", 0), ("text/html", 1)):
        head = f"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: {kind}\r\n\r\n<p>".encode()
        archive = tmp_path / "a.warc.gz"
        archive.write_bytes(INFO + page("<p>") + record("response", head + b" " * (65 << 20)))
        for what, expected in (("tags", {"p": 1 + notes}), ("servers", {"nginx": 2})):
            assert main(["count", what, "-q", "--replace", "-o", str(tmp_path / "out"), str(archive)]) == 0
            assert rows(tmp_path / "out") == expected
            assert capsys.readouterr().err.count("larger than 32 MiB") == (notes if what == "tags" else 0)
    (tmp_path / "a.warc.wet.gz").write_bytes(text("a " * (33 << 20)))
    assert (
        main(
            [
                "count",
                "words",
                "-q",
                "--replace",
                "-o",
                str(tmp_path / "out"),
                str(tmp_path / "a.warc.wet.gz"),
            ]
        )
        == 1
    )
    assert "only the first 64 MiB are counted" in capsys.readouterr().err


@pytest.mark.parametrize("held", [64 << 20, 1], ids=["in memory", "spilled"])
@pytest.mark.parametrize("bad", range(4))
def test_a_bad_archive_in_any_place_of_a_group_adds_nothing(
    held: int, bad: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records were counted before it failed. The counts of the archives before and after it stay."""
    names = [str(tmp_path / f"{number}.warc.wet.gz") for number in range(4)]
    for number, name in enumerate(names):
        Path(name).write_bytes(INFO + text(f"common w{number}") + text("common"))
    calls = list[object]()

    def count_and_grow(*given: object) -> object:
        found = count_records(*given)  # type: ignore[arg-type]
        calls.append(given)
        if len(calls) == bad + 1:
            with Path(names[bad]).open("ab") as file:
                file.write(text("more"))
        return found

    monkeypatch.setattr(cdxmill.commands.count, "count_records", count_and_grow)
    monkeypatch.setattr(cdxmill.commands.count, "HELD", held)
    scratch = tmp_path / "runs"
    task = CountTask([Input(Location(name), name, name, name) for name in names], scratch)
    [(_, result)] = count_watched([task], COUNTERS["words"], processes=1, tick=lambda: None)
    assert [failure.path for failure in result.failures] == [names[bad]]
    assert result.counted.counted == 6
    good = {f"w{number}".encode(): b"1" for number in range(4) if number != bad}
    assert counts_of(result, tmp_path) == {b"common": b"6", **good}
    assert {run.name for run in result.runs} == {f"{scratch.name}/{path.name}" for path in scratch.iterdir()}


def counts_of(result: GroupResult, directory: Path) -> dict[bytes, bytes]:
    """The counts in the runs of a group."""
    scratch, out = Scratch(directory), BytesIO()
    write_lines(sum_lines(merge_runs(result.runs, scratch.create, scratch.reader)), out, "")
    return dict(line.split(b"\t") for line in out.getvalue().splitlines())
