"""The parts of mrjob 0.7.4 that the jobs use, with types, which it has not.

Where mrjob is not installed, importing this module ends the program in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol

from cdxmill.messages import say
from cdxmill.version import install_extra

__all__ = [
    "HadoopFilesystem",
    "LogInterpretation",
    "MRJob",
    "MRStep",
    "RunnerArguments",
    "RunnerLike",
    "StepFailedException",
    "interpret_task_logs",
    "load_opts_from_mrjob_confs",
    "runner_class",
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

RunnerArguments = dict[str, Any]
"""Keyword arguments of a runner's constructor. Each has a type of its own."""

LogInterpretation = dict[str, Any]
"""What mrjob has found in the logs of a step: nested dictionaries, see mrjob/logs."""


class UploadManager(Protocol):
    """mrjob's list of files to upload."""

    def add(self, path: str) -> str:
        """Plan the upload of a file of this machine. Returns its URL there."""


class RunnerLike(Protocol):
    """The methods and attributes of mrjob's runners that the jobs use.

    `get_hadoop_bin` and `get_hadoop_streaming_jar` exist on the hadoop runner only.
    Names with an underscore are private in mrjob, whose version is pinned in setup.py.
    """

    alias: str
    fs: Any
    _opts: dict[str, dict[str, str]]
    _upload_mgr: UploadManager
    _log_interpretations: list[LogInterpretation]

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

    def _python_bin(self) -> list[str]: ...

    def _ls_task_logs(self, step_type: str, application_id: str | None = ...) -> Iterable[dict[str, str]]: ...
