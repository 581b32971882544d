"""Map task of the index job on a Hadoop node: index archives, each to its own CDX file.

The node needs the libraries that cdxmill depends on (see bootstrap.sh, or name a Python that
has them with --python-bin). cdxmill itself is sent with the job.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.per_archive.index_one import IndexedArchive, IndexOptions, IndexTask, index_one
from cdxmill.inputs.named import Input
from cdxmill.running.failures import SHOWN, Failure, kind_of
from cdxmill.running.processes import bytes_done
from cdxmill.storage.location import Location

_REPORT_INTERVAL = 30.0
"""Seconds between two status reports. By default Hadoop kills a task that is silent for ten minutes."""


_NOTE = b"note\t"
"""Begins a note in the output of a task. A failure begins with a path, which has no tab."""


class ArchiveWork(NamedTuple):
    """One item of the job's work list: an archive, and the path or URL of its CDX file."""

    archive: Input
    output: str

    def to_json(self) -> str:
        """One line of the work list, without line end."""
        return json.dumps({"archive": self.archive.to_fields(), "output": self.output})

    @classmethod
    def from_json(cls, line: bytes) -> ArchiveWork:
        """Parse what `to_json` has written."""
        fields = json.loads(line)
        return cls(Input.of_fields(fields["archive"]), fields["output"])


def format_failure(failure: Failure) -> bytes:
    """`<path> TAB [at <offset>: ]<reason>`, a line of the job's output."""
    where = "" if failure.offset is None else f"at {failure.offset}: "
    line = "\t".join(map(_escape, (failure.path, where + failure.reason)))
    return line.encode("utf-8", "surrogateescape") + b"\n"


def split_notes(output: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    """The failures in the output of all tasks; and the notes, each with where it is and what it says."""
    lines = output.splitlines(keepends=True)
    failures = b"".join(line for line in lines if not line.startswith(_NOTE))
    notes = (line.decode("utf-8", "surrogateescape") for line in lines if line.startswith(_NOTE))
    parts = (note.rstrip("\n").split("\t", 2) for note in notes)
    return failures, [(where, reason) for _, where, reason in parts]


def _escape(text: str) -> str:
    return text.replace("\t", "%09").replace("\r", "%0D").replace("\n", "%0A")


def index_archives(arguments: list[str]) -> None:
    """Index the archives that standard input lists, one `ArchiveWork` per line."""
    parser = argparse.ArgumentParser(prog="hadoop_task.py index")
    parser.add_argument("--scratch")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="cdxmill-", dir=options.scratch or ".") as folder,
        status_reports(),
    ):
        for number, line in enumerate(sys.stdin.buffer):
            work = ArchiveWork.from_json(line)
            task = _task(work, Path(folder) / str(number))
            _report(task.archive.path, index_one(task))


def _task(work: ArchiveWork, scratch: Path) -> IndexTask:
    return IndexTask(work.archive, Location(work.output), None, scratch, IndexOptions().settings())


def _report(path: str, result: IndexedArchive) -> None:
    """Print the failures of an archive, and add to Hadoop's counters."""
    failures = result.failures
    for failure in failures:
        sys.stdout.buffer.write(format_failure(failure))
    counts = {"archives": 1, "captures": result.captures, "archive bytes": result.size}
    notes = result.notes
    kinds: Counter[str] = Counter()
    for note in notes:
        kinds[kind_of(note.reason)] += 1
        if kinds[kind_of(note.reason)] <= SHOWN:  # the launcher prints no more of them
            sys.stdout.buffer.write(
                _NOTE + format_failure(Failure(f"{path}@{note.offset}", None, note.reason))
            )
    totals = {**counts, "failures": len(failures), "failed archives": bool(failures), "notes": len(notes)}
    for name, count in totals.items():
        sys.stderr.write(f"reporter:counter:cdxmill,{name},{int(count)}\n")
    sys.stderr.flush()


@contextmanager
def status_reports() -> Iterator[None]:
    """Report to Hadoop that bytes were read. If none are read there is no report, and Hadoop ends the task."""
    stop = threading.Event()

    def report() -> None:
        reported = 0
        while not stop.wait(_REPORT_INTERVAL):
            if (done := bytes_done()) > reported:
                reported = done
                sys.stderr.write(f"reporter:status:{done >> 20} MiB read\n")
                sys.stderr.flush()

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
