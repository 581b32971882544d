"""100,000 inputs on this machine: each is read, and the process that starts the others takes little memory."""

from __future__ import annotations

from pathlib import Path

from tests.material.many_files import DUPLICATES, SHARDS, command, many_files, run_with_peak, same_as_one_file


def test_a_cluster_of_100_000_files(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    options: list[str | Path] = ["-s", str(SHARDS), "--location", "/published", "-p", "2", "-o", cluster]
    with many_files(tmp_path) as many:
        done = run_with_peak([command(), "zipnum", *options, many])
    assert DUPLICATES in done.stderr
    assert same_as_one_file(cluster, tmp_path)
    assert done.peak < 250
