"""Why Hadoop did not do what it was asked, in one line: mrjob tells no more than the command it has run."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from mrjob.logs.errors import _pick_error

_NOISE = ("STDOUT: ", "Probable cause", "Job not successful!", "Streaming Command Failed!")
_CAUSE = re.compile(r"^(?:Error: |Caused by: |.*: )?([\w.$]+(?:Exception|Error): .*)$")
_FILE = re.compile(r"(?:^Paths:|,|^)(.+?):\d+\+\d+(?=,|$)")
_FILES_SHOWN = 5
_HINTS = {
    "subprocess failed with code 41": "the nodes' Python is older than 3.9: name another with --python-bin",
    "Cannot run program": "name a Python that the nodes have with --python-bin",
    "Unexpected end of input stream": "an input that ends in .gz is cut or empty",
    "not a gzip file": "an input that ends in .gz is no gzip",
}
"""Hadoop's words, and what they mean here."""


class Complaints(logging.Handler):
    """What mrjob logs as errors, even where it is told to be quiet."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        logging.getLogger("mrjob").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line, unless it tells nothing."""
        line = record.getMessage().strip().removeprefix("STDERR: ")
        if line and not line.startswith(_NOISE):
            self.lines.append(line)


def explain(error: Exception, runner: Any, complaints: Complaints) -> str:
    """Why a job of `runner` (None where it did not come to be) ended with `error`; where more is told."""
    found = runner._log_interpretations[-1] if runner is not None and runner._log_interpretations else {}
    application = found.get("step", {}).get("application_id")
    failure = _failed_task(runner, found) if application else {}
    reason = _reason(failure) or (complaints.lines or [str(error)])[-1]
    hints = [hint for words, hint in _HINTS.items() if words in reason]
    files = _FILE.findall(failure.get("split", {}).get("path", "") + ":0+0") if failure.get("split") else []
    inputs = [f"in one of {_some(list(dict.fromkeys(files)))}"] if files else []
    logs = [f"`yarn logs -applicationId {application}` shows the tasks' logs"] if application else []
    return "; ".join([f"the job failed: {reason}", *hints, *inputs, *logs])


def _failed_task(runner: Any, found: dict[str, Any]) -> dict[str, Any]:
    """mrjob's report of a task that failed, with its own log where that can be read."""
    if not found.get("task", {}).get("errors"):
        found.pop("task", None)
        runner._interpret_task_logs(found, "streaming")
    return _pick_error(found) or {}


def _reason(failure: dict[str, Any]) -> str:
    """What a task says last, or Java's innermost cause."""
    lines = failure.get("task_error", {}).get("message", "").strip().split("\n")
    if lines[-1]:
        return next((line for line in reversed(lines) if line.startswith("cdxmill: ")), lines[-1])
    causes: list[str] = []
    for line in failure.get("hadoop_error", {}).get("message", "").split("\n"):
        match = _CAUSE.match(line)
        if match and not (causes and match[1].partition(": ")[2] in causes[-1]):
            causes.append(match[1])
    return causes[-1] if causes else ""


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
    return ", ".join(files[:_FILES_SHOWN]) + more
