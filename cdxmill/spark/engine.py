"""Start Spark, run tasks on it, and send cdxmill to the nodes.

Tasks are sent as bytes: a node can read them only after cdxmill is on its path.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cdxmill.errors import StoppedError, UsageError
from cdxmill.messages import count
from cdxmill.regex import regex
from cdxmill.running.lock import renew_held
from cdxmill.running.processes import processes_by_default
from cdxmill.running.progress import Progress
from cdxmill.spark import java
from cdxmill.spark.by_value import joining, working
from cdxmill.spark.tasks import SharedWork
from cdxmill.storage.scratch import temporary_directory
from cdxmill.version import install_extra

Task = TypeVar("Task")
Result = TypeVar("Result")

_ARCHIVE = "cdxmill_nodes"
_PER_CORE = 32
"""Tasks of Spark per core of this machine: starting one takes longer than indexing a small archive."""
_SPLITS_PER_CORE = 4
_POLL = 0.5  # seconds between two questions to Spark
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit: Spark runs already, with the settings of the user
_DEFAULTS = {
    "spark.app.name": "cdxmill",
    "spark.executorEnv.PYTHONWARNINGS": "ignore",  # of libraries that PySpark finds, and cdxmill does not use with it
    "spark.ui.showConsoleProgress": "false",
    "spark.shuffle.compress": "false",  # what is sent is compressed
    "spark.shuffle.spill.compress": "false",
    "spark.python.worker.memory": "256m",  # PySpark holds at most half of it before it sends it on
    "spark.executor.extraJavaOptions": java.QUICK_COMPILER,
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.executorEnv.PYTHONSAFEPATH": "1",  # else the working directory comes first, with a json.py perhaps
}
"""Settings for Spark on this machine only."""
_DAEMON = {"spark.python.daemon.module": "cdxmill.spark.daemon"}
_OWN = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}
"""Settings for a Java that is started here, for this machine only."""
_MISSING = f"--engine spark needs PySpark: {install_extra('spark')}"
_STOPPED = "stopped SparkContext"
_ENDED = regex(r"^Spark: (.+)$", re.M)
"""In the log: why it was stopped."""
_HARMLESS = regex(r"^(?:Picked up |WARNING: ).*\n", re.M)


class Shuffle(NamedTuple):
    """A step with two kinds of tasks: `split` sends parts to numbered partitions, `join` makes one result of each.

    `split(task)` yields pairs of a partition and a part, a tuple of plain values. `join(shared, number, parts)` gets the
    parts of a partition in any order; a result of None is not returned, and of a generator each item is one.
    """

    split: Callable[[Any], Iterator[tuple[int, Any]]]
    tasks: Sequence[Any]
    join: Callable[[Any, int, Iterator[Any]], Any]
    shared: Any
    partitions: int


class Engine:
    """Runs tasks on Spark. It is started for the first task. `master` is "" to use the one of spark-submit.

    `slices` is the number of tasks of Spark in which archives are indexed, and files are sampled. By default, each is one;
    on this machine alone, several small ones are. With `quiet`, no progress is shown.
    """

    def __init__(self, master: str = "", processes: int = 0, slices: int = 0, *, quiet: bool = False) -> None:
        self._master, self._processes, self._slices, self._quiet = master, processes, slices, quiet
        self._is_local = False
        self._context: Any = None
        self._is_own = False  # on this machine alone, in a Java that is started here
        self._classes: Path | None = None
        self._archive = ""
        self._said: Path | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._closing.__exit__(*exception)

    def run_tasks(
        self,
        work: Callable[[Task], Result],
        tasks: Sequence[Task],
        processes: int,
        tick: Callable[[], None],
    ) -> Iterator[tuple[int, Result]]:
        """(index of the task, result) for every task, as `running.processes.run_tasks`. Raises StoppedError."""
        if not tasks:
            return
        blobs = list(map(pickle.dumps, tasks))
        context = self._start()
        work_sent = working(self._archive, pickle.dumps(SharedWork(work)))
        most = self._slices or (_PER_CORE * context.defaultParallelism if self._is_local else len(blobs))
        slices = min(len(blobs), most)
        with _watched(context, "tasks of Spark", slices, self._quiet, may_draw=False):
            found = self._collect(
                lambda: context.parallelize(list(enumerate(blobs)), slices).mapPartitions(work_sent)
            )
        for index, result in found:
            yield index, result
            tick()  # after the caller has counted the result

    def shuffle(self, step: Shuffle) -> list[Any]:
        """The results of all partitions, in their order. Raises StoppedError."""
        joined, total = self._joined(step)
        with _watched(
            self._context, "sorting and writing: tasks of Spark", total, self._quiet, may_draw=True
        ):
            return self._collect(joined)

    def shuffle_pieces(self, step: Shuffle) -> Iterator[Any]:
        """As `shuffle`, if `join` yields any number of results: one partition after another is held. Raises StoppedError."""
        from pyspark import StorageLevel

        joined, total = self._joined(step)
        with _watched(self._context, "tasks of Spark", total, self._quiet, may_draw=False):
            found = self._ask(lambda: joined().persist(StorageLevel.DISK_ONLY))
            self._ask(found.count)  # all partitions at once, on the nodes' disks
        pieces = self._ask(found.toLocalIterator)
        while (piece := self._ask(lambda: next(pieces, None))) is not None:
            yield piece

    def _joined(self, step: Shuffle) -> tuple[Callable[[], Any], int]:
        """What makes the results of a step, and the number of tasks."""
        context = self._start()
        blobs = list(map(pickle.dumps, step.tasks))
        join = pickle.dumps((SharedWork(step.join), step.shared))
        splitting = working(self._archive, pickle.dumps(SharedWork(step.split)))
        join_sent = joining(self._archive, join)
        most = _SPLITS_PER_CORE * context.defaultParallelism if self._is_local else len(blobs)
        slices = min(len(blobs), most)

        def joined() -> Any:
            done = context.parallelize(list(enumerate(blobs)), slices).mapPartitions(splitting)
            sent = done.flatMap(lambda one: one[1])
            return sent.partitionBy(step.partitions, lambda number: number).mapPartitionsWithIndex(join_sent)

        return joined, slices + step.partitions

    def _collect(self, lines: Callable[[], Any]) -> list[Any]:
        found: list[Any] = self._ask(lambda: lines().collect())
        return found

    def _ask(self, call: Callable[[], Any]) -> Any:
        """What Spark answers. Raises StoppedError.

        In a process that has a SparkSession, PySpark changes the errors of Java to its own.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return _aside(call)
        except (Py4JError, PySparkException) as error:
            ends = _ENDED.findall(self._log()) if _STOPPED in str(error) else []
            reason = ends[-1] if ends else java.reason_of(str(error))
            raise StoppedError(f"Spark: {reason}{'' if _has_hint(reason) else '; run it again'}") from None

    def _log(self) -> str:
        """What Java has printed."""
        return "" if self._said is None else self._said.read_text(errors="replace")

    @property
    def cores(self) -> int:
        """How many tasks run at once, as far as Spark knows. It is started to find out."""
        return int(self._start().defaultParallelism)

    @property
    def tries(self) -> int:
        """How often Spark tries a task. It is started to find out."""
        return 1 if self.is_local else int(self._context.getConf().get("spark.task.maxFailures", "4"))

    @property
    def is_local(self) -> bool:
        """Whether all tasks run on this machine. Spark is started to find out."""
        self._start()
        return self._is_local

    def _start(self) -> Any:
        if self._context is None:
            pyspark = _pyspark()
            was_submitted = _SUBMITTED in os.environ
            if was_submitted:
                pyspark.SparkContext._ensure_initialized()  # before, SparkConf does not see the settings
            conf = pyspark.SparkConf(loadDefaults=was_submitted)
            master = self._master or (
                "" if was_submitted else f"local[{self._processes or processes_by_default()}]"
            )
            if master:
                conf.setMaster(master)
            self._is_local = str(conf.get("spark.master", "")).startswith("local")
            self._is_own = self._is_local and not was_submitted and pyspark.SparkContext._gateway is None
            if self._is_local:
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            for name, value in self._defaults(was_submitted).items():
                conf.setIfMissing(name, value)
            self._context = self._open(pyspark, conf)
            if not self._is_local:
                self._send()
        return self._context

    def _defaults(self, was_submitted: bool) -> dict[str, str]:
        local = {**_LOCAL, **(_DAEMON if _is_installed() else {})} if self._is_local else {}
        if was_submitted:
            return {**_DEFAULTS, **local}
        from pyspark.find_spark_home import _find_spark_home

        logging = self._directory() / "log4j2.properties"
        logging.write_text(java.LOGGING)
        options = f"-Dlog4j2.configurationFile={logging.as_uri()}"
        if not self._is_local:
            return {**_DEFAULTS, "spark.driver.extraJavaOptions": options}
        quick, self._classes = java.options(_find_spark_home())
        return {**_DEFAULTS, **local, **_OWN, "spark.driver.extraJavaOptions": f"{quick} {options}"}

    def _open(self, pyspark: Any, conf: Any) -> Any:
        logging.getLogger().addHandler(logging.NullHandler())  # else py4j prints tracebacks
        if _SUBMITTED not in os.environ and "CDXMILL_TRACEBACK" not in os.environ:
            self._said = self._directory() / "java.log"
        try:
            with java.errors_to(self._said):
                context = _aside(lambda: pyspark.SparkContext(conf=conf))
        except Exception as error:  # of Java, of the network, of YARN
            said = _HARMLESS.sub("", self._log())
            raise StoppedError(f"Spark cannot be started: {java.reason_of(said or str(error))}") from None
        self._closing.push(self._end)
        context.setLogLevel("ERROR")
        return context

    def _end(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None or not self._is_own:
            self._context.stop()
            return
        java.end(self._context, self._classes)

    def _directory(self) -> Path:
        """A directory for files of the driver."""
        return Path(self._closing.enter_context(temporary_directory()))

    def _send(self) -> None:
        """Send this cdxmill to the nodes: another version there would write other bytes."""
        archive = self._directory() / f"{_ARCHIVE}.zip"
        package = Path(__file__).parents[1]
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted((*package.rglob("*.py"), *package.rglob("*.so"))):
                file.write(path, f"cdxmill/{path.relative_to(package).as_posix()}")
        self._context.addArchive(f"{archive}#{_ARCHIVE}")
        self._archive = _ARCHIVE


@contextmanager
def _watched(context: Any, title: str, tasks: int, quiet: bool, may_draw: bool) -> Iterator[None]:
    """Show how many of `tasks` are done while the block waits for a job of the `context` of Spark.

    With `may_draw`, there is a bar on a terminal; without, the caller has one, and only a log gets lines.
    """
    is_hidden = quiet or (not may_draw and sys.stderr is not None and sys.stderr.isatty())
    if is_hidden:
        yield
        return
    over = threading.Event()
    with Progress(title, tasks) as progress:
        thread = threading.Thread(target=_follow, args=(context, progress, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _has_hint(reason: str) -> bool:
    """Whether the reason says already that the run may be started again."""
    return "run it again" in reason


def _follow(context: Any, progress: Progress, over: threading.Event) -> None:
    while not over.wait(_POLL):
        try:
            progress.done, failed = _counts(context.statusTracker())
        except Exception:  # Spark is being stopped: the driver says why
            return
        progress.more = f"{count(failed, 'failed task')} repeated" if failed else ""
        progress.tick()


def _counts(tracker: Any) -> tuple[int, int]:
    """How many tasks of the job that runs now are done, and how many have failed."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    found = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in found), sum(stage.numFailedTasks for stage in found)


def _aside(call: Callable[[], Result]) -> Result:
    """The result of `call` in a thread of its own.

    A signal ends the wait for it, and not the exchange of messages with Java: Spark can still be stopped then.
    """
    found: Future[Result] = Future()

    def run() -> None:
        try:
            found.set_result(call())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not found.done():
        wait([found], _POLL)
        renew_held()
    return found.result()


def _is_installed() -> bool:
    """Whether every Python of this machine finds cdxmill: it is not in a directory or archive of this process alone."""
    own = [*sys.path[:1], *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return str(Path(__file__).parents[2]) not in own


def check_pyspark() -> None:
    """Raise UsageError if PySpark is not installed."""
    try:
        found = find_spec("pyspark")
    except ImportError:
        found = None
    if found is None:
        raise UsageError(_MISSING)


def _pyspark() -> Any:
    try:
        with warnings.catch_warnings():  # of libraries that PySpark finds, and cdxmill does not use with it
            warnings.simplefilter("ignore")
            import pyspark
            import pyspark.sql.types
            from py4j import protocol
    except ImportError:
        raise UsageError(_MISSING) from None
    # the converters of NumPy's types import pandas, which takes a second
    protocol.INPUT_CONVERTER[:] = [
        one for one in protocol.INPUT_CONVERTER if "Numpy" not in type(one).__name__
    ]
    return pyspark
