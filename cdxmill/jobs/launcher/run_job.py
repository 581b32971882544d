"""Run a job as a command: print its messages, and exit with the same statuses as `cdxmill`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdxmill.errors import FAILED, INTERRUPTED, OK, STOPPED, CdxmillError
from cdxmill.jobs.launcher.hadoop_failure import Complaints, WrongPythonError, explain
from cdxmill.jobs.launcher.mrjob_import import StepFailedException
from cdxmill.jobs.launcher.mrjob_types import JobLike, RunnerLike
from cdxmill.messages import say
from cdxmill.running.start_script import exit_on_signals, fail

_COMMAND = re.compile(r"Command '?\[.*\]'?", re.S)
"""A failed command in a message of mrjob. Its arguments may contain keys, so it is not printed."""


def run(job: JobLike) -> None:
    """Run the job as a command. Exits unless the status is 0."""
    exit_on_signals()
    status = launch(job)
    if status:
        sys.exit(status)


def launch(job: JobLike) -> int:
    """Run the job, print its output and its failures. Returns the exit status."""
    runner: RunnerLike | None = None
    complaints = Complaints()
    try:
        if not job.is_on_hadoop:
            return FAILED if job.run_locally() else OK
        runner = job.make_runner()
        with runner:
            with _ending_its_application(runner, complaints):
                runner.run()
            return FAILED if job.finish(runner) else OK
    except CdxmillError as error:
        return _fail(error, error.status)
    except (StepFailedException, WrongPythonError, OSError, subprocess.CalledProcessError) as error:
        return _fail(explain(error, runner, complaints) if job.is_on_hadoop else error, STOPPED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:  # of mrjob and its libraries; none of them means that inputs failed
        return _fail(f"{type(error).__name__}: {error}", STOPPED)


@contextmanager
def _ending_its_application(runner: RunnerLike, complaints: Complaints) -> Iterator[None]:
    """If the job is interrupted, end what it has started on Hadoop. It would go on, and write its output later."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, WrongPythonError):
        if runner.alias == "hadoop" and complaints.application:
            _kill(runner, complaints.application)
        raise


def _kill(runner: RunnerLike, application: str) -> None:
    hadoop = Path(shutil.which(runner.get_hadoop_bin()[0]) or runner.get_hadoop_bin()[0])
    beside = hadoop.with_name("yarn")
    command = [str(beside) if beside.exists() else "yarn", "application", "-kill", application]
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


def _fail(reason: object, status: int) -> int:
    return fail(_COMMAND.sub("the command", str(reason)), status)
