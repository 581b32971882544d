"""Directories of file systems that only the hadoop command reaches, and which of them it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import StoppedError, UsageError
from cdxmill.storage.hadoop import hadoop_fs, hdfs, pick, site
from tests.storage.name_node import name_node

SHELL = Path(__file__).parents[1] / "storage/hadoop_shell.py"


def runner(alias: str = "hadoop") -> Any:
    return SimpleNamespace(alias=alias, _opts={"jobconf": {}}, get_hadoop_bin=lambda: ["/absent/hadoop"])


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A function that returns how `hadoop` was called so far. Its file system is the directory `far`."""
    command = tmp_path / "hadoop"
    (tmp_path / "far").mkdir()
    (tmp_path / "calls").touch()
    command.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\nexec {sys.executable} -I -S {SHELL} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setattr(site, "_given", [str(command)])
    monkeypatch.setenv("HADOOP_SHELL_ROOT", str(tmp_path / "far"))
    return lambda: (tmp_path / "calls").read_text().splitlines()


def test_a_directory_is_written_read_and_emptied(asked: Callable[[], list[str]], tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory

    directory, far = RemoteDirectory("s3://b/new/c/", by_hadoop=True), tmp_path / "far/new/c"
    assert not directory.is_near
    directory.check_writable()
    assert list(far.iterdir()) == [], "what was tried is deleted"
    for name in ("part-0", "part-1", "other"):
        (tmp_path / name).write_bytes(name.encode())
    directory.put([tmp_path / name for name in ("part-0", "part-1", "other")])
    assert directory.names() == ["other", "part-0", "part-1"]
    (tmp_path / "got").mkdir()
    directory.get(["part-*"], tmp_path / "got")
    assert {path.name: path.read_bytes() for path in (tmp_path / "got").iterdir()} == {
        "part-0": b"part-0",
        "part-1": b"part-1",
    }
    before = len(asked())
    directory.remove([])
    assert len(asked()) == before, "no command is started for nothing"
    directory.remove(["part-0", "other"])
    assert [path.name for path in far.iterdir()] == ["part-1"]
    assert len(asked()) == before + 1


def test_a_file_is_read_by_the_command_for_mrjob(asked: Callable[[], list[str]], tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import StorageFilesystem

    (tmp_path / "far/part").write_bytes(b"of the job")
    files = StorageFilesystem([str(tmp_path / "hadoop")], "/x/hadoop-streaming-3.4.2.jar")
    assert b"".join(files.read("s3://b/part")) == b"of the job"
    assert [line.split()[:2] for line in asked()] == [["fs", "-cat"]]
    assert files.get_hadoop_version() == "3.4.2"


@pytest.mark.parametrize(
    ("url", "alias", "is_near"),
    [
        ("hdfs:///a", "hadoop", True),
        ("hdfs:///a{b,c}", "hadoop", False),
        ("s3://b/a", "hadoop", False),
        ("gs://b/a", "hadoop", False),
        ("file:///a", "hadoop", True),
        ("s3://b/a", "emr", True),
        ("s3://b/a{b,c}", "inline", True),
    ],
)
def test_which_directories_the_command_is_asked_for(
    url: str, alias: str, is_near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import directory_of

    with name_node() as node:
        monkeypatch.setenv("CDXMILL_WEBHDFS", node.address)
        pick._picked.cache_clear()
        assert directory_of(url, runner(alias)).is_near is is_near
    pick._picked.cache_clear()


def test_hdfs_is_far_where_only_the_command_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher import hadoop_directory

    monkeypatch.setattr(hadoop_directory, "storage_of", lambda url: hadoop_fs)
    assert not hadoop_directory.RemoteDirectory("hdfs:///a").is_near
    monkeypatch.setattr(hadoop_directory, "storage_of", lambda url: hdfs)
    assert hadoop_directory.RemoteDirectory("hdfs:///a").is_near


def test_archives_are_not_compared_where_each_look_starts_a_command(
    asked: Callable[[], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where WebHDFS has no address, those of HDFS are such files."""
    from cdxmill.jobs.launcher.hadoop_inputs import note_shared_names

    monkeypatch.delenv("CDXMILL_WEBHDFS", raising=False)
    pick._picked.cache_clear()
    for number, name in enumerate("ab"):
        line = f'com,{name})/ 2020 {{"length": "9", "offset": "{number}", "filename": "c.warc.gz"}}\n'
        (tmp_path / f"{name}.cdxj").write_text(line)
    note_shared_names([str(tmp_path / "a.cdxj"), "hdfs:///b.cdxj"], runner())
    assert asked() == []
    assert "both have lines" not in capsys.readouterr().err
    note_shared_names([str(tmp_path / "a.cdxj"), (tmp_path / "b.cdxj").as_uri()], runner())
    assert "both have lines of c.warc.gz" in capsys.readouterr().err
    pick._picked.cache_clear()


def test_inputs_that_cannot_be_listed_stop_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher.hadoop_inputs import cdx_inputs

    hdfs._client.cache_clear()
    pick._picked.cache_clear()
    with name_node() as node:
        monkeypatch.setenv("CDXMILL_WEBHDFS", node.address)
        for name in ("a.cdx.gz", "b.cdxj", ".c.cdx.gz.1.tmp", "notes.txt", "odd", "below/d.cdxj"):
            node.put(f"/cdx/{name}", b"12345")
        found = {f"hdfs:///cdx/{name}": 5 for name in ("a.cdx.gz", "b.cdxj")}
        below = {"hdfs:///cdx/below/d.cdxj": 5}
        assert cdx_inputs(["hdfs:///cdx"], runner()) == found | below
        assert cdx_inputs(["hdfs:///cdx/*.*"], runner()) == found
        assert (
            cdx_inputs(["hdfs:///cdx/odd", "hdfs:///cdx/below"], runner()) == {"hdfs:///cdx/odd": 5} | below
        )
        for nothing in ("hdfs:///cdx/notes*", "hdfs:///absent"):
            with pytest.raises(UsageError, match="no CDX file found"):
                cdx_inputs([nothing], runner())
        node.refusals = [(403, "AccessControlException")] * 9
        with pytest.raises(StoppedError, match="hdfs:///cdx"):
            cdx_inputs(["hdfs:///cdx"], runner())
    hdfs._client.cache_clear()
    pick._picked.cache_clear()


@pytest.mark.parametrize("place", ["s3://b/tmp/mrjob/me", "file:///nowhere/mrjob/me", "hdfs:///tmp/mrjob/me"])
def test_a_temporary_directory_that_cdxmill_cannot_reach_is_left_to_mrjob(
    place: str, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import earlier_runs

    def not_reached(url: str) -> bool:
        assert url.startswith("hdfs:")
        return False

    monkeypatch.setattr(earlier_runs, "is_reached", not_reached)
    found = runner()
    found._hadoop_tmp_dir = place
    with ExitStack() as holding:
        earlier_runs.own_temporary_directory(found, holding)
    assert asked() == []


def test_the_parts_of_a_cluster_need_a_directory_that_can_be_written(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import ClusterOnHadoop

    (tmp_path / "file").touch()
    build: Any = SimpleNamespace(points=(), replace=False)
    url, parts = (tmp_path / "c").as_uri(), (tmp_path / "file/parts").as_uri()
    with ExitStack() as holding, pytest.raises(UsageError, match="file is not a directory"):
        ClusterOnHadoop(url, parts, build, runner("inline"), holding)
    with ExitStack() as holding:
        assert ClusterOnHadoop(url, url + "/", build, runner("inline"), holding)._parts is None
