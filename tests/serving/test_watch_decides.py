"""`serve --watch` without a cluster: which files are due, what is reported and how often, and when the directory is looked at again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.commands.collections import watch
from cdxmill.commands.collections.summary import ChangeSummary
from cdxmill.commands.collections.watch import WatchedDirectory
from cdxmill.errors import HeldError, InputError, StoppedError, UsageError
from cdxmill.formats.clusters.manifest import Manifest, UsedCompressor
from cdxmill.inputs.named import Input
from cdxmill.options.collections import Adding
from cdxmill.outputs.names import unique_names
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.zipnum.change_shard import Changes
from cdxmill.storage.location import Location

from ..material.clock import Clock
from ..material.clusters import write_raw_cluster

CHANGED = ChangeSummary(
    Changes(added=1), 0, 1, 1, Manifest((), 1, UsedCompressor("z", "1", 1, 0), ""), overlay="o"
)


class Watch:
    """A watched directory with `files`: their states. Those in `unopened` cannot be opened. Each call of `add` is in `tried`."""

    def __init__(self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, settle: float = 10) -> None:
        self.clock, self.path = clock, path
        self.files: dict[str, str] = {}
        self.unopened: list[str] = []
        self.error: Callable[[Sequence[str]], Exception | None] = lambda names: None
        self.fails: Exception | None = None
        self.takes = 0.0
        self.summary = CHANGED
        self.tried: list[str] = []
        self.known: set[str] | None = None
        monkeypatch.setattr(watch, "_format_of", lambda place: "cdx11")
        monkeypatch.setattr(watch, "find_archives", self._find)
        monkeypatch.setattr(watch, "_state_of", lambda place: self.files.get(place.name, ""))
        monkeypatch.setattr(watch, "add", self._add)
        monkeypatch.setattr(WatchedDirectory, "_skip_known", self._skip)
        self.watched = WatchedDirectory("C", str(path), settle, 3)

    def _skip(self, archives: Sequence[Input]) -> None:
        assert self.known is None, "only the first look with archives skips those that the cluster has"
        self.known = {one.filename for one in archives}

    def _find(self, asked: Adding, failures: Failures, unopened: Failures) -> list[Input]:
        failures.note("a note of each look")
        self.clock.now += self.takes
        if self.fails is not None:
            raise self.fails
        for name in self.unopened:
            unopened.report(Failure(str(self.path / name), None, "cannot be opened"))
        return [
            Input(Location(str(self.path / name)), name, name)
            for name in self.files
            if name not in self.unopened
        ]

    def _add(self, asked: Adding, failures: Failures, archives: Sequence[Input]) -> ChangeSummary:
        names = [one.filename for one in archives]
        self.tried.append("+".join(names))
        error = self.error(names)
        if error is not None:
            raise error
        return self.summary

    def look(self, seconds: float = 0) -> list[str]:
        """Look after some seconds. What was tried."""
        self.clock.now += seconds
        self.tried.clear()
        self.watched.look()
        return list(self.tried)


@pytest.fixture
def seen(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path, clock, monkeypatch)


def test_a_file_is_due_when_its_state_has_been_the_same_for_the_time(seen: Watch) -> None:
    seen.files = {"a": "1", "b": "1"}
    assert seen.look() == seen.look(9.5) == []
    seen.files["b"] = "2"
    assert seen.look(0.5) == ["a"]
    assert seen.look(9) == []
    assert seen.look(1) == ["b"]
    assert seen.look(99) == []
    seen.files["a"] = "2"
    assert seen.look() == []
    assert seen.look(10) == ["a"]
    assert seen.known == {"a", "b"}


def test_a_file_that_goes_and_comes_back_is_waited_for_anew(seen: Watch) -> None:
    seen.files = {"a": "1"}
    seen.look()
    seen.files = {}
    assert seen.look(5) == []
    seen.files = {"a": "1"}
    assert seen.look(5) == []
    seen.files["a"] = ""  # it goes while it is looked at
    assert seen.look(10) == []
    seen.files["a"] = "1"
    assert seen.look() == []
    assert seen.look(10) == ["a"]


def test_files_that_are_due_are_added_together(seen: Watch) -> None:
    assert seen.look() == []
    seen.files = dict.fromkeys("abc", "1")
    assert seen.look() == []
    assert seen.look(10) == ["a+b+c"]


@pytest.mark.parametrize(
    ("error", "pause", "told"),
    [
        (HeldError("held"), 0, "held; trying again"),
        (StoppedError("the disk is full"), 60, "the disk is full; trying again"),
        (InputError("C", "is corrupt"), 60, "C: is corrupt; trying again"),
    ],
    ids=["held", "stopped", "corrupt"],
)
def test_a_fault_of_the_machine_or_the_cluster_is_tried_again(
    error: Exception, pause: int, told: str, seen: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If another run only holds the cluster, at once. It is told once, and again after an addition."""
    seen.files = {"a": "1"}
    seen.error = lambda names: error
    seen.look()
    assert seen.look(10) == ["a"]
    assert seen.look() == ([] if pause else ["a"])
    assert seen.look(59) == ([] if pause else ["a"])
    assert seen.look(1) == ["a"]
    assert capsys.readouterr().err == f"{told}\n"
    seen.error = lambda names: None
    assert seen.look(60) == ["a"]
    assert capsys.readouterr().err.startswith("C: 1 line added as an overlay (o)")
    assert seen.look(60) == []
    seen.files["b"] = "1"
    seen.error = lambda names: error
    seen.look()
    assert seen.look(60) == ["b"]
    assert capsys.readouterr().err == f"{told}\n"


def test_of_archives_that_are_refused_together_each_is_tried_alone(
    seen: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen.files = dict.fromkeys("abc", "1")
    seen.error = lambda names: UsageError(f"{'+'.join(names)}: refused") if "b" in names else None
    seen.look()
    assert seen.look(10) == ["a+b+c", "a", "b", "c"]
    told = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[0] for line in told] == ["C:", "b:", "C:"]
    assert seen.look(99) == []
    seen.files["b"] = "2"
    seen.look()
    assert seen.look(10) == ["b"]
    assert capsys.readouterr().err == "b: refused\n"


def test_of_two_archives_each_is_tried_alone_too(seen: Watch) -> None:
    """And a file that is gone meanwhile is forgotten."""
    seen.files = dict.fromkeys("ab", "1")
    seen.error = lambda names: UsageError("refused") if "b" in names else None
    seen.look()
    assert seen.look(10) == ["a+b", "a", "b"]
    assert seen.look(99) == []
    seen.watched._try([Location("gone")])


def test_an_addition_without_new_lines_is_no_news(seen: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    seen.summary = CHANGED._replace(shards=0)
    seen.files = {"a": "1"}
    seen.look()
    assert seen.look(10) == ["a"]
    assert seen.look(10) == []
    assert capsys.readouterr().err == ""


def test_a_package_that_cannot_be_opened_is_told_once_in_each_state(
    seen: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen.files, seen.unopened = {"a": "1"}, ["a"]
    for state, seconds, lines in (
        ("1", 0, 0),
        ("1", 9, 0),
        ("1", 1, 1),
        ("1", 99, 0),
        ("2", 1, 0),
        ("2", 10, 1),
    ):
        seen.files["a"] = state
        assert seen.look(seconds) == []
        assert capsys.readouterr().err == f"{seen.path}/a: cannot be opened\n" * lines
    assert seen.known is None


def test_a_directory_without_archives_and_one_that_cannot_be_read(
    seen: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen.fails = UsageError("no archives")
    assert seen.look() == []
    assert capsys.readouterr().err == ""
    seen.fails = InputError("w", "cannot be read")
    assert seen.look() == seen.look() == []
    assert capsys.readouterr().err == "w: cannot be read\n"
    assert seen.known is None


@pytest.mark.parametrize(("settle", "pause"), [(0, 0.2), (0.3, 0.2), (0.4, 0.2), (0.5, 0.25), (10, 5)])
def test_the_directory_is_looked_at_twice_in_the_time_of_a_file(
    settle: float, pause: float, seen: Watch
) -> None:
    assert WatchedDirectory("C", str(seen.path), settle, 1).pause == pause


def test_an_addition_does_not_change_the_pause(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Watch(tmp_path, clock, monkeypatch, settle=0)
    seen.files = {"a": "1"}
    assert seen.look() == ["a"]
    assert seen.watched.pause == pytest.approx(0.2)


def test_looks_that_take_long_are_rare(seen: Watch) -> None:
    """A tenth of the time at most, and an addition does not count."""
    seen.files = {"a": "1"}
    for takes, pause in ((0.5, 5.0), (0.6, 6.0), (0.1, 6.0)):
        seen.takes = takes
        seen.look()
        assert seen.watched.pause == pytest.approx(pause)
    seen.takes = 20
    assert seen.look() == ["a"]
    assert seen.watched.pause == pytest.approx(6.0)
    seen.look()
    assert seen.watched.pause == pytest.approx(200.0)


@pytest.mark.parametrize("name", ["s3://bucket/w", "absent", "file"])
def test_only_a_directory_of_this_machine_is_watched(name: str, seen: Watch) -> None:
    (seen.path / "file").touch()
    name = name if "://" in name else str(seen.path / name)
    with pytest.raises(UsageError) as told:
        WatchedDirectory("C", name, 1, 1)
    assert str(told.value) == f"{name}: is no directory of this machine; run cdxmill add from time to time"


def test_archives_are_added_with_the_format_of_the_cluster(
    seen: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = seen.watched._asked
    assert (asked.cluster, asked.inputs, asked.processes, asked.line_format) == (
        "C",
        [str(seen.path)],
        3,
        "cdx11",
    )


JSON = b"com,a)/ 20200101000000 {}"
CDX11 = b"com,a)/ 20200101000000 http://a.com/ text/html 200 D - - 9 0 a.gz"
CDX9 = b"com,a)/ 20200101000000 http://a.com/ text/html 200 D - 0 a.gz"


@pytest.mark.parametrize(
    ("lines", "name"),
    [([], "cdxj"), ([JSON], "cdxj"), ([CDX11], "cdx11"), ([CDX9], "cdx9"), ([b"a)/ 2020 u 5 0 a"], None)],
)
def test_the_format_is_that_of_the_lines_of_the_cluster(
    lines: list[bytes], name: str | None, tmp_path: Path
) -> None:
    place = Location(write_raw_cluster(tmp_path / "C", lines))
    if name is None:
        with pytest.raises(
            UsageError, match="C: index does not write lines of its format, so no archives can be added"
        ):
            watch._format_of(place)
    else:
        assert watch._format_of(place) == name


@pytest.mark.parametrize(
    ("facts", "is_known"),
    [
        ("recorded same listed current there", True),
        ("recorded same listed current", True),
        ("recorded same current there", False),
        ("recorded same listed there", False),
        ("recorded same", True),
        ("recorded listed current there", False),
        ("same listed current there", False),
        ("same", False),
    ],
)
def test_what_the_cluster_has_or_had_is_not_tried(
    facts: str, is_known: bool, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has an archive that is listed, with a CDX file that is up to date. Without that file, its lines were removed."""
    true = facts.split()
    (tmp_path / "C/cdx").mkdir(parents=True)
    (tmp_path / "w").mkdir()
    archive, other = (
        Input(Location(str(tmp_path / f"w/{name}.warc.gz")), f"{name}.warc.gz", name) for name in "ab"
    )
    for one in (archive, other):
        Path(one.path).touch()
    (name,) = unique_names([archive]).values()
    if "there" in true:
        (tmp_path / "C/cdx" / name).touch()
    if "listed" in true:
        (tmp_path / "C/archives.tsv").write_text(f"a.warc.gz\t/x\t{archive.path}\n")
    state = watch._state_of(archive.location) if "same" in true else "other"
    rows = [SimpleNamespace(output=name, state=state)] if "recorded" in true else []
    record: Any = lambda directory: SimpleNamespace(last_rows=lambda: rows)  # noqa: E731
    monkeypatch.setattr(watch, "OutputRecord", record)
    current = [archive] if "current" in true else []
    monkeypatch.setattr(watch, "up_to_date", lambda names, directory, settings: current)
    monkeypatch.setattr(watch, "_format_of", lambda place: "cdxj")
    watched = WatchedDirectory(str(tmp_path / "C"), str(tmp_path / "w"), 0, 1)
    watched._found()
    watched._skip_known([archive, other])
    assert watched._is_due(archive.location) != is_known
    assert watched._is_due(other.location)
