"""Jobs that cannot go on: a signal, a missing right, a quota, a wrong Python. Each says its reason, and soon."""

from __future__ import annotations

import gzip
import os
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import Hadoop
from .job_runs import HDFS, JOBS, Ended, Jobs, bare_python, ended

USER = "alice"
POINTS = b"com,example)/2 2020\n"


@pytest.fixture(scope="module")
def places(hadoop: Hadoop, jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In HDFS: lines, and the home of another user. A folder with the split points."""
    directory = tmp_path_factory.mktemp("refused")
    (directory / "splits.txt").write_bytes(POINTS)
    (directory / "refused").mkdir()
    lines = b"".join(b"com,example)/%d 2020 {}\n" % number for number in range(9))
    (directory / "refused/a.cdx.gz").write_bytes(gzip.compress(lines))
    jobs.fs("-mkdir", "-p", f"/user/{USER}", "/narrow")
    jobs.fs("-put", (directory / "refused").as_uri(), f"{HDFS}/")
    jobs.fs("-chown", USER, f"/user/{USER}")
    hadoop.run("hadoop", "dfsadmin", "-setSpaceQuota", "1m", "/narrow")
    return directory


def run_as(hadoop: Hadoop, user: str, *args: str | Path) -> Ended:
    """Runs zipnumclusterjob.py as a user of HDFS."""
    argv = (sys.executable, JOBS / "zipnumclusterjob.py", "--no-conf", "-r", "hadoop", *args)
    with hadoop.start(*argv, env={"HADOOP_USER_NAME": user}) as process:
        return ended(process)


def options(places: Path, cluster: str) -> list[str]:
    python = ["--python-bin", bare_python("3.9")]
    return [*python, "--splitfile", str(places / "splits.txt"), "--zipnum-dir", cluster, "hdfs:///refused"]


class Interrupted(NamedTuple):
    """A job whose launcher got a signal when a reducer was running."""

    job: Ended
    application: str


@pytest.fixture(scope="module")
def interrupted(jobs: Jobs, places: Path) -> Interrupted:
    with jobs.start("zipnumclusterjob", *options(places, "/clusters/interrupted")) as process:
        while not (tasks := list(jobs.tasks("shard"))):
            assert process.poll() is None, ended(process)
            time.sleep(0.02)
        os.kill(tasks[0].pid, signal.SIGSTOP)
        application = "_".join(["application", *tasks[0].attempt.split("_")[1:3]])
        launchers = [pid for pid in children(process.pid) if b"zipnumclusterjob" in command_of(pid)]
        os.kill(launchers[0], signal.SIGTERM)
        return Interrupted(ended(process), application)


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def children(pid: int) -> list[int]:
    """The process, which bin/hadoop-dev has become, and those below it."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in listed for found in children(int(child)))]


def test_a_signal_to_the_launcher_ends_the_application(interrupted: Interrupted, jobs: Jobs) -> None:
    assert interrupted.job.status == 128 + signal.SIGTERM, interrupted.job.stderr
    assert f"ending {interrupted.application}\n" in interrupted.job.stderr
    assert jobs.final_status(interrupted.application) == "KILLED"


def test_what_it_leaves_does_not_look_finished(interrupted: Interrupted, jobs: Jobs) -> None:
    names = {url.rpartition("/")[2] for url in jobs.listed(f"{HDFS}/clusters/interrupted")}
    assert names & {"_SUCCESS", "cluster.json"} == set()


def test_it_leaves_no_temporary_files(interrupted: Interrupted, jobs: Jobs) -> None:
    assert [url for url in jobs.listed(f"{HDFS}/user") if "/tmp/mrjob/" in url] == []


@pytest.mark.parametrize(
    ("user", "cluster", "reason"),
    [
        (USER, "/clusters/of-root", "AccessControlException: Permission"),
        ("root", "/narrow/cluster", "DSQuotaExceededException: The DiskSpace"),
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_written_is_found_before_any_job(
    user: str, cluster: str, reason: str, hadoop: Hadoop, places: Path, jobs: Jobs
) -> None:
    jobs.fs("-mkdir", "-p", "/clusters")
    job = run_as(hadoop, user, "-q", *options(places, cluster))
    assert (job.status, job.stderr.count("\n")) == (3, 1), job.stderr
    assert job.stderr.startswith(f"hdfs://{cluster}: no file can be written there: hdfs:///")
    assert f": cannot be written: refused (403 {reason}" in job.stderr
    assert jobs.fs("-ls", "-R", "/narrow") == b""


def test_a_python_that_is_missing_ends_the_job_at_the_first_task(hadoop: Hadoop, places: Path) -> None:
    started = time.monotonic()
    wrong = ["--python-bin", "/no/python3"]
    job = run_as(hadoop, "root", *options(places, "/clusters/no-python"), *wrong)
    assert job.status == 3
    assert 'Cannot run program "/no/python3"' in job.last_line
    assert "; give a Python that exists on the nodes with --python-bin; " in job.last_line
    assert job.stderr.count("Status : FAILED") == 1, time.monotonic() - started
