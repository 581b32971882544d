"""What a run does with an output that exists: each state of an output, under each rule."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import OutageError, UsageError
from cdxmill.inputs.named import Input, named_input
from cdxmill.options.option import Existing
from cdxmill.outputs.existing import PlannedOutputs, Rule, plan_outputs, rule_of, up_to_date
from cdxmill.outputs.record import OutputRecord, append_made, list_in
from cdxmill.outputs.settings import LineSettings
from cdxmill.running.failures import Failure
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location

OUTPUT, ARCHIVE = Path("out/a.cdx.gz"), Path("a.warc.gz")
PLAIN = LineSettings(CaptureOptions(), "cdxj")
OTHER = LineSettings(CaptureOptions(), "cdx11")


class _Proven(LineSettings):
    """Settings of a command that proves what its outputs were made from."""

    def is_proven(self, output: Location, archive: Input) -> bool:
        return True


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> None:
    """An archive of an old time, and its output, in the current directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example2.warc.gz", ARCHIVE)
    os.utime(ARCHIVE, (5, 5))
    assert main(["index", "-q", "-p", "1", "-o", "out", str(ARCHIVE)]) == 0


def unrecorded() -> None:
    Path("out/.outputs.tsv").unlink()


def failed() -> None:
    list_in(Path("out"), [Failure(str(ARCHIVE), 17, "is corrupt")])


def another_failed() -> None:
    list_in(Path("out"), [Failure("b.warc.gz", 17, "is corrupt")])


def gone() -> None:
    ARCHIVE.unlink()


def touched(seconds: int = 1 << 32) -> None:
    os.utime(ARCHIVE, (seconds, seconds))


def foreign() -> None:
    OUTPUT.write_bytes(b'com,a)/ 2020 {"filename": "x.warc.gz", "offset": "1", "length": "2"}\n')


class Case(NamedTuple):
    """What happened to the output, whether it is kept by each of the rules `RULES`, and the reason if it is refused."""

    change: list[Callable[[], None]]
    kept: str
    reason: str = ""
    settings: LineSettings = PLAIN
    archive: str = str(ARCHIVE)


RULES = (Rule.REFUSE, Rule.STAY, Rule.MEND, Rule.UPDATE, Rule.RENEW)
KEEP, WRITE, REFUSE = "kwr"
OLDER, NO_RECORD = (
    "was made from an earlier state of a.warc.gz",
    "was changed, or cdxmill has no record of it",
)
CASES = {
    "current": Case([], "kkkkk"),
    "absent": Case([OUTPUT.unlink], "wwwww"),
    "absent and failed": Case([OUTPUT.unlink, unrecorded, failed], "wwwww"),
    "empty": Case([lambda: os.truncate(OUTPUT, 0)], "wwwww"),
    "current, another one failed": Case([another_failed], "kkkkk"),
    "failed": Case([failed], "wwwww"),
    "failed, of other options": Case([failed], "wwwww", settings=OTHER),
    "failed, without a record": Case([failed, unrecorded], "wwwww"),
    "gone": Case([gone], "wwwww"),
    "gone, without a record": Case([gone, unrecorded], "wwwww"),
    "touched": Case([touched], "rrwww", OLDER),
    "touched, with a proof": Case([touched], "kkkkk", settings=_Proven(CaptureOptions(), "cdxj")),
    "touched, without a record": Case([touched, unrecorded], "rrwww", OLDER),
    "other options": Case([], "rrkkw", "was made with other options", OTHER),
    "no record": Case([unrecorded], "rrrkw", NO_RECORD),
    "no record, written in the same moment": Case(
        [unrecorded, touched, lambda: os.utime(OUTPUT, (1 << 32, 1 << 32))], "rrrkw", NO_RECORD
    ),
    "no record, of an archive without a time": Case(
        [unrecorded], "rrrkw", NO_RECORD, archive="http://localhost:9/a.warc.gz"
    ),
    "other archive": Case([], "rrrrw", "was not made from x/a.warc.gz", archive="x/a.warc.gz"),
    "other archive, which failed": Case(
        [failed], "rrrrw", "was not made from x/a.warc.gz", archive="x/a.warc.gz"
    ),
    "foreign": Case([foreign], "rrrrw", "was changed, or was not made from a.warc.gz"),
    "foreign and failed": Case([foreign, failed], "rrrrw", "was changed, or was not made from a.warc.gz"),
}


def plan(rule: Rule, settings: LineSettings, *archives: Input) -> PlannedOutputs:
    outputs = {one: Location(str(Path.cwd() / f"out/{one.name[:-8]}.cdx.gz")) for one in archives}
    return plan_outputs(outputs, settings, rule, Path.cwd() / "out")


@pytest.mark.parametrize("name", CASES)
def test_an_output_is_kept_written_or_refused(name: str) -> None:
    case = CASES[name]
    for change in case.change:
        change()
    archive = named_input(case.archive, "a.warc.gz")
    for rule, expected in zip(RULES, case.kept, strict=True):
        if expected == REFUSE:
            with pytest.raises(UsageError) as error:
                plan(rule, case.settings, archive)
            can_update = rule is not Rule.STAY and case.kept[RULES.index(Rule.UPDATE)] != REFUSE
            keep = "--update to keep finished outputs, " if can_update else ""
            told = f"{case.reason}; use {keep}--replace to write it again, or another output directory"
            assert str(error.value) == f"{OUTPUT.absolute()}: {told}"
            continue
        found = plan(rule, case.settings, archive)
        assert (found.kept, [*found.to_write]) == (([archive], []) if expected == KEEP else ([], [archive]))
        is_noted = rule is Rule.UPDATE and expected == KEEP and case.reason
        told = f"{OUTPUT.absolute()}: note: kept, but it {case.reason}; use --replace to write it again"
        assert list(found.notes) == ([told] if is_noted else [])
        is_unknown = expected == KEEP and case.reason == NO_RECORD
        assert [one.name for one in found.unknown] == (["a.cdx.gz"] if is_unknown else [])
    found = plan(Rule.REPLACE, case.settings, archive)
    assert (found.kept, [*found.to_write]) == ([], [archive])


def test_an_output_with_another_time_is_read_once() -> None:
    rows = Path("out/.outputs.tsv").read_bytes().count(b"\n")
    os.utime(OUTPUT, (7, 7))
    for _ in range(2):
        assert plan(Rule.REFUSE, PLAIN, named_input(ARCHIVE, "a.warc.gz")).to_write == {}
        assert Path("out/.outputs.tsv").read_bytes().count(b"\n") == rows + 1


def test_options_give_a_rule() -> None:
    given = (Existing(), Existing(update=True), Existing(replace=True))
    assert [rule_of(one) for one in given] == [Rule.REFUSE, Rule.UPDATE, Rule.REPLACE]


def test_each_output_has_its_own_state() -> None:
    for name in ("b", "c"):
        shutil.copyfile(ARCHIVE, f"{name}.warc.gz")
    assert main(["index", "-q", "-p", "1", "-o", "out", "b.warc.gz"]) == 0
    one, two, new = (named_input(f"{name}.warc.gz", f"{name}.warc.gz") for name in "abc")
    found = plan(Rule.REFUSE, PLAIN, one, new, two)
    assert (found.kept, [*found.to_write]) == ([one, two], [new])
    found = plan(Rule.UPDATE, OTHER, one, new, two)
    told = "out/a.cdx.gz: note: kept, but it was made with other options (2 such outputs); use --replace"
    assert [note.partition(f"{Path.cwd()}/")[2].partition(" to")[0] for note in found.notes] == [told]
    with pytest.raises(UsageError, match=r"a.cdx.gz: was made with other options \(2 such outputs\);"):
        plan(Rule.REFUSE, OTHER, one, new, two)


@pytest.mark.parametrize("rule", [*RULES, Rule.REPLACE])
def test_a_list_of_failures_beside_an_output_counts_unless_it_is_of_somebody_else(rule: Rule) -> None:
    archive, beside = named_input(ARCHIVE, "a.warc.gz"), Path("out/_a.cdx.gz.failures")
    beside.write_bytes(b"a.warc.gz\t17\tis corrupt\t\n")
    assert [*plan(rule, PLAIN, archive).to_write] == [archive]
    beside.write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"_a.cdx.gz.failures: is not of cdxmill"):
        plan(rule, PLAIN, archive)


def test_outputs_are_up_to_date_if_they_would_be_the_same() -> None:
    archive = named_input(ARCHIVE, "a.warc.gz")
    names = {archive: "a.cdx.gz"}
    assert up_to_date(names, Path("out").absolute(), PLAIN) == [archive]
    assert up_to_date(names, Path("out").absolute(), OTHER) == []


def test_an_archive_whose_server_does_not_answer_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails then, and costs no other one."""
    far = named_input("s3://b/a.warc.gz", "a.warc.gz")
    (row,) = OutputRecord(Path("out")).last_rows()
    append_made(Path("out"), row._replace(archive="s3://b/a.warc.gz"))

    def status(place: Location) -> Entry | None:
        if place.is_remote:
            raise OutageError(place.text, "does not answer")
        return None

    monkeypatch.setattr(Location, "status", status)
    for rule in RULES:
        assert [*plan(rule, PLAIN, far).to_write] == [far]
