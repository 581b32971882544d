"""Failures are printed, counted and kept; results that hold them survive JSON."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from cdxmill.errors import FAILED, OK, STOPPED, InputError, OutageError, StoppedError, UntriedError
from cdxmill.running import failures as module
from cdxmill.running.failures import Failure, Failures, stop_at_outage
from cdxmill.running.progress import Progress
from cdxmill.stages.lines.sort_lines import Run
from cdxmill.tasks.sorting import SortResult


def test_all_failures_are_counted_and_the_first_are_kept(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    found = Failures()
    found.add("a", 7, "is corrupt", "fetch it again")
    found.report(Failure.from_error(InputError("b", "cannot be read")))
    found.add("a", None, "x\ny")
    found.note("only a note")
    assert found.count == 3
    assert found.inputs == {"a", "b"}
    assert found.items == [
        Failure("a", 7, "is corrupt", "fetch it again"),
        Failure("b", None, "cannot be read"),
    ]
    assert capfd.readouterr().err.splitlines() == [
        "a@7: is corrupt; fetch it again",
        "b: cannot be read",
        "a: x\\ny",
        "only a note",
    ]


def test_the_result_of_a_sort_survives_json() -> None:
    result = SortResult(
        [Run("sort-00000-00000.run", 10, 20, 3, 1, 10), Run("b", 0, 5, 1, 0, 1 << 50, "/in/a.cdx.gz")],
        [(0.123456789012345, b"com,a)/\xff\x00 2020")],
        [Failure("c.cdx", None, "is corrupt", "rebuild this index")],
    )
    assert SortResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_notes_after_ten_of_a_kind_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    found = Failures()
    for number in range(25):
        found.note_one(f"a@{number}", f"record {number} has no date")
    found.note_one("a@30", "something else")
    found.close_notes()
    assert found.count == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[:10] == [f"a@{number}: note: record {number} has no date" for number in range(10)]
    assert lines[10:] == [
        "a@30: note: something else",
        "note: 15 more notes of this kind: record N has no date",
    ]


def test_failures_that_a_file_lists_are_counted_after_ten_of_a_kind(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = Failures()
    for name in ("a", "b"):
        found.report_listed(name, [Failure(name, number, "is corrupt") for number in range(12)])
    found.report_listed("c", [Failure("c", None, "is corrupt")])
    assert found.count == len(found.items) == 25
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2 * 11 + 1
    assert lines[10] == "a: 2 more failures of this kind: is corrupt"
    assert lines[-1] == "c: is corrupt"


def test_what_was_only_counted_is_printed_once_in_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    """Of inputs that were not requested, because their server was given up, there is one line for each reason."""
    found = Failures()
    given_up = f"{UntriedError.START} h"
    for number in range(12):
        found.report_one_listed(Failure("a", number, f"is corrupt: {number}"), "is corrupt")
        found.report_one_listed(Failure("b", number, f"{given_up}: {number}"), given_up)
    for number in range(10):
        found.report_one_listed(Failure("c", number, "is corrupt"), "is corrupt")
    found.report(Failure("d", None, f"{UntriedError.START} i"))
    assert capfd.readouterr().err.splitlines() == [
        *(f"a@{number}: is corrupt: {number}" for number in range(10)),
        *(f"c@{number}: is corrupt" for number in range(10)),
    ]
    found.close_listed()
    assert capfd.readouterr().err.splitlines() == [
        "a: 2 more failures of this kind: is corrupt",
        f"12 failures: {given_up}; run it again later",
        f"1 failure: {UntriedError.START} i; run it again later",
    ]
    found.close_listed()
    assert capfd.readouterr().err == ""
    assert found.count == 12 + 12 + 10 + 1


def test_failures_with_paths_of_their_own_are_counted_where_they_have_something_in_common(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = Failures()
    for number in range(12):
        found.report_one_listed(Failure(f"{number}.gz", None, "cannot be read"), where="list")
        found.report_one_listed(Failure("a", None, f"is corrupt: {number}"))
    found.close_listed()
    lines = capfd.readouterr().err.splitlines()
    assert lines[18:20] == ["9.gz: cannot be read", "a: is corrupt: 9"]
    assert lines[20:] == [
        "list: 2 more failures of this kind: cannot be read",
        "a: 2 more failures of this kind: is corrupt: N",
    ]


def test_an_error_becomes_a_failure_of_the_name_that_the_user_knows() -> None:
    error = OutageError("/a", "did not answer", "try again")
    assert Failure.from_error(error) == Failure("/a", None, "did not answer", "try again", is_outage=True)
    assert Failure.from_error(error, "list:1: a").path == "list:1: a"
    assert not Failure.from_error(InputError("/a", "is corrupt")).is_outage


def test_failures_are_printed_around_the_bar_or_not_at_all(capfd: pytest.CaptureFixture[str]) -> None:
    class Bar(Progress):
        said: ClassVar[list[str]] = []

        def say(self, text: str) -> None:
            self.said.append(text)

    for is_printed in (True, False):
        found = Failures(printed=is_printed)
        with Bar("files", 1, quiet=True) as bar:
            found.show_on(bar)
            found.add("a", None, "is corrupt")
            assert bar.failures == found.count == 1
    assert Bar.said == ["a: is corrupt"]
    assert capfd.readouterr().err == ""


def test_a_fault_of_a_machine_stops_and_others_do_not() -> None:
    damaged, away = Failure("a", 1, "is corrupt"), Failure("b", None, "did not answer", is_outage=True)
    stop_at_outage([damaged])
    with pytest.raises(StoppedError, match="b: did not answer"):
        stop_at_outage([damaged, away])


def test_the_status_is_that_of_the_worst_failure() -> None:
    failures = Failures()
    statuses = [failures.status]
    for one in (Failure("a", 1, "is corrupt"), Failure("b", None, "did not answer", is_outage=True)):
        failures.report(one)
        statuses.append(failures.status)
    failures.report(Failure("c", 1, "is corrupt"))
    assert [*statuses, failures.status] == [OK, FAILED, STOPPED, STOPPED]


def test_failures_are_given_to_what_writes_them() -> None:
    written: list[str] = []
    Failures(write=written.append).add("a", None, "is corrupt")
    assert written == ["a: is corrupt"]


def test_of_failures_that_a_file_lists_kinds_have_no_numbers_and_servers_are_given_up_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = Failures()
    given_up = f"{UntriedError.START} h"
    listed = [Failure("a", number, f"has {number} bytes") for number in range(12)]
    found.report_listed("a", [*listed, Failure("a", None, given_up), Failure("a", 1, given_up)])
    assert capfd.readouterr().err.splitlines() == [
        *(f"a@{number}: has {number} bytes" for number in range(10)),
        "a: 2 more failures of this kind: has N bytes",
    ]
    found.close_listed()
    assert capfd.readouterr().err == f"2 failures: {given_up}; run it again later\n"
