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
OLD = [cdxj(f"com,a)/{number:04d}", rest=PLACE % number) for number in range(1200)]
SPREAD = [cdxj(f"com,a)/{number:04d}x", rest=PLACE % number) for number in range(0, 1200, 40)]
NEAR = [cdxj(f"com,a)/0500-{number:04d}", rest=PLACE % number) for number in range(300)]
NEW_FILES = (".finished.json", ".kept.json", "archives.tsv", "changes.jsonl")
POINTS = ["com,a)/0400", "com,a)/0800"]
MOST = {
    "s3": {"overlay": 115, "lookup": 18, "verify": 65, "remove": 115, "compact": 180, "cluster": 165},
    "hdfs": {"overlay": 205, "lookup": 32, "verify": 120, "remove": 205, "compact": 230, "cluster": 260},
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
    cdxmill.zipnum(tmp_path / "old.cdxj", output=tmp_path / "C", splits=tmp_path / "points", numlines=20)
    cdxmill.publish(tmp_path / "C", f"{elsewhere}/C")
    return f"{elsewhere}/C"


def lines_of(cluster: str) -> list[bytes]:
    with cdxmill.Cluster(cluster) as opened:
        return [line for lines in opened.lines("*") for line in lines]


def test_overlays(cluster: str, tmp_path: Path, few: Few) -> None:
    for number in range(2):
        path = write_plain(tmp_path / f"{number}.cdxj", SPREAD[number::2])
        with few("overlay"):
            cdxmill.add(cluster, path, cdx=True, mode="overlay", keep_old=0, processes=1)
    assert lines_of(cluster) == sorted(OLD + SPREAD)
    with few("lookup"):
        assert len(list(cdxmill.lookup(cluster, "a.com/0040x"))) == 1
    with few("verify"):
        assert not cdxmill.verify(cluster, processes=1).failures
    with few("remove"):
        assert cdxmill.remove(cluster, "a.com/0040x", keep_old=0, processes=1).removed == 1
    left = sorted(OLD + SPREAD[:1] + SPREAD[2:])
    with few("compact"):
        cdxmill.compact(cluster, keep_old=0, processes=1)
    assert lines_of(cluster) == left
    assert b"overlay" not in (locate(cluster) / "cluster.json").read_bytes()
    assert not cdxmill.verify(cluster, processes=1).failures


def test_another_cluster(cluster: str, tmp_path: Path, few: Few) -> None:
    """Only the shard that gets lines is written. Blocks between whose lines there are no others are copied."""
    write_plain(tmp_path / "near.cdxj", NEAR)
    cdxmill.zipnum(tmp_path / "near.cdxj", output=tmp_path / "N", splits=tmp_path / "points", numlines=20)
    other = cluster.replace("/C", "/N")
    cdxmill.publish(tmp_path / "N", other)
    with (locate(other) / "archives.tsv").write_atomic() as file:
        file.write(b"a.warc.gz\t/data/a.warc.gz\n")
    before = locate(cluster).entries()
    with few("cluster"):
        done = cdxmill.add(cluster, other, cdx=True, keep_old=60, processes=1)
    assert (done.added, done.shards) == (len(NEAR), 1)
    assert locate(cluster).entries().keys() - before.keys() == {"cdx-00001-1.gz", "part-00001-1", *NEW_FILES}
    assert lines_of(cluster) == sorted(OLD + NEAR)
    assert not cdxmill.verify(cluster, processes=1).failures
