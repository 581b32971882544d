"""What the engine asks of a context of Spark: the number of tasks, how errors are reported, and what is set at the start."""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cdxmill.errors import StoppedError
from cdxmill.running import progress
from cdxmill.spark import engine, java
from cdxmill.spark.engine import Engine, Shuffle
from tests.spark.spark_steps import double


class Rdd:
    """The methods of a data set that the engine uses. `error` is raised by all that ask for results."""

    def __init__(self, parts: Iterable[Iterable[Any]], error: Exception | None = None) -> None:
        self.parts, self._error = [list(part) for part in parts], error

    def mapPartitions(self, call: Callable[[Any], Any]) -> Rdd:  # noqa: N802
        return Rdd((call(iter(part)) for part in self.parts), self._error)

    def mapPartitionsWithIndex(self, call: Callable[[int, Any], Any]) -> Rdd:  # noqa: N802
        return Rdd((call(number, iter(part)) for number, part in enumerate(self.parts)), self._error)

    def flatMap(self, call: Callable[[Any], Any]) -> Rdd:  # noqa: N802
        return Rdd(([found for one in part for found in call(one)] for part in self.parts), self._error)

    def partitionBy(self, count: int, number_of: Callable[[Any], int]) -> Rdd:  # noqa: N802
        pairs = [pair for part in self.parts for pair in part]
        return Rdd(([pair for pair in pairs if number_of(pair[0]) == n] for n in range(count)), self._error)

    def persist(self, level: object) -> Rdd:
        return self

    def count(self) -> int:
        return len(self.collect())

    def collect(self) -> list[Any]:
        if self._error is not None:
            raise self._error
        return [one for part in self.parts for one in part]

    def toLocalIterator(self) -> Iterator[Any]:  # noqa: N802
        return iter(self.collect())


class Context:
    """A context with two cores."""

    defaultParallelism = 2  # noqa: N815
    error: Exception | None = None

    def __init__(self) -> None:
        self.slices: list[int] = []

    def parallelize(self, items: list[Any], slices: int) -> Rdd:
        self.slices.append(slices)
        return Rdd((items[number::slices] for number in range(slices)), self.error)

    def getConf(self) -> dict[str, str]:  # noqa: N802
        return {"spark.task.maxFailures": "7"}

    def statusTracker(self) -> Any:  # noqa: N802
        stage = SimpleNamespace(numCompletedTasks=2, numFailedTasks=1)
        job = SimpleNamespace(stageIds=[0])
        return SimpleNamespace(
            getActiveJobsIds=lambda: [0], getJobInfo=lambda _: job, getStageInfo=lambda _: stage
        )


class Started(Engine):
    """An engine whose Spark has started."""

    def __init__(self, slices: int = 0, *, is_local: bool = True, quiet: bool = True) -> None:
        super().__init__(slices=slices, quiet=quiet)
        self.context, self._is_local = Context(), is_local
        self._context = self.context


@pytest.mark.parametrize(
    ("tasks", "slices", "is_local", "wanted"),
    [(3, 0, True, 3), (64, 0, True, 64), (65, 0, True, 64), (65, 0, False, 65), (65, 9, False, 9), (5, 9, True, 5)],
)  # fmt: skip
def test_small_tasks_of_one_machine_are_joined(tasks: int, slices: int, is_local: bool, wanted: int) -> None:
    started, ticks = Started(slices, is_local=is_local), list[int]()
    found = list[tuple[int, int]]()
    results = started.run_tasks(double, range(tasks), 1, lambda: ticks.append(len(found)))
    found.extend(results)
    assert sorted(found) == [(number, 2 * number) for number in range(tasks)]
    assert started.context.slices == [wanted]
    assert ticks == list(range(1, tasks + 1)), "after the result is counted"


def test_nothing_to_do_asks_spark_for_nothing() -> None:
    started = Started()
    assert list(started.run_tasks(double, [], 1, lambda: None)) == []
    assert started.context.slices == []


def split(task: int) -> Iterator[tuple[int, int]]:
    yield from ((number, task) for number in range(3))


def join(shared: str, number: int, parts: Iterator[int]) -> str | None:
    return f"{shared}{number}:{sum(parts)}" if number != 1 else None


def join_each(shared: str, number: int, parts: Iterator[int]) -> Iterator[int]:
    yield from sorted(parts)


@pytest.mark.parametrize(("tasks", "is_local", "slices"), [(3, True, 3), (9, True, 8), (9, False, 9)])
def test_a_shuffle_sends_each_part_to_its_partition(tasks: int, is_local: bool, slices: int) -> None:
    started, total = Started(is_local=is_local), sum(range(tasks))
    assert started.shuffle(Shuffle(split, range(tasks), join, "s", 3)) == [f"s0:{total}", f"s2:{total}"]
    pieces = started.shuffle_pieces(Shuffle(split, range(tasks), join_each, "s", 3))
    assert list(pieces) == [*range(tasks)] * 3
    assert started.context.slices == [slices, slices]


@pytest.mark.parametrize("kind", [Py4JError, PySparkException])
@pytest.mark.parametrize(
    ("told", "log", "reason"),
    [
        (": java.io.IOException: no disk", "", "IOException: no disk; run it again"),
        ("cdxmill.errors.StoppedError: a is away; run it again", "", "a is away; run it again"),
        ("Cannot call methods on a stopped SparkContext.", "", "Cannot call methods on a stopped SparkContext.; run it again"),
        ("a stopped SparkContext", "Spark: first\nx\nSpark: the last one\n", "the last one; run it again"),
        (": java.io.IOException: no disk", "Spark: other\n", "IOException: no disk; run it again"),
    ],
    ids=["java", "own", "stopped", "stopped and why", "another error"],
)  # fmt: skip
def test_an_error_of_spark_is_one_line(
    told: str, log: str, reason: str, kind: type[Exception], tmp_path: Path
) -> None:
    """The second kind comes in a process that has a SparkSession."""
    started = Started()
    started.context.error = kind(told)
    (tmp_path / "log").write_text(log)
    started._said = tmp_path / "log" if log else None
    for ask in (
        lambda: list(started.run_tasks(double, [1], 1, lambda: None)),
        lambda: started.shuffle(Shuffle(split, [1], join, "s", 3)),
        lambda: list(started.shuffle_pieces(Shuffle(split, [1], join_each, "s", 3))),
    ):
        with pytest.raises(StoppedError) as caught:
            ask()
        assert str(caught.value) == f"Spark: {reason}"


def test_how_often_a_task_is_tried() -> None:
    assert (Started(is_local=True).tries, Started(is_local=False).tries) == (1, 7)
    assert (Started().cores, Started(is_local=False).is_local) == (2, False)


@pytest.mark.parametrize(
    ("quiet", "may_draw", "is_terminal", "is_shown"),
    [(False, True, True, True), (False, True, False, True), (False, False, False, True),
     (False, False, True, False), (True, True, True, False), (True, False, False, False)],
)  # fmt: skip
def test_progress_is_shown_once(
    quiet: bool, may_draw: bool, is_terminal: bool, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller with a bar on a terminal shows it itself."""
    shown, seen = list[str](), threading.Event()

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    class Watched(progress.Progress):
        def tick(self) -> None:
            shown.append(f"{self.done} {self.more}")
            seen.set()

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(engine, "_POLL", 0.001)
    monkeypatch.setattr(engine, "Progress", Watched)
    with engine._watched(Context(), "x", 9, quiet, may_draw):
        assert seen.wait(10 if is_shown else 0) == is_shown
    assert set(shown) == ({"2 1 failed task repeated"} if is_shown else set())


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("was_submitted", [True, False])
def test_what_is_set_for_spark(
    is_local: bool, was_submitted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings for this machine only where all runs here; options of Java only for one that is started here."""
    monkeypatch.setattr(java, "options", lambda _: ("-XX:quick", tmp_path / "part"))
    with Started(is_local=is_local) as started:
        found = started._defaults(was_submitted)
        assert found["spark.app.name"] == "cdxmill"
        assert ("spark.executorEnv.PYTHONSAFEPATH" in found) == is_local
        assert ("spark.python.daemon.module" in found) == (is_local and engine._is_installed())
        assert ("spark.driver.host" in found) == (is_local and not was_submitted)
        given = found.get("spark.driver.extraJavaOptions", "")
        (logging,) = re.findall(r"-Dlog4j2\.configurationFile=file://(\S+)", given) or [None]
        assert (logging is None) == was_submitted
        assert logging is None or Path(logging).read_text() == java.LOGGING
        assert ("-XX:quick" in given) == (is_local and not was_submitted)
        assert started._classes == (tmp_path / "part" if is_local and not was_submitted else None)


def test_cdxmill_is_installed_unless_only_this_process_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(engine.__file__).parents[2])
    monkeypatch.setattr(sys, "path", ["/x", here])
    monkeypatch.setenv("PYTHONPATH", "/y")
    assert engine._is_installed()
    monkeypatch.setenv("PYTHONPATH", f"/y:{here}")
    assert not engine._is_installed()
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setattr(sys, "path", [here, "/x"])
    assert not engine._is_installed()
