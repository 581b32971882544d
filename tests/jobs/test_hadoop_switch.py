"""jobs/launcher/zipnum_on_hadoop.py: a job builds in a directory of its own, in every storage, and then switches."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdxmill.errors import StoppedError, UsageError
from cdxmill.running.lock import hold, run_id
from cdxmill.storage.hadoop import site
from cdxmill.storage.location import join, locate
from tests.conftest import RunCdxmill
from tests.storage.conftest import moto_url
from tests.storage.name_node import name_node

__all__ = ["moto_url"]


@pytest.fixture
def storages(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import boto3  # type: ignore[import-untyped]

    from cdxmill.storage import s3
    from cdxmill.storage.hadoop import hdfs, pick

    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for made in (s3._client, hdfs._client, pick._picked):
        made.cache_clear()
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="jobs")
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield
    hdfs._client.cache_clear()


@pytest.fixture(params=["hdfs", "s3", "file"])
def url(request: pytest.FixtureRequest, storages: None, tmp_path: Path, built: dict[str, Path]) -> str:
    """The URL of a finished cluster, and a file beside it that is nobody's business."""
    start = {"hdfs": "hdfs:///crawl", "s3": f"s3://jobs/{uuid.uuid4().hex}", "file": tmp_path.as_uri()}
    place = f"{start[request.param]}/C%20D"
    put(built["old"], place)
    write(f"{start[request.param]}/notes.txt", b"mine")
    return place


@pytest.fixture(scope="module")
def built(run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two clusters, the old one with more shards."""
    directory = tmp_path_factory.mktemp("built")
    for name, shards in (("old", "3"), ("new", "2")):
        (directory / f"{name}.cdxj").write_text("".join(f"com,{name}{n})/ 2020 {{}}\n" for n in range(50)))
        words = ["-s", shards, "--location", "/x", "-o", directory / name, directory / f"{name}.cdxj"]
        assert run_cdxmill("zipnum", "-q", *words).returncode == 0
        (directory / name / ".finished.json").unlink()  # jobs write none
    return {name: directory / name for name in ("old", "new")}


def write(path: str, data: bytes) -> None:
    with locate(path).write_atomic() as file:
        file.write(data)


def put(source: Path, url: str) -> None:
    for path in source.iterdir():
        write(join(url, path.name), path.read_bytes())


def content(url: str) -> dict[str, bytes]:
    found = locate(url).entries()
    return {
        name: locate(join(url, name)).read_bytes() for name, entry in found.items() if not entry.is_directory
    }


def local(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


RUNNER: Any = SimpleNamespace(alias="inline")
"""Not on YARN, which is not asked then."""


def build_beside(url: str, new: Path) -> str:
    """What the job does before the switch."""
    from cdxmill.jobs.launcher.zipnum_on_hadoop import begin, building_place

    place = building_place(url, True, RUNNER)
    begin(place, url)
    put(new, place)
    return place


@pytest.mark.parametrize(
    ("directory", "path", "is_refused"),
    [
        ("/c", "hdfs:///c/cdx-00000.gz", True),
        ("hdfs://one:8020/c/", "hdfs://two/c/overlay-00000-3.gz", True),
        ("s3://b/c", "s3a://b/c/cdx-00012-3.gz", True),
        ("file:///c", "file:///c/cdx-00000.gz", True),
        ("/c", "hdfs:///c/cdx/cdx-00000.gz", False),
        ("/c", "hdfs:///c/a.cdx.gz", False),
        ("/c", "hdfs:///b/cdx-00000.gz", False),
        ("/c", "/c/cdx-00000.gz", False),
    ],
)
def test_no_shard_of_the_cluster_is_an_input(directory: str, path: str, is_refused: bool) -> None:
    """It would be replaced; on a file system of Hadoop alone, before it is read."""
    from cdxmill.jobs.launcher.zipnum_on_hadoop import check_shards_stay

    context = pytest.raises(UsageError, match="is an input") if is_refused else nullcontext()
    with context:
        check_shards_stay(directory, ["hdfs:///x.cdx.gz", path])


def test_the_new_cluster_is_built_beside_the_old_one_and_takes_its_place(
    url: str, built: dict[str, Path]
) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import building_place, finish_switch

    write(join(url, "notes.txt"), b"mine")
    place = build_beside(url, built["new"])
    parent = url.rpartition("/")[0]
    assert place == f"{url}/.run-{run_id()}"
    assert content(url) == {**local(built["old"]), "notes.txt": b"mine"}
    assert building_place(url, True, RUNNER) == place, "after a job that failed, too"
    assert locate(place).entries() == {}
    assert build_beside(url, built["new"]) == place
    finish_switch(place, url)
    assert content(url) == {**local(built["new"]), "notes.txt": b"mine"}
    assert locate(parent).entries().keys() == {"notes.txt", locate(url).absolute().rpartition("/")[2]}
    assert locate(place).entries() == {}
    with pytest.raises(UsageError, match="holds a finished cluster; use --replace"):
        building_place(url, False, RUNNER)


def test_a_first_cluster_is_moved_from_the_directory_of_the_job(url: str, built: dict[str, Path]) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import finish_switch

    parent = url.rpartition("/")[0]
    first = f"{parent}/first"
    place = build_beside(first, built["new"])
    assert place.startswith(f"{first}/.run-")
    assert content(first) == {}
    finish_switch(place, first)
    assert content(first) == local(built["new"])
    assert all(not entry.is_directory for entry in locate(first).entries().values())


def test_what_an_older_job_still_writes_does_not_reach_the_cluster(url: str, built: dict[str, Path]) -> None:
    """The launcher was killed, its reducer was slow, and committed after the next job had ended."""
    from cdxmill.jobs.launcher.zipnum_on_hadoop import finish_switch

    with ThreadPoolExecutor(1) as other:  # a thread has a run of its own
        older = other.submit(build_beside, url, built["old"]).result()
    place = build_beside(url, built["new"])
    assert place != older
    assert locate(older).entries() == {}, "deleted by the next job"
    finish_switch(place, url)
    write(join(older, "cdx-00000.gz"), b"late")
    assert content(url) == local(built["new"])
    finish_switch(build_beside(url, built["old"]), url)
    assert content(url) == local(built["old"])
    assert older.rpartition("/")[2] in locate(url).entries(), "without its mark, it is nobody's"


def test_a_job_that_still_runs_for_this_output_is_named(
    url: str, built: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import building_place

    with ThreadPoolExecutor(1) as other:
        older = other.submit(build_beside, url, built["old"]).result()
    (tmp_path / "bin").mkdir()
    yarn = tmp_path / "bin/yarn"
    tag = f"-appTags cdxmill-{older.rpartition('.run-')[2]}"
    rows = "Total number of applications:1\n  Application-Id\tName\napplication_17_0002\tx\n"
    yarn.write_text(f'#!/bin/sh\ncase "$*" in *"{tag}") printf "{rows}";; *) exit 1;; esac\n')
    yarn.chmod(0o755)
    runner: Any = SimpleNamespace(alias="hadoop", get_hadoop_bin=lambda: [str(tmp_path / "bin/hadoop")])
    with pytest.raises(
        UsageError, match=r"application_17_0002 of an earlier run, .*`yarn application -kill "
    ):
        building_place(url, True, runner)
    assert locate(older).entries().keys() >= local(built["old"]).keys()
    yarn.write_text("#!/bin/sh\nexit 1\n")
    building_place(url, True, runner)
    assert "YARN cannot be asked whether a job of an earlier run still runs" in capsys.readouterr().err
    assert locate(older).entries() == {}


def test_only_the_temporary_files_of_killed_runs_are_deleted(
    storages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.launcher.earlier_runs import own_temporary_directory

    parent = "hdfs:///user/me/tmp/mrjob"
    for name in ("killed", "alive", "of-mrjob", "mine"):
        write(f"{parent}/{name}/files/work.jsonl", b"{}")
    with subprocess.Popen(["true"]) as ended:
        process = {"killed": ended.pid, "alive": os.getpid()}
    for name, number in process.items():
        known = {"run": f"abcdef01-{number}", "process": number, "host": socket.gethostname()}
        write(f"{parent}/{name}/.lock", json.dumps({**known, "renewed": time.time()}).encode())
    yarn = tmp_path / "yarn"
    yarn.write_text("#!/bin/sh\necho application_17_0002\n")
    yarn.chmod(0o755)
    runner: Any = SimpleNamespace(
        alias="hadoop",
        get_hadoop_bin=lambda: [str(tmp_path / "hadoop")],
        _hadoop_tmp_dir=f"{parent}/mine/",
    )
    with ExitStack() as holding:
        own_temporary_directory(runner, holding)
        assert locate(parent).entries().keys() == {"killed", "alive", "of-mrjob", "mine"}, (
            "its job still runs"
        )
    yarn.write_text("#!/bin/sh\necho Total number of applications:0\n")
    with ExitStack() as holding:
        own_temporary_directory(runner, holding)
        assert locate(parent).entries().keys() == {"alive", "of-mrjob", "mine"}
        assert locate(f"{parent}/mine/.lock").exists()
    assert not locate(f"{parent}/mine/.lock").exists()
    assert "deleted the temporary files of 1 run that was killed" in capsys.readouterr().err


@pytest.mark.parametrize("steps", range(8))
def test_a_launcher_that_ends_at_any_request_leaves_a_cluster_or_one_that_the_next_job_restores(
    storages: None, built: dict[str, Path], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import building_place, finish_switch
    from cdxmill.storage.hadoop.web_hdfs import WebHdfs

    url = "hdfs:///crawl/C"
    put(built["old"], url)
    place = build_beside(url, built["new"])
    ask, left = WebHdfs.ask_once, [steps]

    def counted(self: WebHdfs, *words: Any, **parameters: Any) -> Any:
        if {"RENAME", "DELETE"} & set(words):
            left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return ask(self, *words, **parameters)

    with monkeypatch.context() as patched:
        patched.setattr(WebHdfs, "ask_once", counted)
        try:
            finish_switch(place, url)
        except KeyboardInterrupt:
            pass
        else:
            assert content(url) == local(built["new"])
    assert building_place(url, True, RUNNER) == place
    found = {
        name: data for name, data in content(url).items() if ".lock" not in name
    }  # the next run takes it
    assert found in (local(built["old"]), local(built["new"]))
    assert content("hdfs:///crawl/.C.old") == {}


def test_a_second_job_with_one_cluster_is_refused(url: str, built: dict[str, Path]) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import ClusterOnHadoop

    def begin() -> dict[str, bytes]:
        build: Any = SimpleNamespace(points=(), replace=True)
        runner: Any = SimpleNamespace(alias="inline")
        with ExitStack() as holding:
            ClusterOnHadoop(url, None, build, runner, holding)
            return content(url)

    with ThreadPoolExecutor(1) as other, hold(url):
        before = content(url)
        with pytest.raises(UsageError, match=r"another run writes to this directory \(process "):
            other.submit(begin).result()
        assert content(url) == before
    assert begin().keys() == {".lock", *local(built["old"])}
    assert content(url) == local(built["old"])


def test_a_switch_that_cannot_be_done_leaves_both_clusters(url: str, built: dict[str, Path]) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import building_place, finish_switch

    place = build_beside(url, built["new"])
    write(join(url, "cdx-00007.gz"), b"mine")
    with pytest.raises(StoppedError, match=r"cdx-00007\.gz is not of the cluster there") as raised:
        finish_switch(place, url)
    assert str(raised.value).endswith(f"; the new cluster is complete, in {place}")
    assert content(url) == {**local(built["old"]), "cdx-00007.gz": b"mine"}
    assert local(built["new"]).items() <= content(place).items()
    with pytest.raises(UsageError, match=r"cdx-00007\.gz is not of the cluster there"):
        building_place(url, True, RUNNER)
    locate(join(url, "cdx-00007.gz")).remove_tree()
    finish_switch(place, url)
    assert content(url) == local(built["new"])


def test_where_only_hadoop_has_the_keys_nothing_is_switched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import building_place, finish_switch

    (tmp_path / "hadoop").write_text('#!/bin/sh\necho >&2 "ls: x: No such file or directory"; exit 1\n')
    (tmp_path / "hadoop").chmod(0o755)
    monkeypatch.setattr(site, "_given", [str(tmp_path / "hadoop")])
    runner: Any = SimpleNamespace(alias="hadoop")
    for url in ("gs://bucket/C", "maprfs:///crawl/C"):
        assert building_place(url, True, runner) == url
        finish_switch(url, url)


def test_two_archives_of_one_name_are_noted_before_the_job_starts(
    storages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.zipnum_job import ZipNumClusterJob

    line = 'com,example)/{0} 20200101000000 {{"length": "9", "offset": "{0}", "filename": "c.warc.gz"}}\n'
    given = [f"hdfs:///cdx/{number}.cdxj" for number in range(9)] + [str(tmp_path / "9.cdxj")]
    for number, path in enumerate(given):
        write(path, line.format(5 if path == given[-1] else 9 * number).encode())
    (tmp_path / "splits.txt").write_bytes(b"b 2020\n")
    call = ["--no-conf", "-r", "hadoop", "--splitfile", str(tmp_path / "splits.txt"), "--zipnum-dir", "/c"]
    job, runner = ZipNumClusterJob([*call, *given]), cast("Any", SimpleNamespace(alias="hadoop", _opts={}))
    runner._opts["jobconf"] = {}
    with job.held:
        job.hadoop_step(runner, tmp_path)
    told = "note: both have lines of c.warc.gz, but of different records"
    assert f"hdfs:///cdx/0.cdxj and {given[-1]}: {told}" in capsys.readouterr().err


def test_the_index_job_refuses_two_archives_of_one_name_before_it_starts(
    storages: None, tmp_path: Path
) -> None:
    from cdxmill.jobs.index_job import IndexWARCJob

    (tmp_path / "list").write_text("/x/a.warc.gz\n/y/a.warc.gz\n")
    job = IndexWARCJob(["--no-conf", "-r", "hadoop", "--cdx_bucket", "hdfs:///cdx", str(tmp_path / "list")])
    runner = cast("Any", SimpleNamespace(alias="hadoop", _opts={"jobconf": {}}))
    with job.held, pytest.raises(UsageError, match=r"would both have the file name a\.warc\.gz"):
        job.hadoop_step(runner, tmp_path)
