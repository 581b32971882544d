"""100,000 inputs on Spark: each is read, and the Python of the driver takes little memory."""

from __future__ import annotations

from pathlib import Path

from tests.material.many_files import DUPLICATES, SHARDS, command, many_files, run_with_peak, same_as_one_file


def test_a_cluster_of_100_000_files(tmp_path: Path, kept: Path) -> None:
    cluster = tmp_path / "cluster"
    options: list[str | Path] = [
        "-s",
        str(SHARDS),
        "--location",
        "/published",
        "--engine",
        "spark",
        "--master",
        "local[2]",
    ]
    with many_files(tmp_path) as many:
        words = [command(), "zipnum", *options, "-o", cluster, many]
        done = run_with_peak(words, {"CDXMILL_CACHE": str(kept.parents[1])})
    assert DUPLICATES in done.stderr
    assert same_as_one_file(cluster, tmp_path)
    assert done.peak < 300
