"""100,000 inputs of one job: each is read, and neither the launcher nor its Java takes more memory than a few files take."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.material.many_files import DUPLICATES, LINES, PEAK, SHARDS, line, many_files, same_as_one_file

from .conftest import Hadoop
from .job_runs import JOBS, Jobs


def test_a_cluster_of_100_000_files(jobs: Jobs, hadoop: Hadoop, tmp_path: Path) -> None:
    """They are in a directory that all nodes share: to put them into HDFS takes longer than the job."""
    cluster, splits = tmp_path / "cluster", tmp_path / "splits.txt"
    splits.write_bytes(b"".join(line(LINES * number // SHARDS) for number in range(1, SHARDS)))
    options: list[str | Path] = [
        "--splitfile",
        splits,
        "--zipnum-dir",
        cluster.as_uri(),
        "--location",
        "/published",
    ]
    job = [sys.executable, JOBS / "zipnumclusterjob.py", "--no-conf", "-r", "hadoop", *options]
    with many_files(tmp_path) as many:
        done = hadoop.run(*PEAK, *job, many.as_uri())
    assert DUPLICATES.encode() in done.stderr
    assert same_as_one_file(cluster, tmp_path)
    assert int(done.stdout) / 1024 < 500
