"""Failures are printed, counted and kept; results that hold them survive JSON."""

from __future__ import annotations

import json

import pytest

from cdxmill.errors import InputError
from cdxmill.inputs.sort_tasks import SortResult
from cdxmill.running import failures as module
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines.sorted_runs import Run


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
