"""Options of `prefix-index search` and `lookup` that a prefix B-tree refuses, and its lines in an estimate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster
from ..material.trees import LINES, build


@pytest.mark.parametrize(
    ("words", "reason"), [(["--from", "soon"], "soon"), (["--filter", "status=200"], "expected =status:200")]
)
def test_a_wrong_option_is_reported_in_one_line(
    tmp_path: Path, words: list[str], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    assert main(["prefix-index", "search", tree, "*", *words]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert reason in line


def test_only_a_cluster_has_shards_elsewhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write_plain(tmp_path / "a.cdxj", LINES)
    for source in (file, build(tmp_path, file), f"{file},{tmp_path}/x.tree"):
        assert main(["lookup", str(source), "*", "--shard-index-loc", "^", "there/"]) == 2
        assert "--shard-index-loc needs a cluster" in capfd.readouterr().err


def test_the_lines_of_a_tree_beside_a_cluster_are_counted_for_an_estimate(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    cluster = write_raw_cluster(tmp_path / "C", LINES[:20], 20)
    found = []
    for source in (tree, cluster, f"{cluster},{tree}"):
        assert main(["lookup", source, "*.example.com", "--estimate"]) == 0
        found.append(json.loads(capfd.readouterr().out))
    assert found[0] == {"lines": 602, "least": 602, "most": 602, "blocks": 0}
    assert found[2]["lines"] == found[1]["lines"] + 602
    assert (found[2]["least"], found[2]["blocks"]) == (602, found[1]["blocks"])


def test_a_tree_of_another_layout_has_no_captures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tree = build(
        tmp_path, write_plain(tmp_path / "a.tsv", [b"http://a.com/\t1 2"]), layout="kind:u8,place:u16"
    )
    for words in (["--from", "2020"], ["--filter", "=status:200"], ["--fl", "url"], ["--output", "csv"]):
        assert main(["prefix-index", "search", tree, "http*", *words]) == 2
        assert "has no captures: no fields, times and filters" in capfd.readouterr().err
    assert main(["lookup", tree, "http://a.com/"]) == 2
    assert "use cdxmill prefix-index search" in capfd.readouterr().err
