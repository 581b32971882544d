"""server/report.py: when the process of a report starts, and what it does, without its pages."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import CdxmillError, InputError, UsageError
from cdxmill.running.failures import Failures
from cdxmill.server import report
from cdxmill.server.answers import RequestError

PAGE = b"a page"


class Process:
    """In place of a process: it notes how it is started, and is alive until it is ended."""

    made: list[Process]

    def __init__(self, **settings: Any) -> None:
        self.settings, self.is_started, self.is_ended = settings, False, False
        self.made.append(self)

    def start(self) -> None:
        """Note it."""
        self.is_started = True

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not self.is_ended


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    found: list[Process] = []
    monkeypatch.setattr(Process, "made", found, raising=False)
    monkeypatch.setattr(report, "get_context", lambda kind: SimpleNamespace(Process=Process))
    return found


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a process does to itself; pages are made without reading."""
    found: list[object] = []
    fake = SimpleNamespace(
        SIGINT=signal.SIGINT, SIG_IGN=signal.SIG_IGN, signal=lambda *given: found.append(given)
    )
    monkeypatch.setattr(report, "signal", fake)
    monkeypatch.setattr(report, "end_with_parent", lambda: found.append("end with parent"))
    monkeypatch.setattr(os, "nice", lambda more: found.append(f"nice {more}"))

    def page(name: str, clusters: Sequence[str]) -> bytes:
        if not clusters:
            raise InputError("/secret/c", "cannot be read")
        return PAGE

    monkeypatch.setattr(report, "_page", page)
    return found


def collection(state: bytes | None = b"1", has_report: bool = True) -> Any:
    opened: list[str] = []
    return SimpleNamespace(
        name="many",
        has_report=has_report,
        open=lambda: opened.append("opened"),
        state=lambda: state if opened else None,
        sources=[SimpleNamespace(cluster="/c")],
    )


@pytest.mark.parametrize(("state", "has_report"), [(None, True), (b"1", False)])
def test_a_collection_without_a_state_has_no_report(
    state: bytes | None, has_report: bool, tmp_path: Path, made: list[Process]
) -> None:
    with pytest.raises(RequestError) as caught:
        report.Reports(tmp_path).page(collection(state, has_report))
    assert caught.value.code == 404
    assert made == []


def test_a_process_starts_unless_one_is_alive_here_or_elsewhere(tmp_path: Path, made: list[Process]) -> None:
    reports = report.Reports(tmp_path)
    with (tmp_path / "making").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert reports.page(collection()).status == 202
        assert made == []
    waiting = reports.page(collection())
    assert (waiting.status, dict(waiting.headers)[b"retry-after"]) == (202, b"2")
    assert b'http-equiv="refresh"' in b"".join(waiting.body)
    (first,) = made
    assert first.is_started
    place = reports.place(collection(), b"1")
    assert first.settings == {"target": report.make, "args": (place, ["/c"]), "daemon": True}
    assert reports.page(collection()).status == 202
    assert made == [first]
    first.is_ended = True
    assert reports.page(collection()).status == 202
    assert [process.is_started for process in made] == [True, True]


def test_a_report_takes_the_place_of_earlier_ones(tmp_path: Path, done: list[object]) -> None:
    reports = report.Reports(tmp_path)
    old, new = (reports.place(collection(), state) for state in (b"1", b"2"))
    assert len(old.name) == 32
    report.make(old, ["/c"])
    assert done == [(signal.SIGINT, signal.SIG_IGN), "end with parent", "nice 10"]
    found = reports.page(collection(b"1"))
    assert (found.status, found.body) == (200, (PAGE,))
    assert dict(found.headers)[b"cache-control"] == b"public, max-age=60"
    report.make(new, ["/c"])
    assert [path.name for path in (tmp_path / "many").iterdir()] == [f"{new.name}.html"]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_report_that_cannot_be_made_says_so_to_the_operator_only(
    is_held: bool, tmp_path: Path, done: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    reports = report.Reports(tmp_path)
    with (tmp_path / "making").open("ab") as other:
        if is_held:
            fcntl.flock(other, fcntl.LOCK_EX)
        report.make(reports.place(collection(), b"1"), [])
    said = capsys.readouterr().err
    assert said == ("" if is_held else "cdxmill: the report of many: /secret/c: cannot be read\n")
    assert (tmp_path / "many").exists() != is_held
    with nullcontext() if is_held else pytest.raises(RequestError) as caught:
        if not is_held:
            reports.page(collection())
    if caught is not None:
        assert (caught.value.code, "/secret" in str(caught.value)) == (500, False)


def test_a_report_has_no_paths_of_this_machine() -> None:
    given = {
        "inputs": ["/x/c"],
        "shards": [{"path": "/x/c/cdx-00000.gz", "lines": 1}],
        "clusters": ["/x/c"],
        "build_failures": {"count": 2, "first": ["/x/a"]},
        "failures": {"count": 1, "first": ["/x/b"]},
        "lines": 1,
    }
    assert report._without_paths(given, "many") == {
        "inputs": ["many"],
        "shards": [{"path": "cdx-00000.gz", "lines": 1}],
        "clusters": [],
        "build_failures": {"count": 2, "first": []},
        "failures": {"count": 1, "first": []},
        "lines": 1,
    }


@pytest.mark.parametrize("is_missing", [False, True])
@pytest.mark.parametrize("shard", [0, None])
def test_a_page_is_made_quietly_in_one_process_of_clusters_only(
    shard: int | None, is_missing: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.commands.reporting import parts as reporting
    from cdxmill.commands.reporting import report as command
    from cdxmill.stages.report import page

    def suffixes() -> None:
        if is_missing:
            raise UsageError("a library is missing")

    def inputs(clusters: Sequence[str], failures: Failures) -> Any:
        assert not is_missing, "nothing is read before"
        failures.add("/c/cdx-00000.gz", 7, "is corrupt")
        return SimpleNamespace(parts=[SimpleNamespace(path=clusters[0], shard=shard)])

    asked: list[Any] = []
    monkeypatch.setattr(reporting, "public_suffixes", suffixes)
    monkeypatch.setattr(command, "find_inputs", inputs)
    monkeypatch.setattr(command, "make_report", lambda _, given, failures: asked.append(given))
    monkeypatch.setattr(report, "_without_paths", lambda found, name: {"name": name})
    monkeypatch.setattr(page, "format_page", lambda found: PAGE + found["name"].encode())
    if is_missing or shard is None:
        wanted = "a library is missing" if is_missing else "/c: is no cluster any more"
        with pytest.raises(CdxmillError, match=wanted):
            report._page("many", ["/c"])
        assert asked == []
    else:
        assert report._page("many", ["/c"]) == PAGE + b"many"
        (given,) = asked
        assert given.processes == 1
    assert capsys.readouterr().err == ""
