"""A cluster is opened again if it changes in that moment; a list of its shards that cannot be read is an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cluster import reader
from cdxmill.cluster.reader import ClusterReader, Replaced, open_cluster
from cdxmill.errors import InputError
from cdxmill.formats.clusters.manifest import parse_manifest
from cdxmill.formats.clusters.zipnum import STAGED_MANIFEST

LINE = b"com,example)/ 2020 {}"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "a.cdxj").write_bytes(LINE + b"\n")
    cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "C", shards=1, processes=1)
    return tmp_path / "C"


def changes(monkeypatch: pytest.MonkeyPatch, times: int) -> Iterator[bool]:
    """The index of a cluster is replaced while it is opened, as many `times`. Returns what is left of them."""
    answers = iter([True] * times)
    monkeypatch.setattr(ClusterReader, "has_other_index", lambda _: next(answers, False))
    return answers


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_cluster_that_changes_while_it_is_opened_is_opened_again(
    times: int, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = changes(monkeypatch, times)
    with cdxmill.Cluster(cluster) as opened:
        assert list(opened.lines("*")) == [[LINE]]
    assert next(left, None) is None


def test_one_that_never_stops_changing_is_an_error(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = changes(monkeypatch, 1000)
    with pytest.raises(Replaced, match="run it again"), open_cluster(cluster):
        pass
    assert next(left)


def test_locations_that_cannot_be_read_are_an_error(cluster: Path) -> None:
    (cluster / "cluster.loc").unlink()
    with cdxmill.Cluster(cluster) as opened:
        assert list(opened.lines("*")) == [[LINE]], "without them, shards are beside the index"
    (cluster / "cluster.loc").mkdir()
    with pytest.raises(InputError, match=r"cluster.loc: "), cdxmill.Cluster(cluster) as opened:
        list(opened.lines("*"))


@pytest.fixture
def changed(cluster: Path, tmp_path: Path) -> bytes:
    """The cluster.json of the cluster before it has got lines, and one block of them in place of another."""
    old = (cluster / "cluster.json").read_bytes()
    (tmp_path / "b.cdxj").write_bytes(
        b"".join(b"com,example)/%05d 2020 {}\n" % number for number in range(9000))
    )
    cdxmill.add(cluster, tmp_path / "b.cdxj", cdx=True, processes=1)
    return old


def number_of_lines(cluster: Path) -> int:
    with cdxmill.Cluster(cluster) as opened:
        return sum(map(len, opened.lines("*")))


def test_a_cluster_json_that_follows_its_index_in_a_moment_is_read_again(
    cluster: Path, changed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = parse_manifest(changed)
    monkeypatch.setattr(reader, "manifest_of_index", lambda _: (old, None))
    assert number_of_lines(cluster) == 9001
    monkeypatch.setattr(reader, "manifest_beside", lambda _: old)
    with pytest.raises(InputError, match="the index is truncated, or belongs to another cluster"):
        number_of_lines(cluster)


def test_between_the_index_and_cluster_json_of_a_change_the_staged_one_is_read(
    cluster: Path, changed: bytes
) -> None:
    staged = cluster / STAGED_MANIFEST
    staged.parent.mkdir()
    staged.write_bytes((cluster / "cluster.json").read_bytes())
    (cluster / "cluster.json").write_bytes(changed)
    assert number_of_lines(cluster) == 9001
    staged.write_bytes(b"{")
    with pytest.raises(InputError, match="the index is truncated, or belongs to another cluster"):
        number_of_lines(cluster)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_shard_that_a_replacement_has_deleted_is_no_error_of_the_file(
    is_replaced: bool, tmp_path: Path
) -> None:
    lines = tmp_path / "b.cdxj"
    lines.write_bytes(LINE + b"\ncom,example)/b 2020 {}\n")
    options: dict[str, Any] = {"output": tmp_path / "B", "processes": 1, "replace": True}
    cdxmill.zipnum(lines, shards=2, **options)
    with open_cluster(tmp_path / "B") as opened:
        (tmp_path / "B/cdx-00001.gz").unlink()
        if is_replaced:
            cdxmill.zipnum(lines, shards=1, **options)
        with pytest.raises(InputError, match=r"it was replaced" if is_replaced else r"cdx-00001.gz: "):
            opened.read(b"cdx-00001.gz", 0, 10)
