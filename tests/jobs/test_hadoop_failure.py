"""jobs/launcher/hadoop_failure.py: finds the line with the reason among the messages of Hadoop and mrjob."""

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
    from cdxmill.jobs.launcher.hadoop_failure import Complaints, explain

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
            "java.net.ConnectException: Call From a/10.0.0.1 to names:9000 failed on connection exception:"
            " java.net.ConnectException: Connection refused; For more details see:  http://x\n\tat x",
            "the job failed: names:9000: java.net.ConnectException: Connection refused; `yarn logs",
        ),
        (
            "Error: java.io.IOException: not a gzip file\n\tat x",
            "; an input that ends in .gz is not gzip; `yarn",
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
    noise = (
        "Job not successful!",
        "Streaming Command Failed!",
        "STDOUT: x",
        "\nProbable cause of failure:\n\nx",
    )
    assert explained(None, "STDERR: put: Permission denied: user=a", *noise) == (
        "the job failed: put: Permission denied: user=a"
    )
    assert explained(None) == "the job failed: Command '[...]' failed"


def test_a_reason_of_hadoop_itself_comes_before_a_task_that_only_ended() -> None:
    reasons = f"{STREAMING} 1", "java.io.IOException: No space left on device"
    found = runner(f"{STREAMING} 1")
    found._log_interpretations[0]["history"] = {
        "errors": [{"hadoop_error": {"message": reason}} for reason in reasons]
    }
    assert explained(found).startswith(f"the job failed: {reasons[1]}; ")


def container(directory: Path, number: int, stderr: str, error: str) -> dict[str, Any]:
    """The logs of a container that failed."""
    place = directory / f"container_1_0001_01_{number:06d}"
    place.mkdir()
    (place / "stderr").write_text(stderr)
    (place / "syslog").write_text(
        f"2026-01-01 00:00:00,000 WARN [main] org.apache.hadoop.mapred.YarnChild: Exception running child : {error}\n\tat org.x.Y.z(Y.java:1)\n"
    )
    syslog = {"path": str(place / "syslog"), "container_id": place.name}
    return {"path": str(place / "stderr"), "container_id": place.name, "syslog": syslog}


@pytest.mark.parametrize("other", [3, 9])
@pytest.mark.parametrize("code", ["143", "137", "256", "1"])
def test_the_reason_is_that_of_the_first_task_and_never_how_hadoop_ended_the_others(
    code: str, other: int, tmp_path: Path
) -> None:
    """A full quota ends one reducer; Hadoop then ends the others, whose logs mrjob looks at first."""
    quota = "cdxmill: /c/_report-00001: DSQuotaExceededException: The DiskSpace quota of /c is exceeded"
    failed = f"java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code {code}"
    logs = (
        container(tmp_path, other, "", failed),
        container(tmp_path, 5, quota + "\n", failed),
        container(tmp_path, 7, "cdxmill: something later\n", failed),
    )
    line = explained(runner(f"{STREAMING} {code}\n\tat x", logs))
    assert line.startswith(f"the job failed: {quota}; `yarn logs"), line


def test_the_reason_why_a_job_could_not_begin_is_reported() -> None:
    denied = "Job setup failed : org.apache.hadoop.security.AccessControlException: Permission denied: user=a"
    line = explained_after("Job job_1_0001 failed with state FAILED due to: " + denied)
    assert line.startswith(f"the job failed: {denied}")
    tasks = "Job job_1_0001 failed with state FAILED due to: Task failed task_1_0001_m_000000"
    assert "quota" in explained_after(tasks, "the quota is full")


def explained_after(told: str, *complaints: str) -> str:
    """As `explained`, after a message of the job's client."""
    from cdxmill.jobs.launcher.hadoop_failure import Complaints, explain

    heard = Complaints()
    logging.getLogger("mrjob.hadoop").info("  %s", told)
    for complaint in complaints:
        logging.getLogger("mrjob.hadoop").error(complaint)
    line: str = explain(Exception("Command '[...]' returned non-zero exit status 256"), runner(), heard)
    logging.getLogger("mrjob").removeHandler(heard)
    return line


@pytest.mark.parametrize("message", [f"{STREAMING} 41\n\tat x", f"{STREAMING} 42\n\tat x", NO_PROGRAM])
def test_a_wrong_python_is_noticed_at_the_first_task_only(message: str) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import Complaints, WrongPythonError

    heard, log = Complaints(), logging.getLogger("mrjob.hadoop")
    failed = f"Task Id : attempt_1_0001_m_000000_0, Status : FAILED\n{message}"
    log.info("Submitted application application_1_0001")
    log.info(" map 0% reduce 0%")
    with pytest.raises(WrongPythonError):
        log.info(failed)
    assert heard.application == APPLICATION
    log.info(" map 5% reduce 0%")
    log.info(failed)  # one node of many: the task is tried on another
    logging.getLogger("mrjob").removeHandler(heard)


def test_a_directory_of_logs_that_cannot_be_listed_is_not_the_reason() -> None:
    refused = "STDERR: ls: Permission denied: user=alice, inode=/history/done"
    ran = "Submitted application application_1_0001"
    failed = "Streaming Command Failed!"
    assert explained(runner(), "the reason", ran, failed, refused).startswith("the job failed: the reason; ")
    assert "Permission denied" in explained(runner(), refused)


def test_another_failure_of_the_first_task_is_tried_again_by_hadoop() -> None:
    from cdxmill.jobs.launcher.hadoop_failure import Complaints

    heard, log = Complaints(), logging.getLogger("mrjob.hadoop")
    log.info(f"Task Id : attempt_1_0001_m_000000_0, Status : FAILED\n{STREAMING} 1\n\tat x")
    log.error(f"{STREAMING} 41")  # not a task's
    logging.getLogger("mrjob").removeHandler(heard)
    assert heard.lines == [f"{STREAMING} 41"]


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", "java.io.EOFException: Unexpected end of input stream"),
        ("cdxmill: the disk is full\n", "cdxmill: the disk is full"),
        ("cdxmill: the disk is full\nEnd\n", "cdxmill: the disk is full"),
        ("Traceback\nKeyError: 1\n", "KeyError: 1"),
        ("KeyError: 1\n\n", "KeyError: 1"),
        ("KeyError: 1\nPicked up JAVA_TOOL_OPTIONS: -Xmx2g\n", "KeyError: 1"),
    ],
)
def test_what_java_prints_at_its_start_and_the_master_prints_is_no_reason(
    stderr: str, reason: str, tmp_path: Path
) -> None:
    error = "java.io.EOFException: Unexpected end of input stream"
    master = container(tmp_path, 1, "cdxmill: of no task\n", error)
    task = container(tmp_path, 2, f"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n{stderr}", error)
    line = explained(runner(f"{STREAMING} 1", (master, task)))
    assert line.startswith(f"the job failed: {reason}; "), line
