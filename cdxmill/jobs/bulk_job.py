"""What the jobs share: tasks that work on whole streams of bytes, and what they are given to work on.

Under mrjob's inline and local runners the tasks share the launcher's files, and their
standard input is a list of work, one line of JSON per item (docs/jobs.md says why). On Hadoop
and EMR the tasks are commands, and mrjob only launches (jobs/on_hadoop.py).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from mrjob.job import MRJob
from mrjob.step import MRStep

from cdxmill.errors import UsageError
from cdxmill.jobs.launch import run
from cdxmill.jobs.node_archive import pack_archive
from cdxmill.jobs.node_tasks import lines_of
from cdxmill.jobs.on_hadoop import (
    RUNNERS,
    HadoopStep,
    check_engine,
    complete_settings,
    needs_wheels,
    step_kwargs,
)
from cdxmill.storage.local import stopping
from cdxmill.storage.scratch import Scratch


class BulkJob(MRJob):  # type: ignore[misc]  # mrjob has no types
    """A job of one step; run_mapper and run_reducer are its two kinds of tasks."""

    def configure_args(self) -> None:
        """Add the options that every job has."""
        super().configure_args()
        self.add_passthru_arg("--launched-from", help=argparse.SUPPRESS)

    def steps(self) -> list[MRStep]:
        """Which kinds of tasks there are; mrjob calls run_mapper and run_reducer itself."""
        return [MRStep(mapper=self.run_mapper, reducer=self.run_reducer)]

    def list_work(self) -> Iterable[Any]:
        """What the mappers shall do, in items that JSON can hold. Raises UsageError."""
        raise NotImplementedError

    def finish(self, output: bytes) -> bytes:
        """What the launcher does once all tasks are done; `output` is theirs, what is given back is shown."""
        return output

    def show(self, output: bytes) -> None:
        """Print the job's output, unless that is not wanted."""
        if self._should_cat_output():
            self.stdout.write(output)
            self.stdout.flush()

    def run_job(self) -> None:
        """Run the whole job; exits with the statuses of `cdxmill`."""
        self.set_up_logging(quiet=self.options.quiet, verbose=self.options.verbose)
        run(self)

    def hadoop_step(self, runner: Any, folder: Path) -> HadoopStep:
        """What Hadoop shall do; `folder` is for the launcher's files. Raises UsageError."""
        raise NotImplementedError

    def finish_hadoop(self, runner: Any) -> int:
        """What the launcher does once the step is done on Hadoop; how many inputs failed."""
        raise NotImplementedError

    @property
    def is_on_hadoop(self) -> bool:
        """Whether the job was told to run on Hadoop or EMR."""
        return self.options.runner in RUNNERS

    def make_runner(self) -> Any:
        """mrjob's runner for this job. Raises UsageError."""
        if self.options.runner not in (None, "inline", "local", *RUNNERS):
            raise UsageError(f"this job runs with -r local, inline, hadoop or emr, not {self.options.runner}")
        if not self.options.args:
            raise UsageError("no input is named")
        return self._hadoop_runner() if self.is_on_hadoop else self._local_runner()

    def _local_runner(self) -> Any:
        work = [json.dumps(item).encode() for item in self.list_work()]
        width = max(map(len, work), default=0)
        data = b"".join(item.ljust(width) + b"\n" for item in work)  # mrjob deals lines out by bytes
        kwargs = self._runner_kwargs()
        extra = [*kwargs["extra_args"], "--launched-from", str(Path.cwd())]
        given = {"input_paths": ["-"], "stdin": BytesIO(data), "extra_args": extra}
        kwargs.update(given, bootstrap_mrjob=False)  # its shell would outlive a task that is killed
        return self._runner_class()(**kwargs)

    def _hadoop_runner(self) -> Any:
        """Of two runners the first has read the settings that the step depends on."""
        kwargs = self._runner_kwargs()
        first = self._runner_class()(**{**kwargs, "input_paths": ["-"]})
        check_engine(first)
        self._folder = tempfile.TemporaryDirectory(prefix="cdxmill-")  # goes when the job does
        step = self.hadoop_step(first, Path(self._folder.name))
        archive = pack_archive(Path(self._folder.name), needs_wheels(step))
        runner = self._runner_class()(**step_kwargs(step, first._python_bin(), archive, kwargs))
        complete_settings(runner, step)
        return runner

    def work(self) -> Iterator[Any]:
        """The work on a task's standard input."""
        return map(json.loads, self.stdin)

    def lines(self) -> Iterator[list[bytes]]:
        """The lines on a task's standard input, in lists."""
        lines: Iterator[list[bytes]] = lines_of(self.stdin)
        return lines

    @contextmanager
    def scratch(self, parent: str | None = None) -> Iterator[Scratch]:
        """Scratch space of this task. Relative paths are the launcher's from here on."""
        own = Path.cwd()
        os.chdir(self.options.launched_from)
        place = Path(parent or own)
        with stopping(place):
            made = tempfile.TemporaryDirectory(prefix=".scratch-", dir=place)
        with made as folder:
            yield Scratch(Path(folder))
