"""Issue 33: a launcher that was killed, whose reducer wakes up later; a right that is missing for good, or for a while."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import RunCdxmill

from .conftest import Hadoop
from .job_runs import HDFS, JOBS, Jobs, Task, bare_python, ended, files_below
from .test_refused_jobs import children, command_of

USER = "alice"
CLUSTER = f"{HDFS}/faults/C"
OF_USER = f"{HDFS}/user/{USER}/C"


class Places(NamedTuple):
    """A directory with the split points, and the clusters of the local engine of both sets of lines."""

    directory: Path
    expected: dict[str, dict[str, bytes]]


@pytest.fixture(scope="module")
def places(jobs: Jobs, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Places:
    """In HDFS: /faults/a and /faults/b, three files of lines each."""
    directory = tmp_path_factory.mktemp("faults")
    (directory / "splits.txt").write_bytes(b"com,example)/2 2020\ncom,example)/6 2020\n")
    expected = {}
    for name in "ab":
        (directory / name).mkdir()
        for part in range(3):
            lines = (
                f'com,example)/{n} 2020 {{"src": "{name}"}}\n' for n in sorted(map(str, range(part, 3000, 3)))
            )
            (directory / name / f"x{part}.cdx").write_text("".join(lines))
        words = ["--splits", directory / "splits.txt", "--location", "/x", directory / name]
        assert run_cdxmill("zipnum", "-q", "-o", directory / f"C{name}", *words).returncode == 0
        expected[name] = files_below(directory / f"C{name}")
    jobs.fs("-rm", "-r", "-f", "/faults")  # of another module
    jobs.fs("-mkdir", "-p", "/faults")
    jobs.fs("-put", (directory / "a").as_uri(), (directory / "b").as_uri(), f"{HDFS}/faults")
    return Places(directory, expected)


def words(places: Places, name: str, *more: str) -> list[str]:
    splits = ["--splitfile", str(places.directory / "splits.txt"), "--location", "/x"]
    return [
        "--python-bin",
        bare_python("3.9"),
        *splits,
        *more,
        "--zipnum-dir",
        CLUSTER,
        f"hdfs:///faults/{name}",
    ]


def stopped(
    jobs: Jobs, verb: str, job: subprocess.Popen[bytes], is_it: Callable[[Task], bool] = lambda task: True
) -> Task:
    """A task, stopped as soon as it is seen."""
    while job.poll() is None:
        for task in jobs.tasks(verb):
            if is_it(task):
                os.kill(task.pid, signal.SIGSTOP)
                return task
        time.sleep(0.01)
    raise AssertionError(ended(job))


def is_running(task: Task) -> bool:
    return Path(f"/proc/{task.pid}").exists()


def cluster(jobs: Jobs, directory: Path) -> dict[str, bytes]:
    directory.mkdir()
    return jobs.get(CLUSTER, directory)


def test_a_reducer_of_a_killed_launcher_changes_nothing(jobs: Jobs, places: Places, tmp_path: Path) -> None:
    with jobs.start("zipnumclusterjob", *words(places, "a")) as process:
        task = stopped(jobs, "shard", process, lambda task: task.partition == 2)
        launchers = [pid for pid in children(process.pid) if b"zipnumclusterjob" in command_of(pid)]
        for pid in launchers:
            os.kill(pid, signal.SIGKILL)
    application = "_".join(["application", *task.attempt.split("_")[1:3]])
    refused = jobs.run("zipnumclusterjob", "-q", *words(places, "b"))
    assert refused.status == 2, refused.stderr
    assert f"{CLUSTER.removeprefix('hdfs://')}: {application} of an earlier run" in refused.stderr
    assert any("/tmp/mrjob/" in url for url in jobs.listed(f"{HDFS}/user"))
    os.kill(task.pid, signal.SIGCONT)
    while is_running(task):
        time.sleep(0.05)
    again = jobs.run("zipnumclusterjob", *words(places, "b"))
    while again.status == 2 and application in again.stderr:  # its master ends a little later
        again = jobs.run("zipnumclusterjob", *words(places, "b"))
    assert again.status == 0, again.stderr
    assert cluster(jobs, tmp_path / "got") == places.expected["b"]
    assert [url for url in jobs.listed(f"{HDFS}/user") if "/tmp/mrjob/" in url] == []


def start_as_user(hadoop: Hadoop, places: Places) -> subprocess.Popen[bytes]:
    """A job of a user of HDFS. Who starts the cluster may read everything."""
    given = words(places, "a")
    given[given.index(CLUSTER)] = OF_USER
    argv: tuple[str | Path, ...] = (sys.executable, JOBS / "zipnumclusterjob.py", "--no-conf", "-r", "hadoop")
    return hadoop.start(*argv, *given, env={"HADOOP_USER_NAME": USER})


@pytest.fixture
def refused(jobs: Jobs, places: Places) -> Iterator[None]:
    jobs.fs("-mkdir", "-p", f"/user/{USER}")
    jobs.fs("-chown", USER, f"/user/{USER}")
    jobs.fs("-chmod", "600", "/faults/a/x1.cdx")
    yield
    jobs.fs("-chmod", "644", "/faults/a/x1.cdx")


def test_a_file_that_may_not_be_read_ends_the_job_without_a_cluster(
    refused: None, hadoop: Hadoop, jobs: Jobs, places: Places
) -> None:
    """It was taken for a corrupt file, and the cluster had 6,000 of 9,000 lines."""
    with start_as_user(hadoop, places) as process:
        job = ended(process)
    assert job.status == 3, job.stderr
    assert "x1.cdx" in job.last_line
    assert "Permission denied: user=alice" in job.last_line
    assert "cluster.json" not in jobs.fs("-ls", "-R", f"/user/{USER}").decode()


def test_a_task_that_could_not_read_is_tried_again(
    refused: None, hadoop: Hadoop, jobs: Jobs, places: Places, tmp_path: Path
) -> None:
    with start_as_user(hadoop, places) as process:
        task = stopped(jobs, "chunks", process)
        os.kill(task.pid, signal.SIGCONT)
        while is_running(task):
            time.sleep(0.02)
        jobs.fs("-chmod", "644", "/faults/a/x1.cdx")
        job = ended(process)
    assert job.status == 0, job.stderr
    assert job.counter("Failed map tasks") >= 1
    assert jobs.get(OF_USER, tmp_path) == places.expected["a"]
