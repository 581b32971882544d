"""A collection in S3 and HDFS: overlays, and another cluster, are added to it there and removed, in few requests."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import cdxmill
from cdxmill.storage.location import locate
from tests.material.cdx_files import cdxj, write_plain

PLACE = '{"filename": "a.warc.gz", "offset": "%d", "length": "5"}'
OLD = [cdxj(f"com,a)/{number:04d}", rest=PLACE % number) for number in range(600)]
SPREAD = [cdxj(f"com,a)/{number:04d}x", rest=PLACE % number) for number in range(0, 600, 40)]
NEAR = [cdxj(f"com,a)/0300-{number:04d}", rest=PLACE % number) for number in range(150)]
NEW_FILES = (".finished.json", ".kept.json", "archives.tsv", "changes.jsonl")
POINTS = ["com,a)/0200", "com,a)/0400"]
MOST = {
    "s3": {"cluster": 157, "overlay": 114, "lookup": 16, "verify": 53, "remove": 115, "compact": 150},
    "hdfs": {"cluster": 258, "overlay": 204, "lookup": 29, "verify": 100, "remove": 205, "compact": 221},
}
"""Requests. A read of HDFS takes three, a file that is written four. A change of a small cluster writes about ten files."""
Few = Callable[[str], AbstractContextManager[None]]


@pytest.fixture
def few(elsewhere: str, caplog: pytest.LogCaptureFixture) -> Few:
    """A context in which there are not many requests."""
    caplog.set_level(logging.DEBUG, "urllib3.connectionpool")
    most = MOST[elsewhere.partition(":")[0]]

    @contextmanager
    def at_most(what: str) -> Iterator[None]:
        caplog.clear()
        yield
        told = [one.getMessage() for one in caplog.records if one.name == "urllib3.connectionpool"]
        asked = [line for line in told if re.search(r'"(?:GET|PUT|HEAD|POST|DELETE) ', line)]
        assert 0 < len(asked) <= most[what], what

    return at_most


@pytest.fixture
def cluster(elsewhere: str, tmp_path: Path) -> str:
    """A cluster of three shards."""
    write_plain(tmp_path / "points", [point.encode() for point in POINTS])
    write_plain(tmp_path / "old.cdxj", OLD)
    cdxmill.zipnum(
        tmp_path / "old.cdxj", output=tmp_path / "C", splits=tmp_path / "points", numlines=20, processes=1
    )
    cdxmill.publish(tmp_path / "C", f"{elsewhere}/C", processes=1)
    return f"{elsewhere}/C"


def lines_of(cluster: str) -> list[bytes]:
    with cdxmill.Cluster(cluster) as opened:
        return [line for lines in opened.lines("*") for line in lines]


def test_another_cluster_and_an_overlay(cluster: str, tmp_path: Path, few: Few) -> None:
    """Of another cluster, only the shard that gets lines is written."""
    write_plain(tmp_path / "near.cdxj", NEAR)
    splits, other = tmp_path / "points", cluster.replace("/C", "/N")
    cdxmill.zipnum(tmp_path / "near.cdxj", output=tmp_path / "N", splits=splits, numlines=20, processes=1)
    cdxmill.publish(tmp_path / "N", other, processes=1)
    with (locate(other) / "archives.tsv").write_atomic() as file:
        file.write(b"a.warc.gz\t/data/a.warc.gz\n")
    before = locate(cluster).entries()
    with few("cluster"):
        done = cdxmill.add(cluster, other, cdx=True, keep_old=60, processes=1)
    assert (done.added, done.shards) == (len(NEAR), 1)
    assert locate(cluster).entries().keys() - before.keys() == {"cdx-00001-1.gz", "part-00001-1", *NEW_FILES}
    path = write_plain(tmp_path / "spread.cdxj", SPREAD)
    with few("overlay"):
        cdxmill.add(cluster, path, cdx=True, mode="overlay", processes=1)
    assert lines_of(cluster) == sorted(OLD + NEAR + SPREAD)
    with few("lookup"):
        assert len(list(cdxmill.lookup(cluster, "a.com/0040x"))) == 1
    with few("verify"):
        assert not cdxmill.verify(cluster, processes=1).failures
    with few("remove"):
        assert cdxmill.remove(cluster, "a.com/0040x", keep_old=0, processes=1).removed == 1
    with few("compact"):
        cdxmill.compact(cluster, keep_old=0, processes=1)
    assert b"overlay" not in (locate(cluster) / "cluster.json").read_bytes()
    assert lines_of(cluster) == sorted(OLD + NEAR + SPREAD[:1] + SPREAD[2:])
