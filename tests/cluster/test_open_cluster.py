"""What an open cluster asks of its storage, and what it reports if that fails or has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster import reader
from cdxmill.cluster.reader import ClusterReader, Replaced, open_cluster
from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError
from cdxmill.formats.clusters.zipnum import BEYOND
from cdxmill.stages.zipnum.find_lines import find_lines
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.storage.location import Location
from tests.storage.range_server import serving

from .test_reader import two

__all__ = ["two"]


def test_a_cluster_at_a_url_is_asked_seldom_whether_it_is_the_same(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ClusterReader] = []

    def note(one: ClusterReader) -> bool:
        asked.append(one)
        return False

    with serving() as server:
        for path in two.iterdir():
            server.add(f"/B/{path.name}", path.read_bytes())
        with open_cluster(f"{server.url}/B") as opened:
            monkeypatch.setattr(ClusterReader, "has_other_index", note)
            for _ in range(2):
                assert opened.read(b"cdx-00000.gz", 0, 9)
                assert not opened.has_changed()
            assert asked == []
            monkeypatch.setattr(reader, "UNCHECKED", -1.0)
            assert opened.read(b"cdx-00000.gz", 0, 9)
            assert not opened.has_changed()
            assert len(asked) == 2


class Failing:
    """Reads of cluster.loc raise an error."""

    def __init__(self, error: InputError, monkeypatch: pytest.MonkeyPatch) -> None:
        read = Location.read_bytes

        def read_or_fail(place: Location) -> bytes:
            if place.name == "cluster.loc":
                raise error
            return read(place)

        monkeypatch.setattr(Location, "read_bytes", read_or_fail)


@pytest.mark.parametrize("kind", [AbsentError, RefusedError, InputError, OutageError])
def test_only_an_outage_of_remote_locations_is_an_error(
    kind: type[InputError], two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may name a place where the shard is. Local ones that exist can be read."""
    error = kind("cluster.loc", "cannot be read (reason)")
    is_outage = kind is OutageError
    Failing(error, monkeypatch)
    with pytest.raises(kind, match=r"\(reason\)"), open_cluster(two):
        pass
    with serving() as server:
        server.add("/B/cluster.idx", (two / "cluster.idx").read_bytes())
        reason = r"\(reason\)" if is_outage else r"cdx-00000\.gz: .*404"
        with open_cluster(f"{server.url}/B") as opened, pytest.raises(InputError, match=reason):
            opened.read(b"cdx-00000.gz", 0, 9)


def test_of_two_outages_the_first_is_reported(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OutageError("shard", "cannot be read (503 Slow Down)")

    with serving() as server:
        server.add("/B/cluster.idx", (two / "cluster.idx").read_bytes())
        with open_cluster(f"{server.url}/B") as opened:
            Failing(OutageError("cluster.loc", "cannot be read"), monkeypatch)
            monkeypatch.setattr(ClusterReader, "_open_and_read", fail)
            with pytest.raises(OutageError, match="shard: cannot be read"):
                opened.read(b"cdx-00000.gz", 0, 9)


def test_what_is_known_of_a_cluster_is_what_its_manifest_says(two: Path, tmp_path: Path) -> None:
    def known() -> tuple[int | None, int | None, bool]:
        with open_cluster(two) as opened:
            return opened.total_lines(), opened.block_lines(), opened.has_full_blocks()

    assert known() == (2, 3000, True)
    (tmp_path / "c.cdxj").write_bytes(b"com,example)/c 2020 {}\n")
    cdxmill.add(two, tmp_path / "c.cdxj", cdx=True, processes=1)
    assert known() == (3, 3000, False)
    with open_cluster(two) as opened:
        (two / "cluster.json").write_bytes((two / "cluster.json").read_bytes() + b"\n")
        assert opened.has_changed(), "it lists the overlays"
    (two / "cluster.json").unlink()
    assert known() == (None, None, True)


def test_a_damaged_index_of_a_cluster_that_was_replaced_is_not_reported_as_damaged(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise DamagedCluster("is out of order")

    with open_cluster(two) as opened:
        with pytest.raises(DamagedCluster, match="the index has 0 blocks"):
            opened.check_last(None)
        monkeypatch.setattr(opened.index, "check_ends", fail)
        with pytest.raises(DamagedCluster, match="out of order"):
            opened.check_index()
        monkeypatch.setattr(ClusterReader, "has_other_index", lambda _: True)
        monkeypatch.setattr(ClusterReader, "_is_changed", lambda _: False)
        for check in (opened.check_index, lambda: opened.check_last(None)):
            with pytest.raises(Replaced):
                check()


def test_a_cluster_whose_manifest_is_gone_may_be_another_one(two: Path, tmp_path: Path) -> None:
    (two / "cluster.json").unlink()
    with open_cluster(two) as opened:
        opened.check_last(None)
        (two / "cluster.idx").write_bytes((two / "cluster.idx").read_bytes() + b"x")
        with pytest.raises(Replaced):
            opened.read(b"cdx-00001.gz", 0, 9)


def test_an_index_that_is_out_of_order_at_its_ends_is_damaged(two: Path) -> None:
    rows = [row.rpartition(b"\t")[0] for row in (two / "cluster.idx").read_bytes().splitlines()]
    (two / "cluster.idx").write_bytes(b"%b\t1\n%b\t2\n" % (rows[1], rows[0]))
    with pytest.raises(InputError, match="out of order"), open_cluster(two):
        pass


def test_a_cluster_without_lines_and_one_with_a_longer_shard_are_not_truncated(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest has the number of blocks. If it is that of the index, it is not read again."""
    shutil.copytree(two, tmp_path / "empty")
    cdxmill.remove(tmp_path / "empty", "example.com/*", keep_old=0, processes=1)
    monkeypatch.setattr(reader, "manifest_beside", None)
    with (two / "cdx-00001.gz").open("ab") as file:
        file.write(b"x")
    for place, count in ((two, 2), (tmp_path / "empty", 0)):
        with cdxmill.Cluster(place) as opened:
            assert sum(map(len, opened.lines("*"))) == count


def test_blocks_are_read_by_the_function_that_is_given(two: Path) -> None:
    shards = []
    with open_cluster(two) as opened:

        def read(shard: bytes, offset: int, size: int) -> bytes:
            shards.append(shard)
            return opened.read(shard, offset, size)

        list(find_lines(opened.index.blocks(b""), opened.blocks(read), b"", BEYOND, join=True))
    assert set(shards) == {b"cdx-00000.gz", b"cdx-00001.gz"}
