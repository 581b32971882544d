"""The base class of the jobs. Their tasks read and write streams of bytes, not mrjob's key-value pairs.

A mapper's standard input is a work list: one JSON object per line (docs/engines.md says why). The tasks are those of
jobs/nodes. mrjob's inline and local runners call them; on Hadoop and EMR they are commands, and mrjob only
submits them (see `hadoop_step`).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from io import BytesIO
from pathlib import Path
from typing import ClassVar

from cdxmill.errors import UsageError
from cdxmill.jobs.launcher.hadoop_files import use_storage
from cdxmill.jobs.launcher.hadoop_step import (
    KEYS,
    RUNNERS,
    HadoopStep,
    WorkList,
    add_files,
    check_engine,
    keys_file,
    libraries_of,
    runner_arguments,
)
from cdxmill.jobs.launcher.hadoop_urls import hadoop_url
from cdxmill.jobs.launcher.mrjob_import import MRJob, MRStep
from cdxmill.jobs.launcher.mrjob_types import RunnerArguments, RunnerLike
from cdxmill.jobs.launcher.node_archive import pack_archive
from cdxmill.jobs.launcher.old_settings import check_conf
from cdxmill.jobs.launcher.run_job import run
from cdxmill.jobs.nodes.task_context import TaskRun


def _hadoop_places(runner: RunnerLike) -> RunnerArguments:
    """mrjob's temporary directory in HDFS: that of HADOOP_USER_NAME, and removed after a failure, too."""
    if runner.alias != "hadoop":
        return {}
    places: RunnerArguments = {"hadoop_tmp_dir": hadoop_url(str(runner._opts["hadoop_tmp_dir"]))}
    if list(runner._opts["cleanup_on_failure"]) == ["NONE"]:
        places["cleanup_on_failure"] = ["HADOOP_TMP", "LOCAL_TMP"]
    return places


class StreamJob(MRJob):  # type: ignore[misc]  # mrjob has no types
    """A job of one step, with `run_mapper` and `run_reducer` as its tasks."""

    arguments: ClassVar[str]
    """Required options and arguments, for --help."""

    description: ClassVar[str]
    """What the job does, for --help."""

    def configure_args(self) -> None:
        """Add the options that every job has."""
        super().configure_args()
        self.add_passthru_arg("--launched-from", help=argparse.SUPPRESS)

    def _usage(self) -> str:
        return f"%(prog)s [options] {self.arguments}\n\n{self.description}"

    def steps(self) -> list[MRStep]:
        """The tasks of the step; mrjob calls run_mapper and run_reducer."""
        return [MRStep(mapper=self.run_mapper, reducer=self.run_reducer)]

    def list_work(self) -> WorkList:
        """The work list of the mappers. Raises UsageError."""
        raise NotImplementedError

    def finish(self, runner: RunnerLike) -> int:
        """Do the launcher's work after all tasks. Returns the number of inputs that failed."""
        raise NotImplementedError

    def show(self, output: bytes) -> None:
        """Print the job's output, unless --no-cat-output says otherwise."""
        if self._should_cat_output():
            self.stdout.write(output)
            self.stdout.flush()

    def run_job(self) -> None:
        """Run the whole job. Exits with the same statuses as `cdxmill`."""
        self.set_up_logging(quiet=self.options.quiet, verbose=self.options.verbose)
        run(self)

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """The step for Hadoop; `directory` is for files of the launcher. Raises UsageError."""
        raise NotImplementedError

    @property
    def is_on_hadoop(self) -> bool:
        """Whether the job runs on Hadoop or EMR."""
        return self.options.runner in RUNNERS

    def check(self) -> None:
        """Raise UsageError if the job cannot run with its options."""
        if self.options.runner not in (None, "inline", "local", *RUNNERS):
            raise UsageError(f"unsupported runner {self.options.runner}; use -r local, inline, hadoop or emr")
        if not self.options.args:
            raise UsageError("no input; give at least one path or URL")
        check_conf(self.options.runner or "inline", self.options.conf_paths)

    def make_runner(self) -> RunnerLike:
        """mrjob's runner for this job. Raises UsageError."""
        self.check()
        return self._hadoop_runner() if self.is_on_hadoop else self.local_runner(self.list_work())

    def run_locally(self) -> int:
        """Run the job under a local runner of mrjob. Returns the number of inputs that failed. Raises UsageError."""
        with self.make_runner() as runner:
            runner.run()
            return self.finish(runner)

    def local_runner(self, work: WorkList, *options: str, **arguments: object) -> RunnerLike:
        """A local runner of mrjob for a work list; the tasks get the `options`, the runner the `arguments`, too."""
        items = [json.dumps(item).encode() for item in work]
        width = max(map(len, items), default=0)
        data = b"".join(item.ljust(width) + b"\n" for item in items)  # mrjob splits its input by bytes
        own = self._runner_kwargs()
        extra = [*own["extra_args"], "--launched-from", str(Path.cwd()), *options]
        # without bootstrap_mrjob mrjob starts no shell, which would outlive a task that is killed
        given = {"input_paths": ["-"], "stdin": BytesIO(data), "extra_args": extra, "bootstrap_mrjob": False}
        return self._make({**own, **given, **arguments})

    def _hadoop_runner(self) -> RunnerLike:
        """Make two runners: the first one reads the settings that the step of the second one depends on."""
        arguments = self._runner_kwargs()
        first = self._make({**arguments, "input_paths": ["-"]})
        check_engine(first)
        use_storage(first)
        self._directory = tempfile.TemporaryDirectory(prefix="cdxmill-")  # removed with the job
        step = self.hadoop_step(first, Path(self._directory.name))
        keys = (
            keys_file(f"{vars(self.options)} {step}", Path(self._directory.name))
            if first.alias == "hadoop"
            else None
        )
        if keys is not None:
            step = step._replace(files={**step.files, KEYS: keys})
        archive = pack_archive(Path(self._directory.name), libraries_of(step))
        arguments = {**arguments, **_hadoop_places(first)}
        runner = self._make(runner_arguments(step, first._python_bin(), archive, arguments))
        use_storage(runner)
        add_files(runner, step, Path(self._directory.name))
        return runner

    def _make(self, arguments: RunnerArguments) -> RunnerLike:
        runner: RunnerLike = self._runner_class()(**arguments)
        return runner

    def mapper_run(self, scratch: str | None = None) -> TaskRun:
        """What a mapper is given. Its temporary files are in `scratch`, or else in its own working directory.

        Changes to the launcher's working directory, so that relative paths mean the same as there.
        """
        own = Path.cwd()
        os.chdir(self.options.launched_from)
        return TaskRun(self.stdin, self.stdout, self.stderr, Path(scratch or own))

    def reducer_run(self) -> TaskRun:
        """What a reducer is given. It stays in its own working directory, as on Hadoop."""
        return TaskRun(self.stdin, self.stdout, self.stderr, Path())
