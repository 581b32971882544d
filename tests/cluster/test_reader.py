"""A cluster is opened again if it changes in that moment; a list of its shards that cannot be read is an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster.reader import ClusterReader, Replaced, open_cluster
from cdxmill.errors import InputError

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
