"""Issue 33: a data node that is away, a node whose disk is full, and twins that Hadoop itself starts: the same bytes, or no cluster."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .conftest import Hadoop
from .job_runs import Jobs, ended
from .test_faults import Places, cluster, places, stopped, words

__all__ = ["places"]  # a fixture


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


def notes_of(hadoop: Hadoop) -> str:
    """What the tasks of all jobs have printed so far, and their Java."""
    found = (hadoop.home / "logs/userlogs").glob("application_*/container_*/s[ty]*")
    return "".join(path.read_text(errors="replace") for path in found)


def test_a_data_node_that_is_away_is_waited_for(
    jobs: Jobs, hadoop: Hadoop, places: Places, tmp_path: Path
) -> None:
    with jobs.start("zipnumclusterjob", *words(places, "a")) as process:
        task = stopped(jobs, "chunks", process)
        os.kill(data_node(hadoop), signal.SIGKILL)
        os.kill(task.pid, signal.SIGCONT)
        while not re.search("tried again for up to|will wait for", notes_of(hadoop)):
            assert process.poll() is None, ended(process)
            time.sleep(0.2)
        with data_node_back(hadoop):
            job = ended(process)
    assert job.status == 0, job.stderr
    assert job.counter("Failed map tasks") == 0, "each waited; four attempts in a row would end the job"
    assert cluster(jobs, tmp_path / "got") == places.expected["a"]
