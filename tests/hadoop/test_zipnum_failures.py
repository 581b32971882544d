"""zipnumclusterjob.py to a shared folder with a reducer killed in mid-write, and what it does not begin or finish."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import RunCdxmill

from .job_runs import HDFS, Ended, Jobs, Task, bare_python, ended, files_below

LINES = 120_000
POINTS = b"com,example)/0000010 2020\ncom,example)/0119000 2020\n"
LARGEST = 1


class Shared(NamedTuple):
    """A job whose largest shard's reducer was killed: which, how much it had written, and what came out."""

    job: Ended
    task: Task
    written: int
    directory: Path
    expected: dict[str, bytes]


def six_fields() -> Iterator[bytes]:
    """CDX lines whose order is another one once they are CDXJ: of the same second, and beyond ASCII."""
    for number in range(LINES):
        key = b"com,example)/%07d 2020" % number
        yield key + b" http://example.com/%07d/z 10 %d a.warc.gz" % (number, number)
        if not number % 100:
            yield key + b" http://example.com/%07d/z 9 %d a.warc.gz" % (number, number)
            yield key + b" http://example.com/%07d/\xc3\xa4 9 %d a.warc.gz" % (number, number)


def killed_in_mid_write(jobs: Jobs, is_running: Iterator[bool], partition: int) -> tuple[Task, int]:
    """The first attempt at this shard, and how many bytes of it were written when it was killed."""
    for _ in is_running:
        for task in jobs.tasks("shard"):
            if task.partition != partition:
                continue
            shard = task.directory / f"cdx-{partition:05d}.gz"
            for _ in is_running:  # to list all processes each time would take longer than the writing
                if shard.exists() and (size := shard.stat().st_size):
                    os.kill(task.pid, signal.SIGKILL)
                    return task, size
        time.sleep(0.002)
    raise AssertionError("the job ended before that")


@pytest.fixture(scope="module")
def shared(jobs: Jobs, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    directory = tmp_path_factory.mktemp("shared")
    lines = list(six_fields())
    random.Random(5).shuffle(lines)
    (directory / "six.cdx").write_bytes(b"\n".join([b" CDX N b a S V g", *lines]))
    (directory / "splits.txt").write_bytes(POINTS)
    same = ["--convert", "--numlines", "100", "--location", "/published"]
    splits, given = directory / "splits.txt", directory / "six.cdx"
    ours = run_cdxmill("zipnum", "-q", "-o", directory / "ours", "--splits", splits, *same, given)
    assert ours.returncode == 0, ours.stderr
    (directory / "a b").mkdir()
    left_behind = directory / "a b/.cdx-00002.gz.attempt_1_0001_r_000002_0.tmp"
    left_behind.write_bytes(b"of a job that failed")
    place = ["--splitfile", str(splits), "--zipnum-dir", (directory / "a b").as_uri()]
    python = ["--python-bin", bare_python("3.13")]
    with jobs.start("zipnumclusterjob", *python, *place, *same, given.as_uri()) as process:
        is_running = iter(lambda: process.poll() is None, False)
        task, written = killed_in_mid_write(jobs, is_running, LARGEST)
        job = ended(process)
    return Shared(job, task, written, directory / "a b", files_below(directory / "ours"))


def test_a_reducer_that_is_killed_is_started_anew(shared: Shared) -> None:
    assert (
        0 < shared.written <= len(shared.expected["cdx-00001.gz"])
    )  # a loaded machine sees it only when it is whole
    assert shared.task.attempt.endswith("_0")
    assert shared.job.status == 0, shared.job.stderr
    assert shared.job.counter("Failed reduce tasks") == 1
    assert shared.job.counter("Launched reduce tasks") >= 4


def test_the_shared_directory_has_the_bytes_of_the_local_engine_and_nothing_else(shared: Shared) -> None:
    built = files_below(shared.directory)
    assert sorted(built) == sorted(shared.expected)
    assert [name for name in shared.expected if built[name] != shared.expected[name]] == []


def test_lines_of_attempts_that_failed_are_not_counted(shared: Shared) -> None:
    assert shared.job.counter("lines") == LINES + 2 * LINES // 100
    assert shared.job.counter("blocks") == shared.expected["cluster.idx"].count(b"\n")


def test_a_python_that_is_too_old_is_told_of_with_what_to_do(jobs: Jobs, tmp_path: Path) -> None:
    """It is in the task's log alone; and where that is out of reach, in the task's status."""
    old = tmp_path / "python3.8"
    code = "import runpy, sys; sys.version_info = (3, 8, 18); del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
    old.chmod(0o755)
    (tmp_path / "a.cdx").write_bytes(b"a 2020 {}\n")
    job = jobs.run("samplecdxjob", "-q", "--python-bin", old, (tmp_path / "a.cdx").as_uri())
    assert (job.status, job.stdout, job.stderr.count("\n")) == (3, b"", 2), job.stderr
    assert job.stderr.startswith("ending application_")
    assert job.last_line.startswith("the job failed: cdxmill: this node has Python 3.8 at ")
    assert "give another with --python-bin; `yarn logs" in job.last_line


@pytest.fixture(scope="module")
def directories(jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In HDFS: /foreign with a file of somebody's."""
    directory = tmp_path_factory.mktemp("directories")
    for name in ("foreign/of-others.txt",):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(b"content")
    (directory / "x.cdx").write_bytes(b"a 2020 {}\n")
    jobs.fs("-put", directory / "foreign", directory / "x.cdx", f"{HDFS}/")


NEW = ("--zipnum-dir", "/new")


@pytest.mark.parametrize(
    ("splits", "options", "status", "reason"),
    [
        (b"b 2020\na 2020\n", NEW, 2, "splits.txt: split points must increase, but number 2"),
        (b"b 2020\n", (*NEW, "--shards", "3"), 2, "--shards 3 does not match"),
        (b"b 2020\n", ("--zipnum-dir", "/foreign"), 2, "/foreign: holds other files (of-others.txt); choose"),
        (
            b"b 2020\n",
            ("--zipnum-dir", "s3://no-such-bucket/x"),
            3,
            "The specified bucket does not exist); correct",
        ),
        (b"b 2020\n", (*NEW, "absent.cdx"), 2, "absent.cdx: no such file; for a file in HDFS"),
        (b"b 2020\n", (*NEW, "hdfs:///absent/y.cdx.gz"), 2, "hdfs:///absent/y.cdx.gz: "),
        (b"b 2020\n", (*NEW, "hdfs:///foreign"), 2, "hdfs:///foreign: no CDX file found"),
    ],
)
def test_what_cannot_become_a_cluster_is_told_before_any_job(
    splits: bytes,
    options: tuple[str, ...],
    status: int,
    reason: str,
    jobs: Jobs,
    directories: None,
    tmp_path: Path,
) -> None:
    (tmp_path / "splits.txt").write_bytes(splits)
    places = ("--splitfile", str(tmp_path / "splits.txt"), *options)
    job = jobs.run("zipnumclusterjob", "-q", *places, "hdfs:///x.cdx")
    assert (job.status, job.stderr.count("\n")) == (status, 1), job.stderr
    assert reason in job.stderr
