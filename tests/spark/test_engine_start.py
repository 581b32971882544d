"""spark/engine.py: how Spark is started and ended, with a PySpark that starts nothing."""

from __future__ import annotations

import logging
import os
import sys
import threading
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from cdxmill.errors import StoppedError
from cdxmill.spark import engine, java
from cdxmill.spark.engine import Engine

SUBMITTED = "PYSPARK_GATEWAY_PORT"


class Conf:
    """Settings; those of spark-submit are loaded if that is asked for."""

    loaded: ClassVar[dict[str, str]] = {}

    def __init__(self, loadDefaults: bool) -> None:  # noqa: N803
        self.settings = dict(self.loaded) if loadDefaults else {}

    def setMaster(self, master: str) -> None:  # noqa: N802
        self.settings["spark.master"] = master

    def setIfMissing(self, name: str, value: str) -> None:  # noqa: N802
        self.settings.setdefault(name, value)

    def get(self, name: str, default: str) -> str:
        return self.settings.get(name, default)


@pytest.mark.parametrize(
    ("given", "submitted", "gateway", "master", "is_local", "is_own"),
    [
        ("", None, None, "local[3]", True, True),
        ("local[2]", None, None, "local[2]", True, True),
        ("local[2]", None, "runs", "local[2]", True, False),
        ("yarn", None, None, "yarn", False, False),
        ("", "yarn", None, "yarn", False, False),
        ("", "local[9]", None, "local[9]", True, False),
        ("spark://h:1", "local[9]", None, "spark://h:1", False, False),
    ],
)
def test_where_spark_runs(
    given: str,
    submitted: str | None,
    gateway: str | None,
    master: str,
    is_local: bool,
    is_own: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    context = SimpleNamespace(_gateway=gateway, _ensure_initialized=lambda: done.append("initialized"))
    fake = SimpleNamespace(SparkContext=context, SparkConf=Conf)
    monkeypatch.setattr(engine, "_pyspark", lambda: fake)
    monkeypatch.setattr(Conf, "loaded", {"spark.master": submitted, "kept": "of the user"})
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv(SUBMITTED, "1")
    if submitted is None:
        monkeypatch.delenv(SUBMITTED)
    started, opened = Engine(given, 3), list[Conf]()
    monkeypatch.setattr(
        started, "_defaults", lambda was_submitted: {"kept": "default", "own": str(was_submitted)}
    )

    def opening(_: object, conf: Conf) -> str:
        opened.append(conf)
        return "context"

    monkeypatch.setattr(started, "_open", opening)
    monkeypatch.setattr(started, "_send", lambda: done.append("sent"))
    assert started._start() == started._start() == "context"
    (conf,) = opened
    kept = "default" if submitted is None else "of the user"
    assert conf.settings == {"spark.master": master, "kept": kept, "own": str(submitted is not None)}
    assert (started._is_local, started._is_own) == (is_local, is_own)
    assert done == (["initialized"] if submitted else []) + ([] if is_local else ["sent"])
    assert os.environ.get("PYSPARK_PYTHON") == (sys.executable if is_local else None)


@pytest.mark.parametrize("variable", [None, SUBMITTED, "CDXMILL_TRACEBACK"])
@pytest.mark.parametrize("error", [None, RuntimeError("java.lang.Error: no memory")])
def test_what_java_prints_is_kept_unless_somebody_reads_it(
    variable: str | None, error: Exception | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (SUBMITTED, "CDXMILL_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "1")
    (tmp_path / "java.log").touch()
    levels: list[str] = []
    ended: list[str] = []
    context = SimpleNamespace(setLogLevel=levels.append)

    def make(conf: object) -> object:
        if error is not None:
            raise error
        return context

    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(java, "errors_to", lambda said: nullcontext())
    fake = SimpleNamespace(SparkContext=make)
    started = Engine("local[1]")
    monkeypatch.setattr(started, "_directory", lambda: tmp_path)
    monkeypatch.setattr(started, "_end", lambda *_: ended.append("ended"))
    before = len(root.handlers)
    with started:
        if error is None:
            assert started._open(fake, None) is context
        else:
            with pytest.raises(StoppedError, match=r"^Spark cannot be started: .*no memory"):
                started._open(fake, None)
        assert started._said == (tmp_path / "java.log" if variable is None else None)
        assert isinstance(root.handlers[before], logging.NullHandler)
    assert levels == ([] if error else ["ERROR"])
    assert ended == ([] if error else ["ended"])


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("kind", [None, KeyboardInterrupt])
def test_an_own_java_ends_at_once_after_a_success_only(
    is_own: bool, kind: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    started = Engine()
    started._context, started._is_own = SimpleNamespace(stop=lambda: done.append("stopped")), is_own
    monkeypatch.setattr(java, "end", lambda *_: done.append("ended"))
    given: Any = (kind, None, None)
    started._end(*given)
    assert done == ["ended" if is_own and kind is None else "stopped"]


def test_nodes_get_this_cdxmill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    started = Engine("yarn")
    started._context = SimpleNamespace(addArchive=sent.append)
    monkeypatch.setattr(started, "_directory", lambda: tmp_path)
    started._send()
    assert sent == [f"{tmp_path}/cdxmill_nodes.zip#cdxmill_nodes"]
    assert started._archive == "cdxmill_nodes"
    with zipfile.ZipFile(tmp_path / "cdxmill_nodes.zip") as archive:
        assert {"cdxmill/__init__.py", "cdxmill/spark/engine.py"} <= set(archive.namelist())


def test_progress_ends_when_spark_does() -> None:
    """The driver says why."""
    ticks: list[str] = []

    def asked() -> object:
        raise RuntimeError("stopped")

    over: Any = SimpleNamespace(wait=lambda _: len(ticks) > 3)
    progress: Any = SimpleNamespace(done=0, more="", tick=lambda: ticks.append("tick"))
    engine._follow(SimpleNamespace(statusTracker=asked), progress, over)
    assert ticks == []


def test_a_program_without_stderr_has_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    shown: list[object] = []

    def progress(*given: object) -> Any:
        shown.append(given)
        return nullcontext(None)

    monkeypatch.setattr(engine, "Progress", progress)
    monkeypatch.setattr(engine, "_follow", lambda *_: None)
    with engine._watched(None, "tasks", 3, quiet=False, may_draw=False):
        pass
    assert shown == [("tasks", 3)]


def test_a_call_is_made_in_a_thread_that_does_not_outlive_the_program() -> None:
    thread = engine._aside(threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_no_file_of_errors_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    dup = os.dup

    def noted(number: int) -> int:
        taken.append(dup(number))
        return taken[-1]

    monkeypatch.setattr(os, "dup", noted)
    with java.errors_to(tmp_path / "log"):
        os.write(2, b"a trace")
    (number,) = taken
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    assert (tmp_path / "log").read_bytes() == b"a trace"


@pytest.mark.parametrize("has_part", [True, False])
def test_an_archive_gets_its_name_when_java_has_written_it(has_part: bool, tmp_path: Path) -> None:
    part = tmp_path / "0123456789abcdef.jsa.7"
    done: list[str] = []

    def wait() -> None:
        if threading.current_thread() is threading.main_thread():
            done.append("waited")
            part.touch()

    class Context:
        """One that is stopped."""

        _gateway: Any = SimpleNamespace(
            shutdown=lambda: done.append("shut down"),
            proc=SimpleNamespace(stdin=SimpleNamespace(close=lambda: done.append("closed")), wait=wait),
        )
        _jvm: Any = None
        _accumulatorServer = SimpleNamespace(shutdown=lambda: None)  # noqa: N815
        _jsc: Any = None

        def stop(self) -> None:
            done.append("stopped")

    java.end(Context(), part if has_part else None)
    assert done == ["stopped", "shut down", "closed", *(["waited"] if has_part else [])]
    assert [path.name for path in tmp_path.iterdir()] == ([part.stem] if has_part else [])
