"""The shards of a merged cluster: as many as are asked for, or as the clusters have, each with about as many lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.cli.main import main

LINES = [f'com,example)/{number} 20200101000000 {{"url": "x"}}'.encode() for number in range(10_000, 12_000)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The clusters even and odd, with the same split point, in blocks of 20 lines."""
    monkeypatch.chdir(tmp_path)
    Path("points").write_bytes(b"com,example)/10300\n")
    for name, lines in ("even", LINES[::2]), ("odd", LINES[1::2]):
        Path(f"{name}.cdxj").write_bytes(b"\n".join(lines) + b"\n")
        words = ["zipnum", "-q", "-p", "1", "--splits", "points", "--numlines", "20"]
        assert main([*words, "-o", name, f"{name}.cdxj"]) == 0
    return tmp_path


def merged(here: Path, *words: str) -> list[int]:
    """The lines of each shard."""
    assert main(["merge", "-q", "-p", "1", "-o", "all", "--numlines", "20", *words, "even", "odd"]) == 0
    manifest = json.loads((here / "all/cluster.json").read_bytes())
    assert manifest["lines"] == len(LINES)
    return [shard["lines"] for shard in manifest["shards"]]


def test_by_default_the_shards_are_those_that_all_clusters_have(here: Path) -> None:
    assert merged(here) == [300, 1700]


def test_shards_that_are_asked_for_have_about_the_same_number_of_lines(here: Path) -> None:
    lines = merged(here, "-s", "4")
    assert len(lines) == 4
    assert max(lines) < 1.2 * min(lines)


def test_given_split_points_are_used(here: Path) -> None:
    Path("others").write_bytes(b"com,example)/11000\n")
    assert merged(here, "--splits", "others") == [1000, 1000]


def test_one_cluster_keeps_its_shards(here: Path) -> None:
    assert main(["merge", "-q", "-p", "1", "-o", "all", "--numlines", "20", "even"]) == 0
    manifest = json.loads((here / "all/cluster.json").read_bytes())
    assert [shard["lines"] for shard in manifest["shards"]] == [150, 850]
