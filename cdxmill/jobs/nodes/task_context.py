"""What a task is given by its engine, which is Hadoop or one of mrjob's local runners, and what it tells it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from cdxmill.regex import regex
from cdxmill.running.failures import Failure, stop_at_outage
from cdxmill.stages.lines.line_lists import split_lines

_READ_SIZE = 1 << 20
_OUTAGE = "outage"
"""The mark of a failure of a machine."""
_OFFSET = regex(r"at (\d+): ")


@dataclass(frozen=True)
class TaskRun:
    """The streams of a task, and the directory for its temporary files. The engine reads counters from `reports`."""

    input: IO[bytes]
    output: IO[bytes]
    reports: IO[bytes]
    directory: Path

    @property
    def number(self) -> int:
        """The number of the task among the mappers, or among the reducers."""
        return int(os.environ["mapreduce_task_partition"])  # noqa: SIM112 - Hadoop's spelling; mrjob has it, too

    @property
    def mappers(self) -> int:
        """The number of mappers; 1 if the engine does not say it."""
        return int(os.environ.get("mapreduce_job_maps", 1))  # noqa: SIM112

    @property
    def is_tried_again(self) -> bool:
        """Whether the engine starts a mapper again that fails now. Local runners do not."""
        tries = int(os.environ.get("mapreduce_map_maxattempts", 1))  # noqa: SIM112
        attempt = os.environ.get("mapreduce_task_attempt_id", "").rpartition("_")[2]  # noqa: SIM112
        return attempt.isdecimal() and int(attempt) + 1 < tries

    def check_reached(self, failures: Sequence[Failure]) -> None:
        """Raise StoppedError if a machine was at fault for one of them, and another attempt, elsewhere, may succeed."""
        if self.is_tried_again:
            stop_at_outage(failures)

    def work(self) -> Iterator[Any]:
        """The items of the job's work list that this mapper does: one JSON object per line."""
        return map(json.loads, self.input)

    def lines(self) -> Iterator[list[bytes]]:
        """The lines that the shuffle sends to this reducer, in lists."""
        return split_lines(iter(partial(self.input.read, _READ_SIZE), b""))

    def add(self, **counts: int) -> None:
        """Add to the job's counters. A name has `_` for each space."""
        for name, number in counts.items():
            self._report(f"counter:cdxmill,{name.replace('_', ' ')},{int(number)}")

    def show(self, status: str) -> None:
        """Show what the task does. Hadoop ends a task that is silent for ten minutes."""
        self._report(f"status:{status}")

    def _report(self, text: str) -> None:
        self.reports.write(f"reporter:{text}\n".encode("utf-8", "surrogateescape"))
        self.reports.flush()


def format_failure(failure: Failure) -> bytes:
    """`<path> TAB [at <offset>: ]<reason>[ TAB <hint>[ TAB outage]]`, the line of a failure in the output of a task.

    >>> format_failure(Failure("a.warc.gz", 17, "gzip CRC32 mismatch", "fetch the file again"))
    b'a.warc.gz\\tat 17: gzip CRC32 mismatch\\tfetch the file again\\n'
    """
    where = "" if failure.offset is None else f"at {failure.offset}: "
    more = (failure.hint, _OUTAGE) if failure.is_outage else (failure.hint,) if failure.hint else ()
    fields = failure.path, where + failure.reason, *more
    return "\t".join(map(_escape, fields)).encode("utf-8", "surrogateescape") + b"\n"


def parse_failure(line: bytes) -> Failure:
    """Parse what `format_failure` has written."""
    fields = line.rstrip(b"\n").decode("utf-8", "surrogateescape").split("\t", 3)
    path, reason, hint, mark = (*fields, "", "")[:4]
    found = _OFFSET.match(reason)
    failure = Failure(path, None, reason, hint, mark == _OUTAGE)
    if found is None:
        return failure
    return failure._replace(offset=int(found[1]), reason=reason[found.end() :])


Read = Callable[[Sequence[str]], Generator[tuple[str, Iterator[Any]]]]
"""Opens files: the path of each and its text in pieces. Reading these raises InputError."""


def _escape(text: str) -> str:
    return text.replace("\t", "%09").replace("\r", "%0D").replace("\n", "%0A")
