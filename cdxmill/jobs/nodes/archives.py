"""The tasks of the jobs that read archives: index archives, each to its own CDX file; count archives, and add counts.

A Hadoop node needs the libraries that cdxmill depends on (see bootstrap.sh, or name a Python that has them with
--python-bin). It needs no mrjob, and cdxmill itself is sent with the job.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter as Kinds
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.capture import Note
from cdxmill.commands.count import CountTask, count_watched
from cdxmill.commands.own_function import counter_in_file
from cdxmill.commands.per_archive.index import IndexedArchive, IndexOptions, IndexTask, index_one
from cdxmill.inputs.named import Input
from cdxmill.jobs.nodes.files import Destination
from cdxmill.jobs.nodes.task_context import TaskRun, format_failure, parse_failure
from cdxmill.jobs.nodes.wacz_work import OpenedWacz, WaczWork, open_wacz
from cdxmill.running.failures import SHOWN, Failure, kind_of
from cdxmill.running.processes import bytes_done
from cdxmill.running.watched import Limits
from cdxmill.stages.counting.counters import Counter
from cdxmill.stages.counting.own_counter import OwnCounter
from cdxmill.stages.counting.tally import sum_counts, sum_lines
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.lines.merge_lines import merge_runs
from cdxmill.storage.local import sync_directories
from cdxmill.storage.location import Location
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.wacz import is_wacz

JOB_FILE = "cdxmill_count_job.py"
"""Name of the file with a user's job, in the working directory of a task."""
FAILURES = "_failures-"
"""Start of the name of a file with failures; Hadoop ignores names that begin with an underscore."""
_NOTE = b"note\t"
"""Begins a note in the output of a task. A failure begins with a path, which has no tab."""
_REPORT_INTERVAL = 30.0
"""Seconds between two status reports. By default Hadoop kills a task that is silent for ten minutes."""


class ArchiveWork(NamedTuple):
    """One item of the index job's work list: an archive, and the path or URL of its CDX file.

    `directory` is the local directory in which outputs are recorded, if there is one.
    """

    archive: Input
    output: str
    directory: str | None

    def item(self) -> dict[str, Any]:
        """The item as JSON can hold it."""
        return {**self._asdict(), "archive": self.archive.to_fields()}

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> ArchiveWork:
        """What `item` has returned."""
        return cls(**{**item, "archive": Input.of_fields(item["archive"])})


def index_archives(run: TaskRun) -> None:
    """Map: index the archives on the work list, one `ArchiveWork` or `WaczWork` per line. Write their failures and notes."""
    with reporting(run) as directory:
        for number, item in enumerate(run.work()):
            scratch = directory / str(number)
            tasks = _in_wacz(item, scratch, run) if "wacz" in item else [_task_of(item, scratch)]
            for task in tasks:
                result = index_one(task)
                run.check_reached(result.failures)
                _report(task.archive.path, result, run)
            sync_directories(task.output.local for task in tasks if task.directory is not None)


def _task_of(item: dict[str, Any], scratch: Path) -> IndexTask:
    work = ArchiveWork.from_item(item)
    record = None if work.directory is None else Path(work.directory)
    return IndexTask(work.archive, Location(work.output), record, scratch, IndexOptions().settings())


def _in_wacz(item: dict[str, Any], scratch: Path, run: TaskRun) -> list[IndexTask]:
    """The archives in a WACZ that have to be indexed. What cannot be is reported."""
    work = WaczWork.from_item(item)
    opened = open_wacz(work.wacz)
    run.check_reached(opened.failures)
    tasks = work.tasks(opened, scratch)
    run.output.writelines(_lines_of(opened))
    run.add(**opened.counters(len(tasks)))
    return tasks


def _lines_of(opened: OpenedWacz) -> Iterator[bytes]:
    """What is reported of a WACZ, as lines."""
    yield from map(format_failure, opened.failures)
    yield from (_NOTE + format_failure(one) for one in opened.notes)


def _report(path: str, result: IndexedArchive, run: TaskRun) -> None:
    failures, notes = result.failures, result.notes
    run.output.writelines(map(format_failure, failures))
    run.output.writelines(_lines_of_notes((path, note) for note in notes))
    run.add(
        archives=1,
        captures=result.captures,
        archive_bytes=result.size,
        failures=len(failures),
        failed_archives=bool(failures),
        notes=len(notes),
    )


def _lines_of_notes(notes: Iterable[tuple[str, Note]]) -> Iterator[bytes]:
    """The first notes of each kind, as lines; the launcher prints no more of them. Each is given with its archive."""
    kinds: Kinds[str] = Kinds()
    for path, note in notes:
        kinds[kind_of(note.reason)] += 1
        if kinds[kind_of(note.reason)] <= SHOWN:
            yield _NOTE + format_failure(Failure(f"{path}@{note.offset}", None, note.reason))


def parse_output(output: bytes) -> tuple[list[Failure], list[Failure]]:
    """The failures in the output of all tasks that index or count, and the notes."""
    lines = output.splitlines()
    notes = [parse_failure(line[len(_NOTE) :]) for line in lines if line.startswith(_NOTE)]
    return [parse_failure(line) for line in lines if not line.startswith(_NOTE)], notes


def count_archives(counter: Counter | OwnCounter, run: TaskRun, limits: Limits) -> None:
    """Map: write the counts of the archives on the work list. A failure or note is a line that starts with a TAB."""
    with _scratch(run) as directory:
        archives, opened = _archives_on(run)
        scratch = Scratch(directory)
        task = CountTask(archives, scratch.directory / "0")
        found = [result for _, result in count_watched([task], counter, 1, _Report(run), limits)]
        failures = [failure for result in found for failure in result.failures]
        run.check_reached(failures)
        runs = [one for result in found for one in result.runs]
        notes = [note for result in found for note in result.notes]
        reports = chain(*map(_lines_of, opened), map(format_failure, failures), _lines_of_notes(notes))
        run.output.writelines(b"\t" + line for line in reports)
        run.output.writelines(map(text_of, sum_lines(merge_runs(runs, scratch.create, scratch.reader))))
        run.output.flush()
    counted = sum(result.counted.counted for result in found)
    run.add(archives=len(archives), records_counted=counted, failures=len(failures))


def _archives_on(run: TaskRun) -> tuple[list[Input], list[OpenedWacz]]:
    """The archives on the work list, and the WACZ files that have some of them."""
    archives, opened = list[Input](), list[OpenedWacz]()
    for archive in (Input.of_fields(item["archive"]) for item in run.work()):
        if not is_wacz(archive.path):
            archives.append(archive)
            continue
        wacz = open_wacz(archive)
        run.check_reached(wacz.failures)
        run.add(**wacz.counters(len(wacz.archives)))
        archives += wacz.archives
        opened.append(wacz)
    return archives, opened


def counter_in_job(name: str) -> OwnCounter:
    """The counter of the class `name` in a user's file."""
    return counter_in_file(Path(JOB_FILE), name)


def add_counts(output: str, run: TaskRun) -> None:
    """Reduce: write the sums of the sorted counts, and the failures to a file in the job's output directory, a URL."""
    failures = Path(f"{FAILURES}{run.number:05d}")
    with reporting(run):
        run.output.writelines(map(text_of, sum_counts(_without_failures(run.lines(), failures))))
        run.output.flush()
    if failures.exists():
        Destination(output).put([failures.name])


def _without_failures(lists: Iterable[list[bytes]], path: Path) -> Iterator[list[bytes]]:
    """Lists without the lines of failures, which come first, because their keys are empty."""
    for lines in lists:
        found = [line[1:] + b"\n" for line in lines if line.startswith(b"\t")]
        if found:
            with path.open("ab") as file:
                file.writelines(found)
            lines = [line for line in lines if not line.startswith(b"\t")]
        yield lines


class _Report:
    """Reports to Hadoop that bytes were read, at most every 30 seconds. If none are read, Hadoop ends the task."""

    def __init__(self, run: TaskRun) -> None:
        self._run, self._reported, self._next = run, 0, time.monotonic() + _REPORT_INTERVAL

    def __call__(self) -> None:
        now, done = time.monotonic(), bytes_done()
        if now >= self._next and done > self._reported:
            self._reported, self._next = done, now + _REPORT_INTERVAL
            self._run.show(f"{done >> 20} MiB read")


@contextmanager
def _scratch(run: TaskRun) -> Iterator[Path]:
    """A directory for temporary files of the task."""
    with tempfile.TemporaryDirectory(prefix="cdxmill-", dir=run.directory) as directory:
        yield Path(directory)


@contextmanager
def reporting(run: TaskRun) -> Iterator[Path]:
    """A directory for temporary files of the task. Meanwhile, a thread reports to Hadoop that bytes were read."""
    stop, report = threading.Event(), _Report(run)

    def keep_reporting() -> None:
        while not stop.wait(1.0):
            report()

    thread = threading.Thread(target=keep_reporting, daemon=True)
    thread.start()
    try:
        with _scratch(run) as directory:
            yield directory
    finally:
        stop.set()
        thread.join()
