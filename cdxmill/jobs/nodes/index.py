"""The task of the index job: index archives, each to its own CDX file.

A Hadoop node needs the libraries that cdxmill depends on (see bootstrap.sh, or name a Python that
has them with --python-bin). cdxmill itself is sent with the job.
"""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.commands.per_archive.index import IndexedArchive, IndexOptions, IndexTask, index_one
from cdxmill.inputs.named import Input
from cdxmill.jobs.nodes.task_context import TaskRun, format_failure, parse_failure
from cdxmill.running.failures import SHOWN, Failure, kind_of
from cdxmill.running.processes import bytes_done
from cdxmill.storage.location import Location

_REPORT_INTERVAL = 30.0
"""Seconds between two status reports. By default Hadoop kills a task that is silent for ten minutes."""
_NOTE = b"note\t"
"""Begins a note in the output of a task. A failure begins with a path, which has no tab."""


class ArchiveWork(NamedTuple):
    """One item of the job's work list: an archive, and the path or URL of its CDX file.

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


def parse_output(output: bytes) -> tuple[list[Failure], list[Failure]]:
    """The failures in the output of all tasks, and the notes."""
    lines = output.splitlines()
    notes = [parse_failure(line[len(_NOTE) :]) for line in lines if line.startswith(_NOTE)]
    return [parse_failure(line) for line in lines if not line.startswith(_NOTE)], notes


def index_archives(run: TaskRun) -> None:
    """Map: index the archives on the work list, one `ArchiveWork` per line. Write their failures and notes."""
    with tempfile.TemporaryDirectory(prefix="cdxmill-", dir=run.directory) as directory, status_reports(run):
        for number, work in enumerate(map(ArchiveWork.from_item, run.work())):
            record = None if work.directory is None else Path(work.directory)
            scratch, settings = Path(directory) / str(number), IndexOptions().settings()
            task = IndexTask(work.archive, Location(work.output), record, scratch, settings)
            _report(task.archive.path, index_one(task), run)


def _report(path: str, result: IndexedArchive, run: TaskRun) -> None:
    failures, notes = result.failures, result.notes
    run.output.writelines(map(format_failure, failures))
    kinds: Counter[str] = Counter()
    for note in notes:
        kinds[kind_of(note.reason)] += 1
        if kinds[kind_of(note.reason)] <= SHOWN:  # the launcher prints no more of them
            run.output.write(_NOTE + format_failure(Failure(f"{path}@{note.offset}", None, note.reason)))
    run.add(
        archives=1,
        captures=result.captures,
        archive_bytes=result.size,
        failures=len(failures),
        failed_archives=bool(failures),
        notes=len(notes),
    )


@contextmanager
def status_reports(run: TaskRun) -> Iterator[None]:
    """Report to Hadoop that bytes were read. If none are read there is no report, and Hadoop ends the task."""
    stop = threading.Event()

    def report() -> None:
        reported = 0
        while not stop.wait(_REPORT_INTERVAL):
            if (done := bytes_done()) > reported:
                reported = done
                run.show(f"{done >> 20} MiB read")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
