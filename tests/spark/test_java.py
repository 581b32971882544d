"""The options of Java, the reason of its errors, and what is kept for its next start; the functions that are sent by value."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import UsageError
from cdxmill.spark import engine, java
from cdxmill.spark.by_value import joining, working


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java and the jars of a Spark."""
    for name in ("jars/spark.jar", "bin/java"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "")  # so that it is as before after the test
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS")
    return tmp_path


def archive_of(home: Path) -> Path:
    """The archive that the next start of Java would use."""
    _, part = java.options(str(home))
    assert part is not None
    return part.with_suffix("")


def test_an_archive_is_written_once_and_then_used(home: Path) -> None:
    written, part = java.options(str(home))
    assert part == Path(f"{archive_of(home)}.{os.getpid()}")
    assert len(archive_of(home).stem) == 16
    assert f'"-XX:ArchiveClassesAtExit={part}"' in written
    archive_of(home).touch()
    used = f'"-XX:SharedArchiveFile={part.with_suffix("")}"'
    found, again = java.options(str(home))
    assert (used in found, "-XX:+VerifySharedSpaces" in found, again) == (True, True, None)
    assert os.environ["SPARK_LAUNCHER_OPTS"] in written


def test_each_java_and_each_spark_has_its_own_archive(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [archive_of(home)]
    for name in ("jars/another.jar", "jars/spark.jar", "bin/java"):
        (home / name).write_text("changed")
        (home / name).chmod(0o755)
        found.append(archive_of(home))
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert archive_of(home) == found[-1], "the same Java on the path"
    assert len(set(found)) == 4


@pytest.mark.parametrize("lacks", ["java", "jars", "cache"])
def test_java_starts_without_an_archive_where_there_can_be_none(
    lacks: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacks == "java":
        monkeypatch.setenv("JAVA_HOME", str(home / "absent"))
    elif lacks == "jars":
        (home / "jars/spark.jar").unlink()
        (home / "jars").rmdir()
    else:
        (home / "cache").write_text("a file")
    assert java.options(str(home)) == (java.QUICK, None)


class Ended:
    """A context of Spark whose Java ends at once, after it has written its archive."""

    _gateway: Any = None
    _jvm: Any = "jvm"

    def __init__(self, archive: Path | None) -> None:
        self.said: list[str] = []
        self._jsc, self._archive, self._ending = "jsc", archive, threading.Lock()
        self._accumulatorServer = SimpleNamespace(shutdown=lambda: self.said.append("counting"))
        closed = SimpleNamespace(close=lambda: self.said.append("closed"))
        shutdown = lambda: self.said.append("gateway")  # noqa: E731
        type(self)._gateway = SimpleNamespace(
            shutdown=shutdown, proc=SimpleNamespace(stdin=closed, wait=self._end)
        )

    def _end(self) -> None:
        with self._ending:  # two threads wait for it
            archive, self._archive = self._archive, None
            if archive is not None:
                archive.write_text("classes")

    def stop(self) -> None:
        """As a context does."""
        assert self._jsc is None
        self.said.append("stopped")


def test_the_archives_of_the_last_versions_are_kept(tmp_path: Path) -> None:
    names = [f"{number:016x}.jsa" for number in range(5)]
    for number, name in enumerate([*names, "mine.jar", "mine.jsa"]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    part = tmp_path / f"{9:016x}.jsa.17"
    context = Ended(part)
    java.end(context, part)
    assert {path.name for path in tmp_path.iterdir()} == {*names[3:], "mine.jar", "mine.jsa", f"{9:016x}.jsa"}
    assert context.said[:3] == ["stopped", "gateway", "closed"]
    assert (Ended._gateway, Ended._jvm) == (None, None), "the next context starts a Java"
    java.end(Ended(None), tmp_path / "0.jsa.17")  # Java could not write it
    java.end(Ended(None), None)


def test_errors_go_to_a_file_only_while_java_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with java.errors_to(tmp_path / "log"):
        os.write(2, b"trace\n")
    with pytest.raises(ValueError, match="x"), java.errors_to(tmp_path / "log"):
        os.write(2, b"again\n")
        raise ValueError("x")
    with java.errors_to(None):
        os.write(2, b"here\n")
    os.write(2, b"after\n")
    assert (tmp_path / "log").read_bytes() == b"again\n"
    assert capfd.readouterr().err == "here\nafter\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x\ncdxmill.errors.InputError:  a: is bad \n\nValueError: b", "a: is bad"),
        ("Python worker exited unexpectedly (crashed)\n: org.apache.E: x", java._KILLED),
        ("Python worker exited unexpectedly\nValueError: no 7", "ValueError: no 7"),
        (": java.net.BindException: in use\n\tat x", "BindException: in use"),
        ("Caused by: java.io.IOException: one\nOSError: two", "OSError: two"),
        ("java.lang.Exception: An error occurred while calling\njava.io.IOException: full", "IOException: full"),
        ("\n nothing known\nmore", "nothing known"),
    ],
    ids=["own", "killed", "error of a killed one", "java", "python first", "not the frame", "first line"],
)  # fmt: skip
def test_the_reason_is_the_innermost_that_a_user_knows(text: str, reason: str) -> None:
    assert java.reason_of(text) == reason


def test_a_task_is_read_with_the_cdxmill_that_was_sent() -> None:
    work = working("", pickle.dumps(str))
    assert list(work([(4, pickle.dumps(7)), (2, pickle.dumps(b""))])) == [(4, "7"), (2, "b''")]

    def joined(call: Any) -> list[Any]:
        return list(joining("", pickle.dumps((call, 3)))(1, [(1, "a"), (1, "b")]))

    assert joined(as_text) == ["3 1 ab"]
    assert joined(nothing) == []
    assert joined(each) == ["a", "b"]


def as_text(shared: int, number: int, parts: Iterator[str]) -> str:
    return f"{shared} {number} {''.join(parts)}"


def nothing(*_: object) -> None:
    return None


def each(shared: int, number: int, parts: Iterator[str]) -> Iterator[str]:
    yield from parts


def test_what_a_job_has_done_is_counted_over_its_stages() -> None:
    stages: list[Any] = [SimpleNamespace(numCompletedTasks=3, numFailedTasks=1), None]
    stages.append(SimpleNamespace(numCompletedTasks=4, numFailedTasks=0))
    jobs: list[Any] = [SimpleNamespace(stageIds=[0, 1, 2]), None]
    tracker = SimpleNamespace(
        getActiveJobsIds=lambda: [0, 1], getJobInfo=jobs.__getitem__, getStageInfo=stages.__getitem__
    )
    assert engine._counts(tracker) == (7, 1)


def test_a_missing_pyspark_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.check_pyspark()

    def fails(_: str) -> None:
        raise ImportError

    for finds in (lambda _: None), fails:
        monkeypatch.setattr(engine, "find_spec", finds)
        with pytest.raises(UsageError, match="--engine spark needs PySpark: pip install"):
            engine.check_pyspark()
