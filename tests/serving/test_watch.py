"""`serve --watch`: archives that appear in a directory are served; files that still grow are waited for."""

from __future__ import annotations

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cdxmill
from cdxmill.commands.collections import watch
from cdxmill.commands.collections.add import add
from cdxmill.commands.collections.summary import ChangeSummary
from cdxmill.commands.collections.watch import WatchedDirectory
from cdxmill.errors import StoppedError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold

from ..material.clock import Clock
from ..material.clusters import write_raw_cluster
from .test_serve import Server

SETTLE = 10


@pytest.fixture
def cluster(pywb_warcs: Path, tmp_path: Path) -> Path:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=2, processes=1)
    (tmp_path / "warcs").mkdir()
    return tmp_path / "C"


def count(cluster: Path) -> int:
    with cdxmill.Cluster(cluster) as opened:
        return opened.count("*")


def test_archives_that_appear_are_served(cluster: Path, pywb_warcs: Path) -> None:
    warcs = cluster.parent / "warcs"
    server = Server(cluster, "--watch", str(warcs), "--settle", "0")
    try:
        for name, page in (
            ("example.warc.gz", "example.com/?example=1"),
            ("example2.warc.gz", "example.com/"),
        ):
            shutil.copy(pywb_warcs / name, warcs / f"{name}.tmp")
            (warcs / f"{name}.tmp").rename(warcs / name)
            assert server.process.stderr is not None
            assert next(line for line in server.process.stderr if " added; " in line)
            assert name in server.get(f"/web/cdx?url={page}")
            assert server.get(f"/web/2020id_/http://{page}")
    finally:
        status, rest = server.stop(signal.SIGINT)
    assert (status, "Traceback" in rest) == (130, False)
    assert not (cluster / ".lock").exists()


def test_a_file_that_grows_is_waited_for(
    cluster: Path, clock: Clock, pywb_warcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, data = count(cluster), (pywb_warcs / "example.warc.gz").read_bytes()
    path = cluster.parent / "warcs/example.warc.gz"
    watched = WatchedDirectory(str(cluster), str(path.parent), SETTLE, 1)
    for size in (0, len(data) // 2, len(data)):
        path.write_bytes(data[:size])
        watched.look()
        clock.now += SETTLE - 1
        watched.look()
        assert count(cluster) == before
    clock.now += 1
    watched.look()
    assert count(cluster) > before
    assert capsys.readouterr().err.count("\n") == 1


def test_a_failure_is_reported_once_and_a_new_state_is_tried(
    cluster: Path, clock: Clock, pywb_warcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (pywb_warcs / "example.warc.gz").read_bytes()
    (cluster.parent / "warcs/example.warc.gz").write_bytes(data[: len(data) - 50])
    (cluster.parent / "warcs/broken.wacz").write_bytes(b"PK\x03\x04")
    watched = WatchedDirectory(str(cluster), str(cluster.parent / "warcs"), SETTLE, 1)
    for _ in range(4):
        watched.look()
        clock.now += SETTLE
    told = capsys.readouterr().err
    assert told.count("example.warc.gz@") == 1
    assert told.count("broken.wacz") == 1
    found = count(cluster)
    (cluster.parent / "warcs/example.warc.gz").write_bytes(data)
    for _ in range(2):
        watched.look()
        clock.now += SETTLE
    assert count(cluster) > found


def test_a_running_add_is_waited_for(
    cluster: Path,
    clock: Clock,
    pywb_warcs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = count(cluster)
    shutil.copy(pywb_warcs / "example.warc.gz", cluster.parent / "warcs")
    watched = WatchedDirectory(str(cluster), str(cluster.parent / "warcs"), 0, 1)
    with hold(cluster), ThreadPoolExecutor(1) as other:  # a thread may not take the lock of another one
        for _ in range(2):
            other.submit(watched.look).result()
    assert count(cluster) == before
    assert capsys.readouterr().err.count("trying again") == 1
    watched.look()
    assert count(cluster) > before


def test_what_the_cluster_has_is_not_tried_again(
    cluster: Path, clock: Clock, pywb_warcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warcs = cluster.parent / "warcs"
    shutil.copy(pywb_warcs / "example.warc.gz", warcs)
    cdxmill.add(cluster, warcs, processes=1)
    cdxmill.remove(cluster, "example.com/*", keep_old=0)
    removed = count(cluster)
    shutil.copy(pywb_warcs / "post-test.warc.gz", warcs)
    WatchedDirectory(str(cluster), str(warcs), 0, 1).look()
    assert count(cluster) == removed + 3
    assert "example.warc.gz" not in capsys.readouterr().err
    shutil.copy(pywb_warcs / "example2.warc.gz", warcs / "example.warc.gz")  # it has other records now
    WatchedDirectory(str(cluster), str(warcs), 0, 1).look()
    assert count(cluster) == removed + 4


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[object]:
    """Let `add` fail. The arguments of each call are in the list."""
    tried: list[object] = []

    def fail(*given: object) -> None:
        tried.append(given)
        raise error

    monkeypatch.setattr(watch, "add", fail)
    return tried


def test_an_archive_that_add_refuses_is_tried_once(
    cluster: Path,
    clock: Clock,
    pywb_warcs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tried = failing(monkeypatch, UsageError("a.warc.gz: refused"))
    shutil.copy(pywb_warcs / "example.warc.gz", cluster.parent / "warcs")
    watched = WatchedDirectory(str(cluster), str(cluster.parent / "warcs"), 0, 1)
    for _ in range(3):
        watched.look()
    assert (len(tried), capsys.readouterr().err) == (1, "a.warc.gz: refused\n")


def test_an_archive_that_is_refused_costs_no_other(
    cluster: Path, clock: Clock, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(asked: Adding, failures: Failures, archives: list[Input]) -> ChangeSummary:
        if any(one.filename == "bad.warc.gz" for one in archives):
            raise UsageError("bad.warc.gz: refused")
        return add(asked, failures, archives)

    monkeypatch.setattr(watch, "add", refuse)
    for name in ("bad.warc.gz", "example.warc.gz"):
        shutil.copy(pywb_warcs / "example.warc.gz", cluster.parent / "warcs" / name)
    before = count(cluster)
    WatchedDirectory(str(cluster), str(cluster.parent / "warcs"), 0, 1).look()
    assert count(cluster) > before


def test_a_sick_machine_is_given_a_minute(
    cluster: Path,
    clock: Clock,
    pywb_warcs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watched = WatchedDirectory(str(cluster), str(cluster.parent / "warcs"), 0, 1)
    for name in ("example.warc.gz", "post-test.warc.gz"):
        before = count(cluster)
        shutil.copy(pywb_warcs / name, cluster.parent / "warcs")
        with monkeypatch.context() as patch:
            tried = failing(patch, StoppedError("C: the disk is full"))
            watched.look()
            for seconds, times in ((0, 1), (59, 1), (1, 2)):
                clock.now += seconds
                watched.look()
                assert len(tried) == times
        told = capsys.readouterr().err
        assert told.count("C: the disk is full; trying again\n") == 1, "once before each addition"
        clock.now += 60
        watched.look()
        assert count(cluster) > before


def test_a_cluster_of_other_lines_is_refused(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", [b"com,a)/ 20200101000000 http://a.com/ text/html 200 D 5"])
    with pytest.raises(UsageError, match="index does not write lines of its format"):
        WatchedDirectory(str(tmp_path / "C"), str(tmp_path), SETTLE, 1)


def test_a_cluster_of_cdx_lines_gets_cdx_lines(pywb_warcs: Path, tmp_path: Path, clock: Clock) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=1, line_format="cdx11")
    (tmp_path / "warcs").mkdir()
    shutil.copy(pywb_warcs / "example.warc.gz", tmp_path / "warcs")
    before = count(tmp_path / "C")
    WatchedDirectory(str(tmp_path / "C"), str(tmp_path / "warcs"), 0, 1).look()
    assert count(tmp_path / "C") > before


def test_a_directory_elsewhere_is_refused(cluster: Path) -> None:
    for name in ("s3://bucket/warcs", str(cluster / "absent")):
        with pytest.raises(UsageError, match="no directory of this machine"):
            WatchedDirectory(str(cluster), name, SETTLE, 1)
