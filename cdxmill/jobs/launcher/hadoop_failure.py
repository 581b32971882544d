"""Find the reason why a step failed on Hadoop, as one line. mrjob itself reports only the command that it ran."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cdxmill.jobs.launcher.mrjob_parts import (
    LogInterpretation,
    RunnerLike,
    found_in_logs,
    interpret_task_logs,
    task_logs,
)
from cdxmill.regex import regex
from cdxmill.running.lock import renew_held

_NOISE = ("STDOUT: ", "Probable cause", "Job not successful!", "Streaming Command Failed!")
_LISTING = "ls: "
"""After the job, mrjob looks for logs in directories that the user may not be allowed to list."""
_CAUSE = regex(r"^(?:.*: )?([\w.$]+(?:Exception|Error): .*)$")
_CALL = regex(r"Call From \S+ to (\S+) failed on (?:connection|socket timeout) exception: ([^;\n]*)")
"""Who did not answer. The innermost cause does not say it."""
_BETWEEN = regex(r":\d+\+\d+,")
"""Separates the files in Hadoop's list of a task's inputs: a range of bytes, then a comma."""
_JAVA_STARTS = "Picked up JAVA_TOOL_OPTIONS"
_ENDED = regex(r"Job job_\S+ failed with state (?:KILLED|FAILED) due to: (.*)")
_TASKS_FAILED = "Task failed "
"""Begins such a message if it only says that tasks failed."""
_RUNNING = regex(r"(?:Running job: job|Submitted application application)_(\d+_\d+)")
_PROGRESS = regex(r"map (?!0%)\d+% reduce")
_RESULT = regex(r"(?:code|status)(?: is)? (?:137|143|256)\b|Container killed|Container exited")
"""What Hadoop says of tasks that it ended itself, because another one had failed."""
_NO_REASON = "subprocess failed with code 1"
_LOGS_READ = 400
"""Logs of a job that are searched for the reason, those of the first tasks first."""
_FILES_SHOWN = 5
_MASTER = "_000001"
"""End of the container id of the application master, which runs no task."""
_HINTS = {
    "subprocess failed with code 41": "the nodes' Python is older than 3.9: give another with --python-bin",
    "subprocess failed with code 42": "the nodes' Python lacks a library of cdxmill: run bootstrap.sh of this version there",
    "Cannot run program": "give a Python that exists on the nodes with --python-bin",
    "Unexpected end of input stream": "an input that ends in .gz is truncated or empty",
    "not a gzip file": "an input that ends in .gz is not gzip",
}
"""Parts of Hadoop's messages, and what to do about them."""


_WRONG_PYTHON = ("subprocess failed with code 41", "subprocess failed with code 42", "Cannot run program")
"""Every task would fail like the first."""


class WrongPythonError(Exception):
    """The first task has found that the nodes' Python cannot run tasks. The text is Hadoop's message."""


class Complaints(logging.Handler):
    """Collects the errors that mrjob logs, with --quiet too, and the id of the application that runs.

    Raises WrongPythonError from mrjob's call if the first task fails so: the others need not be tried.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self.ended = ""
        self.application = ""
        self._has_progress = False
        logger = logging.getLogger("mrjob")
        logger.setLevel(min(logger.level or logging.INFO, logging.INFO))
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line if it may be the reason. The lines come during the whole job, so locks are renewed here.

        Raises StoppedError if another run has taken the output.
        """
        renew_held()
        line = record.getMessage().strip().removeprefix("STDERR:").lstrip()
        if running := _RUNNING.match(line):
            self.application = f"application_{running[1]}"
        elif (
            line.startswith("Task Id : ")
            and not self._has_progress
            and any(word in line for word in _WRONG_PYTHON)
        ):
            raise WrongPythonError(_cause_in(line))
        elif _PROGRESS.match(line):
            self._has_progress = True
        elif ended := _ENDED.match(line):
            self.ended = "" if ended[1].startswith(_TASKS_FAILED) else ended[1]
        elif line and record.levelno >= logging.ERROR and not line.startswith(self._noise()):
            self.lines.append(line)

    def _noise(self) -> tuple[str, ...]:
        return (*_NOISE, _LISTING) if self.application else _NOISE


def explain(error: Exception, runner: RunnerLike | None, complaints: Complaints) -> str:
    """One line: the reason why the job failed with `error`, and where to find more.

    `runner` is None if the error came before there was one.
    """
    found = found_in_logs(runner) if runner is not None else {}
    is_hadoop = runner is not None and runner.alias == "hadoop"
    step = found.get("step", {})
    application = (step.get("application_id") or complaints.application) if is_hadoop else None
    failures = []
    if runner is not None and application and not complaints.ended:
        failures = _failures_in_logs(runner, application)
    failures += [*found.get("history", {}).get("errors", []), *step.get("errors", [])]
    failure = _first(failures)
    reason = complaints.ended or _reason(failure) or (complaints.lines or [str(error)])[-1]
    parts = [f"the job failed: {reason}", *(hint for words, hint in _HINTS.items() if words in reason)]
    if files := _inputs(failure):
        parts.append(f"inputs of the task: {_some(files)}")
    if application:
        parts.append(f"`yarn logs -applicationId {application}` shows more")
    return "; ".join(parts)


def _first(failures: Sequence[LogInterpretation]) -> LogInterpretation:
    """The first failure with a reason of its own. The others are of tasks that Hadoop ended because of it."""
    known = [failure for failure in failures if (reason := _reason(failure)) and not _RESULT.search(reason)]
    own = [failure for failure in known if "task_error" in failure or _NO_REASON not in _reason(failure)]
    return (own or known or [{}])[0]


def _failures_in_logs(runner: RunnerLike, application: str) -> list[LogInterpretation]:
    """What the logs of the tasks say, if they can be read, in the order in which the tasks were started."""
    tasks = [
        log for log in task_logs(runner, application) if not log.get("container_id", "").endswith(_MASTER)
    ]
    tasks.sort(key=lambda log: log.get("container_id", ""))
    found: LogInterpretation = {"task": interpret_task_logs(runner.fs, tasks[:_LOGS_READ], partial=False)}
    _drop_noise(found)
    errors: list[LogInterpretation] = found["task"].get("errors", [])
    return sorted(errors, key=lambda error: str(error.get("container_id", "")))


def _drop_noise(found: LogInterpretation) -> None:
    """Remove what Java prints at its start."""
    for error in found["task"].get("errors", []):
        lines = error.get("task_error", {}).get("message", "").splitlines()
        kept = [line for line in lines if not line.startswith(_JAVA_STARTS)]
        if kept:
            error["task_error"]["message"] = "\n".join(kept)
        else:
            error.pop("task_error", None)


def _reason(failure: LogInterpretation) -> str:
    """The last line of a task's messages, or Java's innermost cause."""
    lines: list[str] = failure.get("task_error", {}).get("message", "").strip().split("\n")
    if lines[-1]:
        return next((line for line in reversed(lines) if line.startswith("cdxmill: ")), lines[-1])
    return _cause_in(failure.get("hadoop_error", {}).get("message", ""))


def _cause_in(message: str) -> str:
    """Java's innermost cause in a message with a stack trace."""
    causes: list[str] = []
    if called := _CALL.search(message):
        return f"{called[1]}: {called[2]}"
    for line in message.split("\n"):
        match = _CAUSE.match(line)
        if match and not (causes and match[1].partition(": ")[2] in causes[-1]):
            causes.append(match[1])
    return causes[-1] if causes else ""


def _inputs(failure: LogInterpretation) -> list[str]:
    """The files that a task was reading when Hadoop's own reader failed."""
    if "task_error" in failure or "split" not in failure:
        return []
    paths = str(failure["split"]["path"]).removeprefix("Paths:")
    return list(dict.fromkeys(_BETWEEN.split(paths)))


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
    return ", ".join(files[:_FILES_SHOWN]) + more
