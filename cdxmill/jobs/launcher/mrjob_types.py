"""Types for the parts of mrjob that the jobs use; mrjob 0.7.4 has none of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol

Counters = dict[str, dict[str, int]]
"""Counters by group and name."""

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

    def counters(self) -> Sequence[Counters]:
        """The counters of each step."""

    def get_hadoop_bin(self) -> list[str]:
        """The hadoop command."""

    def get_hadoop_streaming_jar(self) -> str | None:
        """The path of the streaming jar, if one was found."""

    def _python_bin(self) -> list[str]: ...

    def _ls_task_logs(self, step_type: str, application_id: str | None = ...) -> Iterable[dict[str, str]]: ...


class JobLike(Protocol):
    """What a job needs so that it can be run as a command."""

    @property
    def is_on_hadoop(self) -> bool:
        """Whether the job runs on Hadoop or EMR."""

    def make_runner(self) -> RunnerLike:
        """mrjob's runner for this job. Raises UsageError."""

    def run_locally(self) -> int:
        """Run the job under a local runner of mrjob. Returns the number of inputs that failed. Raises UsageError."""

    def finish(self, runner: RunnerLike) -> int:
        """Do the launcher's work after all tasks. Returns the number of inputs that failed."""
