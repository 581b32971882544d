"""jobs/hadoop_failure.py: finds the line with the reason among the messages of Hadoop and mrjob."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

APPLICATION = "application_1_0001"
STREAMING = "Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code"
NO_PROGRAM = """Error: java.lang.RuntimeException: Error in configuring object
\tat org.apache.hadoop.util.ReflectionUtils.setJobConf(ReflectionUtils.java:113)
Caused by: java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
"""
SYSLOG = """2026-01-01 00:00:00,000 INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: Paths:{paths}
2026-01-01 00:00:00,000 WARN [main] org.apache.hadoop.mapred.YarnChild: Exception running child : \
java.io.EOFException: Unexpected end of input stream
\tat org.apache.hadoop.io.compress.DecompressorStream.decompress(DecompressorStream.java:165)
"""


def runner(client_error: str = "", logs: tuple[dict[str, Any], ...] = ()) -> Any:
    """What mrjob keeps of a step that failed with this error of a task."""
    from mrjob.fs.local import LocalFilesystem

    errors = [{"hadoop_error": {"message": client_error}, "attempt_id": "attempt_1_0001_m_000000_0"}]
    step = {"application_id": APPLICATION, "errors": errors if client_error else []}
    return SimpleNamespace(
        alias="hadoop",
        fs=LocalFilesystem(),
        _log_interpretations=[{"step": step}],
        _ls_task_logs=lambda *_, **__: logs,
    )


def explained(found: Any, *complaints: str) -> str:
    from cdxmill.jobs.hadoop_failure import Complaints, explain

    heard = Complaints()
    for complaint in complaints:
        logging.getLogger("mrjob.hadoop").error(complaint)
    line: str = explain(Exception("Command '[...]' failed"), found, heard)
    logging.getLogger("mrjob").removeHandler(heard)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("client_error", "told"),
    [
        (
            f"{STREAMING} 41\n\tat x",
            "; the nodes' Python is older than 3.9: give another with --python-bin; `yarn",
        ),
        (f"{STREAMING} 42\n\tat x", "; the nodes' Python lacks a library of cdxmill: run bootstrap.sh"),
        (
            NO_PROGRAM,
            '"/no/python": error=2, No such file or directory; give a Python that exists on the nodes with',
        ),
        (
            f"{STREAMING} 1\n\tat x",
            "subprocess failed with code 1; `yarn logs -applicationId application_1_0001`",
        ),
    ],
)
def test_without_the_logs_of_tasks_hadoops_own_message_is_used(client_error: str, told: str) -> None:
    assert told in explained(runner(client_error))


def test_the_inputs_of_a_task_that_fails_in_hadoops_reader_are_reported(tmp_path: Path) -> None:
    (tmp_path / "syslog").write_text(SYSLOG.format(paths=",".join(f"/in/{n}.gz:0+9" for n in range(7))))
    log = {"path": str(tmp_path / "syslog"), "container_id": "container_1_0001_01_000002"}
    line = explained(runner(f"{STREAMING} 1", (log,)))
    assert line == (
        "the job failed: java.io.EOFException: Unexpected end of input stream; an input that ends in .gz is truncated or "
        "empty; inputs of the task: /in/0.gz, /in/1.gz, /in/2.gz, /in/3.gz, /in/4.gz and 2 more; "
        "`yarn logs -applicationId application_1_0001` shows more"
    )


def test_a_file_in_two_pieces_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "syslog").write_text(SYSLOG.format(paths="/in/a,b:c.cdx:0+9,/in/a,b:c.cdx:9+9"))
    line = explained(
        runner("", ({"path": str(tmp_path / "syslog"), "container_id": "container_1_0001_01_000002"},))
    )
    assert "; inputs of the task: /in/a,b:c.cdx; `yarn" in line


def test_if_a_step_did_not_start_mrjobs_last_error_is_reported() -> None:
    noise = ("Streaming Command Failed!", "STDOUT: x", "\nProbable cause of failure:\n\nx")
    assert explained(None, "STDERR: put: Permission denied: user=a", *noise) == (
        "the job failed: put: Permission denied: user=a"
    )
    assert explained(None) == "the job failed: Command '[...]' failed"
