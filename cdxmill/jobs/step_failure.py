"""Why Hadoop did not do what it was asked, in one line: mrjob tells no more than the command it has run."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from mrjob.logs.errors import _pick_error
from mrjob.logs.task import _interpret_task_logs

_NOISE = ("STDOUT: ", "Probable cause", "Job not successful!", "Streaming Command Failed!")
_CAUSE = re.compile(r"^(?:.*: )?([\w.$]+(?:Exception|Error): .*)$")
_BETWEEN = re.compile(r":\d+\+\d+,")
"""Ends a file's range, but for the last, in the list of a task's inputs."""
_JAVA_STARTS = "Picked up JAVA_TOOL_OPTIONS"
_KILLED = re.compile(r"Job job_\S+ failed with state KILLED due to: (.*)")
_FILES_SHOWN = 5
_MASTER = "_000001"
"""Ends the id of the container that has no task."""
_HINTS = {
    "subprocess failed with code 41": "the nodes' Python is older than 3.9: name another with --python-bin",
    "subprocess failed with code 42": "the nodes' Python lacks a library of cdxmill: run bootstrap.sh of this version there",
    "Cannot run program": "name a Python that the nodes have with --python-bin",
    "Unexpected end of input stream": "an input that ends in .gz is cut or empty",
    "not a gzip file": "an input that ends in .gz is no gzip",
}
"""Hadoop's words, and what they mean here."""


class Complaints(logging.Handler):
    """What mrjob logs of things that go wrong, even where it is told to be quiet."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self.killed = ""
        logger = logging.getLogger("mrjob")
        logger.setLevel(min(logger.level or logging.INFO, logging.INFO))
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line, if it tells why."""
        line = record.getMessage().strip().removeprefix("STDERR: ")
        if killed := _KILLED.match(line):
            self.killed = killed[1]
        elif line and record.levelno >= logging.ERROR and not line.startswith(_NOISE):
            self.lines.append(line)


def explain(error: Exception, runner: Any, complaints: Complaints) -> str:
    """Why a job of `runner` (None where it did not come to be) ended with `error`; where more is told."""
    found = runner._log_interpretations[-1] if runner is not None and runner._log_interpretations else {}
    application = found.get("step", {}).get("application_id") if found and runner.alias == "hadoop" else None
    if application and not complaints.killed:
        _read_logs(runner, found, application)
        _drop_noise(found)
    failure = _pick_error(found) or {}
    reason = complaints.killed or _reason(failure) or (complaints.lines or [str(error)])[-1]
    told = [f"the job failed: {reason}", *(hint for words, hint in _HINTS.items() if words in reason)]
    if files := _inputs(failure):
        told.append(f"inputs of the task: {_some(files)}")
    if application:
        told.append(f"`yarn logs -applicationId {application}` shows more")
    return "; ".join(told)


def _read_logs(runner: Any, found: dict[str, Any], application: str) -> None:
    """Put in what the tasks' own logs tell, where they can be read: mrjob takes the master's for one of them."""
    logs = runner._ls_task_logs("streaming", application_id=application)
    tasks = (log for log in logs if not log.get("container_id", "").endswith(_MASTER))
    found["task"] = _interpret_task_logs(runner.fs, tasks)


def _drop_noise(found: dict[str, Any]) -> None:
    """What Java says at its start is no reason."""
    for error in found["task"].get("errors", []):
        lines = error.get("task_error", {}).get("message", "").splitlines()
        told = [line for line in lines if not line.startswith(_JAVA_STARTS)]
        if told:
            error["task_error"]["message"] = "\n".join(told)
        else:
            error.pop("task_error", None)


def _reason(failure: dict[str, Any]) -> str:
    """What a task says last, or Java's innermost cause."""
    lines: list[str] = failure.get("task_error", {}).get("message", "").strip().split("\n")
    if lines[-1]:
        return next((line for line in reversed(lines) if line.startswith("cdxmill: ")), lines[-1])
    causes: list[str] = []
    for line in failure.get("hadoop_error", {}).get("message", "").split("\n"):
        match = _CAUSE.match(line)
        if match and not (causes and match[1].partition(": ")[2] in causes[-1]):
            causes.append(match[1])
    return causes[-1] if causes else ""


def _inputs(failure: dict[str, Any]) -> list[str]:
    """The files that a task of Hadoop's own was reading."""
    if "task_error" in failure or "split" not in failure:
        return []
    paths = str(failure["split"]["path"]).removeprefix("Paths:")
    return list(dict.fromkeys(_BETWEEN.split(paths)))


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
    return ", ".join(files[:_FILES_SHOWN]) + more
