"""jobs/launcher/hadoop_switch.py: a cluster in HDFS is replaced by renaming, and there is always an old or a new one."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import StoppedError, UsageError
from tests.storage.name_node import NameNode, name_node

URL = "hdfs:///crawl/C"
RUNNER: Any = SimpleNamespace(alias="hadoop", get_hadoop_bin=lambda: ["no-hadoop-command"])
FILES = ("cdx-00000.gz", "part-00000", "cluster.idx", "cluster.json")


@pytest.fixture
def hdfs(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    """A finished cluster, and another file that is nobody's business."""
    from cdxmill.storage.hadoop import hdfs as hdfs_storage
    from cdxmill.storage.hadoop import pick

    pick._picked.cache_clear()
    hdfs_storage._client.cache_clear()
    with name_node() as server:
        monkeypatch.setenv("CDXMILL_WEBHDFS", server.address)
        put(server, "/crawl/C", b"old")
        server.put("/crawl/notes.txt", b"mine")
        yield server


def put(server: NameNode, folder: str, body: bytes) -> None:
    for name in FILES:
        server.put(f"{folder}/{name}", body)


def bodies(server: NameNode, folder: str) -> set[bytes]:
    """What the files of a whole cluster have; nothing if there is no whole one."""
    names = [f"{folder}/{name}" for name in FILES]
    return {server.files[name].body for name in names} if set(names) <= set(server.files) else set()


def test_the_new_cluster_is_built_beside_the_old_one_and_takes_its_place(hdfs: NameNode) -> None:
    from cdxmill.jobs.launcher.hadoop_switch import building_place, switch

    place = building_place(URL, RUNNER, replace=True)
    assert place == "hdfs:///crawl/.C.new"
    put(hdfs, "/crawl/.C.new", b"new")
    switch(place, URL, RUNNER)
    assert bodies(hdfs, "/crawl/C") == {b"new"}
    assert len(hdfs.files) == len(FILES) + 1
    assert building_place(URL, RUNNER, replace=False) == URL
    assert building_place("hdfs:///crawl/D", RUNNER, replace=True) == "hdfs:///crawl/D"
    assert building_place("s3://b/C", RUNNER, replace=True) == "s3://b/C"


@pytest.mark.parametrize("steps", range(12))
def test_a_launcher_that_ends_at_any_request_leaves_a_cluster_or_one_that_the_next_job_restores(
    hdfs: NameNode, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.hadoop_switch import building_place, switch
    from cdxmill.storage.hadoop.webhdfs import WebHdfs

    place = building_place(URL, RUNNER, replace=True)
    put(hdfs, "/crawl/.C.new", b"new")
    ask, left = WebHdfs.ask_once, [steps]

    def counted(self: WebHdfs, url: str, method: str, op: str, **parameters: Any) -> Any:
        if op in ("RENAME", "DELETE"):
            left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return ask(self, url, method, op, **parameters)

    with monkeypatch.context() as patched:
        patched.setattr(WebHdfs, "ask_once", counted)
        try:
            switch(place, URL, RUNNER)
        except KeyboardInterrupt:
            pass
        else:
            assert bodies(hdfs, "/crawl/C") == {b"new"}
    again = building_place(URL, RUNNER, replace=True)
    assert again == place
    assert bodies(hdfs, "/crawl/C") in ({b"old"}, {b"new"})
    assert not bodies(hdfs, "/crawl/.C.old")
    assert hdfs.files["/crawl/notes.txt"].body == b"mine"


def test_if_the_new_cluster_cannot_be_moved_the_old_one_is_moved_back(
    hdfs: NameNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.hadoop_switch import switch

    with pytest.raises(StoppedError):
        switch("hdfs:///crawl/.C.new", URL, RUNNER)  # nothing was built
    assert bodies(hdfs, "/crawl/C") == {b"old"}


@pytest.mark.parametrize("foreign", ["/crawl/C/notes.txt", "/crawl/.C.old/notes.txt"])
def test_other_files_are_never_moved_or_deleted(hdfs: NameNode, foreign: str) -> None:
    from cdxmill.jobs.launcher.hadoop_switch import building_place, switch

    put(hdfs, "/crawl/.C.new", b"new")
    hdfs.put(foreign, b"mine")
    with pytest.raises(StoppedError, match=r"the new cluster is complete, in hdfs:///crawl/\.C\.new"):
        switch("hdfs:///crawl/.C.new", URL, RUNNER)
    assert hdfs.files[foreign].body == b"mine"
    assert bodies(hdfs, "/crawl/C") == {b"old"}
    if "/C/" in foreign:
        with pytest.raises(UsageError, match="holds other files"):
            building_place(URL, RUNNER, replace=True)
