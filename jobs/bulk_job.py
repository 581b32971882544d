"""What the jobs share: tasks that work on whole streams of bytes, and what they are given to work on.

Under mrjob's inline and local runners the tasks share the launcher's files, and their
standard input is a list of work, a JSON array a line (docs/jobs.md says why). Without
`--launched-from` it is what Hadoop gives: lines.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from mrjob.job import MRJob
from mrjob.step import MRStep

from cdxmill.errors import UsageError
from cdxmill.jobs.launch import run
from cdxmill.stages.read_lines import split_lines
from cdxmill.storage.local import stopping
from cdxmill.storage.scratch import Scratch

_PIECE = 1 << 20


class BulkJob(MRJob):  # type: ignore[misc]  # mrjob has no types
    """A job of one step; run_mapper and run_reducer are its two kinds of tasks."""

    def configure_args(self) -> None:
        """Add the options that every job has."""
        super().configure_args()
        self.add_passthru_arg("--launched-from", help=argparse.SUPPRESS)

    def steps(self) -> list[MRStep]:
        """Which kinds of tasks there are; mrjob calls run_mapper and run_reducer itself."""
        return [MRStep(mapper=self.run_mapper, reducer=self.run_reducer)]

    def list_work(self) -> Iterable[list[Any]]:
        """What the mappers shall do, in items that JSON can hold. Raises UsageError."""
        raise NotImplementedError

    def finish(self, output: bytes) -> None:
        """What the launcher does once all tasks are done; `output` is that of the reducers."""

    def run_job(self) -> None:
        """Run the whole job; exits with the statuses of `cdxmill`."""
        self.set_up_logging(quiet=self.options.quiet, verbose=self.options.verbose)
        run(self)

    def make_runner(self) -> Any:
        """mrjob's runner for this job. Raises UsageError."""
        if self.options.runner not in (None, "inline", "local"):
            raise UsageError(f"this job runs with -r local or -r inline, not with -r {self.options.runner}")
        if not self.options.args:
            raise UsageError("no input is named")
        work = [json.dumps(item).encode() for item in self.list_work()]
        width = max(map(len, work), default=0)
        self._work = b"".join(item.ljust(width) + b"\n" for item in work)  # mrjob deals lines out by bytes
        return super().make_runner()

    def _runner_kwargs(self) -> dict[str, Any]:
        kwargs: dict[str, Any] = super()._runner_kwargs()
        extra = [*kwargs["extra_args"], "--launched-from", str(Path.cwd())]
        given = {"input_paths": ["-"], "stdin": BytesIO(self._work), "extra_args": extra}
        return {**kwargs, **given, "bootstrap_mrjob": False}  # its shell would outlive a task that is killed

    def work(self) -> Iterator[list[Any]] | None:
        """The work on a task's standard input; None where that holds lines."""
        return map(json.loads, self.stdin) if self.options.launched_from is not None else None

    def lines(self) -> Iterator[list[bytes]]:
        """The lines on a task's standard input, in lists."""
        return split_lines(iter(partial(self.stdin.read, _PIECE), b""))

    @contextmanager
    def scratch(self, parent: str | None = None) -> Iterator[Scratch]:
        """Scratch space of this task. Relative paths are the launcher's from here on."""
        own = Path.cwd()
        if self.options.launched_from is not None:
            os.chdir(self.options.launched_from)
        place = Path(parent or own)
        with stopping(place):
            made = tempfile.TemporaryDirectory(prefix=".scratch-", dir=place)
        with made as folder:
            yield Scratch(Path(folder))
