"""zipnumclusterjob.py to HDFS, in place of a cluster: lines that are hard to shuffle, a job that is killed half-way, and run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry, format_manifest, make_manifest
from tests.conftest import RunCdxmill
from tests.jobs import conftest as jobs_here
from tests.jobs.conftest import HardInputs, page_line

from .conftest import Hadoop
from .job_runs import BUCKET, HDFS, JOBS, Ended, Jobs, Task, bare_python, ended, files_below

hard_inputs = jobs_here.hard_inputs

CLUSTER = f"{HDFS}/clusters/hard"
OLD_SHARD = ShardEntry("cdx-00000.gz", 19, 1, 1, "0" * 64)
OLD = dict.fromkeys(("cdx-00000.gz", "part-00000", "cluster.idx"), b"of an older cluster")
OLD["cluster.json"] = format_manifest(make_manifest([OLD_SHARD], [], Compressor(), 3000))
SHARDS = 5
LARGEST = 3
POINTS = [b"!", b"!!", page_line(3), b"net,\ttab)/ 2"]
"""No line is in the second shard, nearly all are in the fourth; one point is a whole line, one has a tab."""
WHEN_DONE = {"_SUCCESS", "cluster.json", "cluster.idx", "cluster.summary", "cluster.loc"}


class Hard(NamedTuple):
    """Inputs as the launcher is given them, its options, and every file of the local engine's cluster."""

    given: list[str]
    local: list[Path]
    options: list[str]
    expected: dict[str, bytes]


@pytest.fixture(scope="module")
def hard(
    jobs: Jobs, hard_inputs: HardInputs, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory
) -> Hard:
    """In HDFS, S3 and on disk; without what Hadoop reads otherwise, for it goes by a file's name."""
    directory = tmp_path_factory.mktemp("hard")
    files = {path.name: path for path in hard_inputs.paths}
    (directory / "hard").mkdir()
    (directory / "empty.cdx").write_bytes(b"\n")
    for name in ("sorted.cdxj", "members.cdx.gz", "across.cdx.gz"):
        (directory / "hard" / name).symlink_to(files[name])
    (directory / "old/hard").mkdir(parents=True)
    for name, data in OLD.items():
        (directory / "old/hard" / name).write_bytes(data)
    jobs.fs("-put", (directory / "hard").as_uri(), f"{HDFS}/hard")
    jobs.fs("-mkdir", "-p", f"{HDFS}/clusters")
    jobs.fs("-put", (directory / "old/hard").as_uri(), CLUSTER)
    jobs.upload({"hard/reversed.cdxj": files["reversed.cdxj"]})
    (directory / "splits.txt").write_bytes(b"\n".join(POINTS) + b"\n")
    options = [
        "--splitfile",
        str(directory / "splits.txt"),
        "--shards",
        str(SHARDS),
        "--location",
        "/published",
    ]
    on_disk = [files["header-only.cdx"], directory / "empty.cdx"]
    local = [*(directory / "hard").iterdir(), files["reversed.cdxj"], *on_disk]
    same = ["--splits", directory / "splits.txt", "--location", "/published"]
    done = run_cdxmill("zipnum", "-q", "-o", directory / "expected", *same, *local)
    assert done.returncode == 0, done.stderr
    given = ["hdfs:///hard", f"s3a://{BUCKET}/hard/reversed.cdxj", *map(str, on_disk)]
    return Hard(given, local, options, files_below(directory / "expected"))


def command(hard: Hard, *more: str) -> list[str]:
    """To a path, which is one of HDFS, with parts to another, and files divided among mappers."""
    python = ["--python-bin", bare_python("3.9")]
    splits = ["--jobconf", "mapreduce.input.fileinputformat.split.maxsize=5000000"]
    return [
        *python,
        *splits,
        *more,
        *hard.options,
        "--zipnum-dir",
        "/clusters/hard",
        "--output-dir",
        "/parts",
        *hard.given,
    ]


class Killed(NamedTuple):
    """How a job that was killed ended, all that it left of the new cluster, and the old one."""

    job: Ended
    left: dict[str, bytes]
    old: dict[str, bytes]
    url: str


def held(jobs: Jobs, job: subprocess.Popen[bytes], partition: int) -> Task:
    """The reducer of this shard, stopped where it is."""
    while job.poll() is None:
        for task in jobs.tasks("shard"):
            if task.partition == partition:
                os.kill(task.pid, signal.SIGSTOP)
                return task
        time.sleep(0.01)
    raise AssertionError(ended(job))


@pytest.fixture(scope="module")
def killed(hard: Hard, jobs: Jobs, hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Killed when all reducers but one have committed."""
    with jobs.start("zipnumclusterjob", *command(hard, "--replace")) as process:
        task = held(jobs, process, LARGEST)
        others = [f"cdx-{number:05d}.gz" for number in range(SHARDS) if number != LARGEST]
        (new,) = {url.rpartition("/")[0] for url in jobs.listed(CLUSTER) if url.endswith("/.replaces")}
        jobs.wait_for_files(new, others)
        application = "_".join(["application", *task.attempt.split("_")[1:3]])
        hadoop.run("yarn", "application", "-kill", application)
        job = ended(process)
    with suppress(ProcessLookupError):
        os.kill(task.pid, signal.SIGKILL)  # resumed, it could finish the job before Hadoop ends it
    directory = tmp_path_factory.mktemp("killed")
    (directory / "old").mkdir()
    old = {name: data for name, data in jobs.get(CLUSTER, directory / "old").items() if "/" not in name}
    return Killed(job, jobs.get(new, directory), old, new)


@pytest.fixture(scope="module")
def again(killed: Killed, hard: Hard, jobs: Jobs) -> Ended:
    """The same command, once more."""
    return jobs.run("zipnumclusterjob", *command(hard, "--replace"))


def test_a_job_that_is_killed_says_so_in_one_line(killed: Killed) -> None:
    assert killed.job.status == 3
    assert killed.job.last_line.startswith("the job failed: ")
    assert "killed" in killed.job.last_line


def test_it_leaves_whole_shards_but_no_cluster(killed: Killed, hard: Hard) -> None:
    assert not WHEN_DONE & set(killed.left)
    shards = {name: data for name, data in killed.left.items() if name.startswith(("cdx-", "part-"))}
    assert len(shards) == 2 * (SHARDS - 1)
    assert [name for name, data in shards.items() if data != hard.expected[name]] == []


def test_the_cluster_that_it_should_replace_is_as_it_was(killed: Killed) -> None:
    assert killed.old == OLD


def test_what_it_leaves_is_not_published(killed: Killed, jobs: Jobs, tmp_path: Path) -> None:
    done = jobs.cdxmill("publish", killed.url, tmp_path / "published", check=False)
    assert done.returncode == 2
    assert b"cluster.json" in done.stderr
    assert not (tmp_path / "published").exists()


def test_the_same_command_gives_the_bytes_of_the_local_engine(
    again: Ended, hard: Hard, jobs: Jobs, tmp_path: Path
) -> None:
    assert again.status == 0, again.stderr
    built = jobs.get(CLUSTER, tmp_path)
    assert sorted(built) == sorted(hard.expected)
    assert [name for name, data in built.items() if data != hard.expected[name]] == []
    assert [url for url in jobs.listed(f"{HDFS}/clusters") if "/.hard." in url or "/hard/.run-" in url] == []


def test_the_parts_are_in_the_output_directory_too(
    again: Ended, hard: Hard, jobs: Jobs, tmp_path: Path
) -> None:
    parts = {name: data for name, data in hard.expected.items() if name.startswith("part-")}
    assert jobs.get(f"{HDFS}/parts", tmp_path) == parts


def test_lines_duplicates_blocks_and_bytes_are_counted(again: Ended, hard: Hard) -> None:
    summary = hard.expected["cluster.summary"]
    assert again.mappers == 4
    assert again.counter("blocks") == summary.count(b"\n")
    sizes = {name: len(data) for name, data in hard.expected.items() if name.startswith("cdx-")}
    del sizes["cdx-00001.gz"]  # Hadoop takes no counters from a reducer without input
    assert again.counter("bytes") == sum(sizes.values())
    told = f": {again.counter('lines')} lines in {again.counter('blocks')} blocks, {SHARDS} shards, "
    assert told in again.stderr


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_the_other_runners_give_the_same_bytes(runner: str, hard: Hard, tmp_path: Path) -> None:
    script: list[str | Path] = [sys.executable, JOBS / "zipnumclusterjob.py", "-q", "--no-conf", "-r", runner]
    places: list[str | Path] = [*hard.options, "--zipnum-dir", tmp_path / "cluster"]
    subprocess.run([*script, *places, *hard.local], check=True, stdin=subprocess.DEVNULL)
    assert files_below(tmp_path / "cluster") == hard.expected


def test_a_finished_cluster_is_not_touched(again: Ended, hard: Hard, jobs: Jobs) -> None:
    before = jobs.listed(CLUSTER)
    third = jobs.run("zipnumclusterjob", *command(hard))
    assert third.status == 2
    assert (
        third.last_line
        == "hdfs:///clusters/hard: holds a finished cluster; use --replace to replace it, or choose another directory"
    )
    assert jobs.listed(CLUSTER) == before
