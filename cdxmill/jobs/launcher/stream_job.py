"""The base class of the jobs. Their tasks read and write streams of bytes, not mrjob's key-value pairs.

A mapper's standard input is a work list: one JSON object per line (docs/design.md says why). The tasks are those of
jobs/nodes. mrjob's inline and local runners call them; on Hadoop and EMR they are commands, and mrjob only
submits them (see `hadoop_step`). A job ends with a message and the exit statuses of `cdxmill`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from cdxmill.errors import INTERRUPTED, STOPPED, CdxmillError, StoppedError, UsageError
from cdxmill.jobs.launcher.earlier_runs import own_temporary_directory, tag_application, yarn_command
from cdxmill.jobs.launcher.hadoop_directory import hadoop_url, use_storage
from cdxmill.jobs.launcher.hadoop_failure import Complaints, WrongPythonError, explain
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
from cdxmill.jobs.launcher.mrjob_parts import (
    MRJob,
    MRStep,
    RunnerArguments,
    RunnerLike,
    StepFailedException,
    arguments_of,
    prints_output,
    python_of,
    runner_class_of,
    value_of,
)
from cdxmill.jobs.launcher.node_archive import pack_archive
from cdxmill.jobs.launcher.old_settings import check_conf
from cdxmill.jobs.nodes.task_context import TaskRun
from cdxmill.messages import fail, say
from cdxmill.options.option import Options
from cdxmill.options.table import add_options, read_options
from cdxmill.regex import regex
from cdxmill.running.processes import exit_on_signals

_Asked = TypeVar("_Asked", bound=Options)

_COMMAND = regex(r"Command '?\[.*\]'?", re.S)
"""A failed command in a message of mrjob. Its arguments may contain keys, so it is not printed."""


class StreamJob(MRJob, Generic[_Asked]):  # type: ignore[misc]  # mrjob has no types
    """A job of one step, with `run_mapper` and `run_reducer` as its tasks, and the options of a dataclass."""

    kind: type[_Asked]
    """The dataclass."""

    arguments: ClassVar[str]
    """Required options and arguments, for --help."""

    description: ClassVar[str]
    """What the job does, for --help."""

    runner: RunnerLike | None = None
    """The runner that was made last."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        self.add_passthru_arg("--launched-from", help=argparse.SUPPRESS)
        add_options(self.kind, self.add_passthru_arg)

    @cached_property
    def own_options(self) -> _Asked:
        """The parsed options, without those of mrjob. Raises UsageError."""
        return read_options(self.kind, self.options)

    def _usage(self) -> str:
        return f"%(prog)s [options] {self.arguments}\n\n{self.description}"

    def steps(self) -> list[MRStep]:
        """The tasks of the step; mrjob calls run_mapper and run_reducer."""
        return [MRStep(mapper=self.run_mapper, reducer=self.run_reducer)]

    def list_work(self) -> WorkList:
        """The work list of the mappers. Raises UsageError."""
        raise NotImplementedError

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """The step for Hadoop; `directory` is for files of the launcher. Raises UsageError."""
        raise NotImplementedError

    def finish(self, runner: RunnerLike) -> int:
        """Do the launcher's work after all tasks. Returns the exit status."""
        raise NotImplementedError

    def show(self, output: bytes) -> None:
        """Print the job's output, unless --no-cat-output says otherwise."""
        if prints_output(self):
            self.stdout.write(output)
            self.stdout.flush()

    def tell(self, text: str) -> None:
        """Print a line to stderr, unless --quiet says otherwise."""
        if not self.options.quiet:
            say(text)

    def run_job(self) -> None:
        """Run the whole job. Exits with the same statuses as `cdxmill`."""
        self.set_up_logging(quiet=self.options.quiet, verbose=self.options.verbose)
        exit_on_signals()
        if status := launch(self):
            sys.exit(status)

    @cached_property
    def held(self) -> ExitStack:
        """What is held until the job ends: its output directory."""
        return ExitStack()

    @cached_property
    def _held_by_run(self) -> ExitStack:
        """What is held while a runner runs."""
        return ExitStack()

    @cached_property
    def complaints(self) -> Complaints:
        """What mrjob says of the steps that have run."""
        return Complaints()

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

    def run_all(self) -> int:
        """Run the job and do the launcher's work. Returns the exit status. Raises UsageError."""
        with self.ran() as runner:
            return self.finish(runner)

    @contextmanager
    def ran(self) -> Iterator[RunnerLike]:
        """A runner that has run the job. Its files exist until the block ends. Raises UsageError."""
        with self._held_by_run:  # each runner has a temporary directory, which it deletes
            self.runner = runner = self.make_runner()
            with runner:
                with _ending_its_application(runner, self.complaints):
                    runner.run()
                yield runner

    def local_runner(self, work: WorkList, *options: str, **arguments: object) -> RunnerLike:
        """A local runner of mrjob for a work list; the tasks get the `options`, the runner the `arguments`, too."""
        items = [json.dumps(item).encode() for item in work]
        width = max(map(len, items), default=0)
        data = b"".join(item.ljust(width) + b"\n" for item in items)  # mrjob splits its input by bytes
        own = arguments_of(self)
        extra = [*own["extra_args"], "--launched-from", str(Path.cwd()), *options]
        # without bootstrap_mrjob mrjob starts no shell, which would outlive a task that is killed
        given = {"input_paths": ["-"], "stdin": BytesIO(data), "extra_args": extra, "bootstrap_mrjob": False}
        return self._make({**own, **given, **arguments})

    def _hadoop_runner(self) -> RunnerLike:
        """Make two runners: the first one reads the settings that the step of the second one depends on."""
        arguments = arguments_of(self)
        first = self.first_runner()
        check_engine(first)
        use_storage(first)
        directory = Path(self._held_by_run.enter_context(tempfile.TemporaryDirectory(prefix="cdxmill-")))
        step = self.hadoop_step(first, directory)
        keys = None if first.alias == "emr" else keys_file(f"{vars(self.options)} {step}", directory)
        if keys is not None:
            step = step._replace(files={**step.files, KEYS: keys})
        archive = pack_archive(directory, libraries_of(step))
        arguments = {**arguments, **_hadoop_places(first)}
        runner = self._make(runner_arguments(step, python_of(first), archive, arguments))
        use_storage(runner)
        add_files(runner, step, directory)
        tag_application(runner)
        if runner.alias == "hadoop":
            own_temporary_directory(runner, self._held_by_run)
        return runner

    def first_runner(self) -> RunnerLike:
        """A runner that only knows the settings."""
        return self._make({**arguments_of(self), "input_paths": ["-"]})

    def _make(self, arguments: RunnerArguments) -> RunnerLike:
        runner: RunnerLike = runner_class_of(self)(**arguments)
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


def launch(job: StreamJob[Any]) -> int:
    """Run the job, print its output and its failures. Returns the exit status."""
    complaints = job.complaints
    try:
        with job.held:
            return job.run_all()
    except CdxmillError as error:
        return _fail(error, error.status)
    except (StepFailedException, WrongPythonError, OSError, subprocess.CalledProcessError) as error:
        return _fail(explain(error, job.runner, complaints) if job.is_on_hadoop else error, STOPPED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:  # of mrjob and its libraries; none of them means that inputs failed
        return _fail(f"{type(error).__name__}: {error}", STOPPED)


def _fail(reason: object, status: int) -> int:
    return fail(_COMMAND.sub("the command", str(reason)), status)


def _hadoop_places(runner: RunnerLike) -> RunnerArguments:
    """mrjob's temporary directory in HDFS: that of HADOOP_USER_NAME, and removed after a failure, too."""
    if runner.alias != "hadoop":
        return {}
    places: RunnerArguments = {"hadoop_tmp_dir": hadoop_url(str(value_of(runner, "hadoop_tmp_dir")))}
    if list(value_of(runner, "cleanup_on_failure")) == ["NONE"]:
        places["cleanup_on_failure"] = ["HADOOP_TMP", "LOCAL_TMP"]
    return places


@contextmanager
def _ending_its_application(runner: RunnerLike, complaints: Complaints) -> Iterator[None]:
    """If the job is interrupted, end what it has started on Hadoop. It would go on, and write its output later."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, WrongPythonError, StoppedError):
        if runner.alias == "hadoop" and complaints.application:
            _kill(runner, complaints.application)
        raise


def _kill(runner: RunnerLike, application: str) -> None:
    command = [yarn_command(runner), "application", "-kill", application]
    say(f"ending {application}")
    try:
        # its own session, so that a second Ctrl-C does not end it
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True
        )
        failed = done.returncode != 0
    except OSError:
        failed = True
    if failed:
        say(
            f"{application} could not be ended; use `yarn application -kill {application}` before you run the job again"
        )
