"""A missing right that stays, two launches at once, and a missing right and a full disk that are mended."""

from __future__ import annotations

import gzip
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
from .test_refused_jobs import children

USER = "alice"
CLUSTER = f"{HDFS}/faults/C"
OF_USER = f"{HDFS}/user/{USER}/C"
CUT = "hdfs:///faults/cut.cdx.gz"
FULL_NODE = Path(__file__).with_name("full_node.sh")
TWICE = [word for kind in ("map", "reduce") for word in ("--jobconf", f"mapreduce.{kind}.maxattempts=2")]
"""Tries of a task; more would take longer and show the same."""


class Places(NamedTuple):
    """A directory with the split points, and the clusters of the local engine of both sets of lines."""

    directory: Path
    expected: dict[str, dict[str, bytes]]


@pytest.fixture(scope="module")
def places(jobs: Jobs, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Places:
    """In HDFS: /faults/a and /faults/b, three files of lines each, and a file that is truncated."""
    directory = tmp_path_factory.mktemp("faults")
    (directory / "splits.txt").write_bytes(b"com,example)/5 2020\n")
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
    cut = directory / "cut.cdx.gz"
    cut.write_bytes(gzip.compress((directory / "b/x0.cdx").read_bytes())[:-9])
    jobs.fs("-rm", "-r", "-f", "/faults")  # of another module
    jobs.fs("-mkdir", "-p", "/faults")
    jobs.fs("-put", *(path.as_uri() for path in (directory / "a", directory / "b", cut)), f"{HDFS}/faults")
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


def notes_of(hadoop: Hadoop, task: Task | None = None) -> str:
    """What the tasks of all jobs, or of the job of one task, have printed so far, and their Java."""
    job = "*" if task is None else "_".join(task.attempt.split("_")[1:3])
    found = (hadoop.home / "logs/userlogs").glob(f"application_{job}/container_*/s[ty]*")
    return "".join(path.read_text(errors="replace") for path in found)


def is_running(task: Task) -> bool:
    return Path(f"/proc/{task.pid}").exists()


def start_as_user(hadoop: Hadoop, places: Places, full: Path, *options: str) -> subprocess.Popen[bytes]:
    """A job of a user of HDFS. Who starts the cluster may read everything. A node's disk is full while `full` exists."""
    given = [*words(places, "a"), *options]
    given[given.index(CLUSTER)] = OF_USER
    given[1] = f"sh {FULL_NODE} {full} {given[1]}"
    argv: tuple[str | Path, ...] = (sys.executable, JOBS / "zipnumclusterjob.py", "--no-conf", "-r", "hadoop")
    return hadoop.start(*argv, *given, env={"HADOOP_USER_NAME": USER})


@pytest.fixture
def home(jobs: Jobs) -> Iterator[None]:
    """The user has a home, but may not read one of the files."""
    jobs.fs("-mkdir", "-p", f"/user/{USER}")
    jobs.fs("-chown", USER, f"/user/{USER}")
    jobs.fs("-chmod", "600", "/faults/a/x1.cdx")
    yield
    jobs.fs("-chmod", "644", "/faults/a/x1.cdx")


def test_a_fault_that_stays_ends_the_job_without_a_cluster(
    home: None, hadoop: Hadoop, jobs: Jobs, places: Places, tmp_path: Path
) -> None:
    """A right that is missing was taken for a corrupt file, and the cluster had 6,000 of 9,000 lines."""
    with start_as_user(hadoop, places, tmp_path / "full", *TWICE) as process:
        job = ended(process)
    assert job.status == 3, job.stderr
    assert "x1.cdx" in job.last_line
    assert "Permission denied: user=alice" in job.last_line
    assert job.stderr.count("Status : FAILED") == 1, "the first try; the second one ends the job"
    left = jobs.fs("-ls", "-R", f"/user/{USER}").decode().splitlines()
    assert [line for line in left if f" /user/{USER}/C/" in line and "cluster.json" in line] == []


def refused_of(one: subprocess.Popen[bytes], other: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """The one of two jobs that ends first."""
    while one.poll() is None and other.poll() is None:
        time.sleep(0.05)
    return one if other.poll() is None else other


def test_of_two_launches_of_a_user_one_runs_and_its_tasks_are_tried_again(
    home: None, hadoop: Hadoop, jobs: Jobs, places: Places, tmp_path: Path
) -> None:
    """A map that may not read, and a reducer whose disk is full, until somebody mends it. A truncated file is reported.

    With HDFS's permissions on, tasks write as the user of the job, whoever the node runs them as.
    """
    full = tmp_path / "full"
    full.touch()
    with (
        start_as_user(hadoop, places, full, CUT) as one,
        start_as_user(hadoop, places, full, CUT) as other,
    ):
        refused = refused_of(one, other)
        process = other if refused is one else one
        runs = [f"another run writes to this directory (process {pid} on " for pid in children(process.pid)]
        said = ended(refused)
        assert said.status == 2, said.stderr
        assert any(text in said.last_line for text in runs), said.stderr
        task = stopped(jobs, "chunks", process)
        os.kill(task.pid, signal.SIGCONT)
        while is_running(task):
            time.sleep(0.02)
        jobs.fs("-chmod", "644", "/faults/a/x1.cdx")
        while "No space left on device" not in notes_of(hadoop, task):
            assert process.poll() is None, ended(process)
            time.sleep(0.1)
        full.unlink()
        job = ended(process)
    assert job.status == 1, job.stderr
    reason = "the file is truncated inside a gzip member; none of its lines are in the cluster"
    assert f"{CUT}: {reason}" in job.stderr
    assert job.counter("Failed map tasks") >= 1
    assert job.counter("Failed reduce tasks") >= 1
    assert jobs.get(OF_USER, tmp_path) == places.expected["a"]
    listed = jobs.fs("-ls", "-R", f"/user/{USER}").decode().splitlines()
    assert any(line.endswith(f"/user/{USER}/C/cluster.json") for line in listed)
    assert [line for line in listed if line.split()[2] != USER] == []
