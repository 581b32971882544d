"""The parts of mrjob 0.7.4 that the jobs use, with types, which it has not. No other module uses a private name of mrjob.

`tests/jobs/test_mrjob_parts.py` says what each is needed for. If mrjob changes, or somebody takes it over, change this file.
Where mrjob is not installed, importing this module ends the program in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol

from cdxmill.messages import say
from cdxmill.version import install_extra

__all__ = [
    "LogInterpretation",
    "MRJob",
    "MRStep",
    "OwnFilesystem",
    "RunnerArguments",
    "RunnerLike",
    "StepFailedException",
    "arguments_of",
    "found_in_logs",
    "interpret_task_logs",
    "load_opts_from_mrjob_confs",
    "prints_output",
    "python_of",
    "runner_class",
    "runner_class_of",
    "settings_of",
    "task_logs",
    "temporary_directory",
    "uploaded",
    "value_of",
]

# mrjob imports distutils. That of setuptools takes a third of the start, so Python's own is used where there is one.
if sys.version_info < (3, 12):
    with suppress(ImportError, AttributeError):
        from _distutils_hack import remove_shim  # type: ignore[import-untyped]

        remove_shim()

try:
    from mrjob.conf import load_opts_from_mrjob_confs
    from mrjob.fs.hadoop import HadoopFilesystem
    from mrjob.job import MRJob
    from mrjob.logs.task import _interpret_task_logs as interpret_task_logs
    from mrjob.runner import _runner_class as runner_class
    from mrjob.step import MRStep, StepFailedException
except ImportError as error:
    say(
        f"mrjob {'is not installed' if error.name == 'mrjob' else f'cannot be imported ({error})'};"
        f" {install_extra('jobs')}"
    )
    sys.exit(2)


class OwnFilesystem(HadoopFilesystem):  # type: ignore[misc]  # mrjob has no types
    """A base for an access to HDFS in place of mrjob's. It says what Hadoop's `version` is; mrjob would start a JVM to ask."""

    def __init__(self, hadoop: list[str], version: str | None) -> None:
        super().__init__(hadoop)
        if version is not None:
            self._hadoop_version = version

    def read(self, path: str) -> Iterator[bytes]:
        """The content of a file, in pieces. Raises OSError."""
        yield from super()._cat_file(path)

    def _cat_file(self, path: str) -> Iterator[bytes]:
        yield from self.read(path)


RunnerArguments = dict[str, Any]
"""Keyword arguments of a runner's constructor. Each has a type of its own."""

LogInterpretation = dict[str, Any]
"""What mrjob has found in the logs of a step: nested dictionaries, see mrjob/logs."""


class RunnerLike(Protocol):
    """The methods and attributes of mrjob's runners that the jobs use.

    `get_hadoop_bin` and `get_hadoop_streaming_jar` exist on the hadoop runner only.
    """

    alias: str
    fs: Any

    def __enter__(self) -> RunnerLike:
        """Begin; the end of the block removes temporary files."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove temporary files."""

    def run(self) -> None:
        """Run all steps. Raises StepFailedException."""

    def cat_output(self) -> Iterable[bytes]:
        """The job's output in pieces."""

    def get_output_dir(self) -> str:
        """The directory of the job's output."""

    def counters(self) -> Sequence[dict[str, dict[str, int]]]:
        """The counters of each step, by group and name."""

    def get_hadoop_bin(self) -> list[str]:
        """The hadoop command."""

    def get_hadoop_streaming_jar(self) -> str | None:
        """The path of the streaming jar, if one was found."""

    def get_job_key(self) -> str:
        """The name of the run: the script, the user and the time."""


# Names with an underscore are private in mrjob, whose version is pinned in setup.py.


def runner_class_of(job: Any) -> Any:
    """The class of the runner that the job's options name."""
    return job._runner_class()


def arguments_of(job: Any) -> RunnerArguments:
    """The keyword arguments with which mrjob would make that runner."""
    found: RunnerArguments = job._runner_kwargs()
    return found


def prints_output(job: Any) -> bool:
    """Whether the job prints its output: --cat-output, or no --output-dir."""
    return bool(job._should_cat_output())


def settings_of(runner: RunnerLike) -> dict[str, str]:
    """Hadoop's settings for the job, from mrjob.conf and --jobconf. What is changed here is passed on."""
    found: dict[str, str] = value_of(runner, "jobconf")
    return found


def value_of(runner: RunnerLike, name: str) -> Any:
    """The value of an option of mrjob, from mrjob.conf or the command line."""
    return runner._opts[name]  # type: ignore[attr-defined]


def uploaded(runner: RunnerLike, path: str) -> str:
    """Plan the upload of a file of this machine. Returns its URL there."""
    url: str = runner._upload_mgr.add(path)  # type: ignore[attr-defined]
    return url


def python_of(runner: RunnerLike) -> list[str]:
    """The command that starts the nodes' Python."""
    found: list[str] = runner._python_bin()  # type: ignore[attr-defined]
    return found


def found_in_logs(runner: RunnerLike) -> LogInterpretation:
    """What mrjob has found in the logs of the last step; {} before it was started."""
    found: list[LogInterpretation] = runner._log_interpretations  # type: ignore[attr-defined]
    return found[-1] if found else {}


def task_logs(runner: RunnerLike, application: str) -> list[dict[str, str]]:
    """The logs of the tasks of an application, if they can be read."""
    return list(runner._ls_task_logs("streaming", application_id=application))  # type: ignore[attr-defined]


def temporary_directory(runner: RunnerLike) -> str:
    """The URL of the directory of this run below `hadoop_tmp_dir`, which mrjob deletes at the end of the run."""
    return str(runner._hadoop_tmp_dir).rstrip("/")  # type: ignore[attr-defined]
