"""A reducer whose launcher was killed, a data node that is away, and twins that Hadoop itself starts: the same bytes, or no cluster."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import Hadoop
from .job_runs import HDFS, Ended, Jobs, Task, ended, files_below
from .test_faults import CLUSTER, Places, is_running, places, stopped, words
from .test_refused_jobs import children, command_of

__all__ = ["places"]  # a fixture


class Left(NamedTuple):
    """A run whose launcher was killed: its application, a reducer that is stopped, and what a second run said meanwhile."""

    application: str
    task: Task
    refused: Ended
    temporary: list[str]


@pytest.fixture(scope="module")
def left(jobs: Jobs, places: Places) -> Left:
    with jobs.start("zipnumclusterjob", *words(places, "a")) as process:
        task = stopped(jobs, "shard", process, lambda task: task.partition == 1)
        launchers = [pid for pid in children(process.pid) if b"zipnumclusterjob" in command_of(pid)]
        for pid in launchers:
            os.kill(pid, signal.SIGKILL)
    application = "_".join(["application", *task.attempt.split("_")[1:3]])
    refused = jobs.run("zipnumclusterjob", "-q", *words(places, "b"))
    left = Left(application, task, refused, temporary_files(jobs))
    os.kill(task.pid, signal.SIGCONT)
    while is_running(task):
        time.sleep(0.05)
    jobs.final_status(application)  # its master ends a little later
    return left


def temporary_files(jobs: Jobs) -> list[str]:
    return [url for url in jobs.listed(f"{HDFS}/user") if "/tmp/mrjob/" in url]


def test_while_a_job_of_a_killed_launcher_runs_another_run_is_refused(left: Left) -> None:
    assert left.refused.status == 2, left.refused.stderr
    assert f"{CLUSTER.removeprefix('hdfs://')}: {left.application} of an earlier run" in left.refused.stderr
    assert left.temporary


def data_node(hadoop: Hadoop) -> int:
    """The process of the only data node."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, directory = (process / "cmdline").read_bytes(), (process / "cwd").readlink()
        except OSError:
            continue
        if b"\0-Dproc_datanode\0" in command and directory == hadoop.directory:
            return int(process.name)
    raise AssertionError("there is no data node")


@contextmanager
def data_node_back(hadoop: Hadoop) -> Iterator[None]:
    """It is started again."""
    with hadoop.start("hadoop", "datanode") as node:
        yield
        os.killpg(node.pid, 0)  # it lives, and ends with the cluster
        node.returncode = 0
        for pipe in (node.stdout, node.stderr):
            assert pipe is not None
            pipe.close()


def opened(hadoop: Hadoop) -> int:
    """How often tasks and their Java have asked the name node for a file."""
    log = (hadoop.home / "logs/namenode.log").read_text(errors="replace")
    return len(re.findall(r"cmd=open\s+src=/(?:faults|user)/", log))


def cluster(jobs: Jobs, directory: Path) -> dict[str, bytes]:
    directory.mkdir()
    return jobs.get(CLUSTER, directory)


def test_after_a_killed_launcher_a_data_node_that_is_away_is_waited_for(
    left: Left, jobs: Jobs, hadoop: Hadoop, places: Places, tmp_path: Path
) -> None:
    """What the earlier run has left changes nothing, and is deleted."""
    with jobs.start("zipnumclusterjob", *words(places, "b")) as process:
        task = stopped(jobs, "chunks", process)
        os.kill(data_node(hadoop), signal.SIGKILL)
        before = opened(hadoop)
        os.kill(task.pid, signal.SIGCONT)
        while opened(hadoop) < before + 3:  # whoever reads tries again
            assert process.poll() is None, ended(process)
            time.sleep(0.1)
        with data_node_back(hadoop):
            job = ended(process)
    if job.status == 0:
        # on a busy machine, one attempt may wait for too long; four in a row would end the job
        assert job.counter("Failed map tasks") <= 1, "each waited"
    else:  # it was away for too long: no cluster then, and the same command makes it
        assert job.status == 3, job.stderr
        job = jobs.run("zipnumclusterjob", *words(places, "b"))
    assert job.status == 0, job.stderr
    assert cluster(jobs, tmp_path / "got") == places.expected["b"]
    assert temporary_files(jobs) == []


SPECULATE = (
    "mapreduce.reduce.speculative=true",
    "mapreduce.job.speculative.retry-after-no-speculate=500",
)


def twin_of(jobs: Jobs, slow: Task, process: subprocess.Popen[bytes]) -> Task:
    """The attempt that Hadoop starts beside a slow one."""
    while process.poll() is None:
        for task in jobs.tasks("shard"):
            if (task.partition, task.pid) != (slow.partition, slow.pid) and task.partition == slow.partition:
                return task
        time.sleep(0.05)
    raise AssertionError(ended(process))


def test_twins_of_speculative_execution_write_one_shard(jobs: Jobs, places: Places, tmp_path: Path) -> None:
    """To a directory that all nodes share, where both write under the same names; the slow one goes on beside its twin."""
    options = [word for setting in SPECULATE for word in ("--jobconf", setting)]
    given = words(places, "a", *options)
    given[given.index(CLUSTER)] = (tmp_path / "C").as_uri()
    with jobs.start("zipnumclusterjob", *given) as process:
        slow = stopped(jobs, "shard", process, lambda task: task.partition == 1)
        twin = twin_of(jobs, slow, process)
        os.kill(slow.pid, signal.SIGCONT)
        job = ended(process)
    assert job.status == 0, job.stderr
    assert twin.attempt != slow.attempt
    assert job.counter("Launched reduce tasks") == 3
    assert job.counter("Failed reduce tasks") == 0
    assert files_below(tmp_path / "C") == places.expected["a"]
