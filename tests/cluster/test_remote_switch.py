"""A cluster at a URL is replaced: whatever is killed, a rerun completes it, and what is not of the cluster stays."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cluster import remote_switch
from cdxmill.commands.clusters import publish
from cdxmill.storage.choose import join, list_folder, read_bytes, write_atomic
from cdxmill.storage.hadoop import hdfs
from cdxmill.storage.s3 import objects as s3
from tests.conftest import RunCdxmill
from tests.storage.conftest import moto_url
from tests.storage.name_node import name_node

__all__ = ["moto_url"]


@pytest.fixture(params=["s3://switched", "hdfs://namenode:9000"])
def url(request: pytest.FixtureRequest, moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import boto3  # type: ignore[import-untyped]

    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for made in (s3._client, hdfs._client):
        made.cache_clear()
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="switched")
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield f"{request.param}/{uuid.uuid4().hex}"
    hdfs._client.cache_clear()


@pytest.fixture(scope="module")
def clusters(run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An old cluster of three shards, and a new one of two."""
    folder = tmp_path_factory.mktemp("clusters")
    made = []
    for name, shards in (("old", 3), ("new", 2)):
        lines = [f"com,{name}{number:03d})/ 2020 {{}}\n" for number in range(300)]
        (folder / f"{name}.cdxj").write_text("".join(lines))
        words = ["-q", "-s", str(shards), "--location", "/x", "-o", folder / name, folder / f"{name}.cdxj"]
        assert run_cdxmill("zipnum", *words).returncode == 0
        made.append(folder / name)
    return made[0], made[1]


def put(source: Path, url: str) -> None:
    for path in source.iterdir():
        with write_atomic(join(url, path.name)) as file:
            file.write(path.read_bytes())


def content(url: str) -> dict[str, bytes]:
    found = list_folder(url)
    return {name: read_bytes(join(url, name)) for name, entry in found.items() if not entry.is_folder}


def local(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kill_after(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `step` requests that change something be done, and none after them."""
    done = 0

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def request(*words: Any) -> Any:
            nonlocal done
            if done >= step:
                raise KeyboardInterrupt
            done += 1
            return do(*words)

        return request

    for name in ("move", "remove", "write_atomic"):
        monkeypatch.setattr(remote_switch, name, counted(getattr(remote_switch, name)))
    # one after the other: a thread that goes on while the test looks would be one of a killed process
    monkeypatch.setattr(remote_switch, "ask_all", lambda ask, paths: [ask(path) for path in paths])


def test_a_kill_at_any_step_leaves_a_cluster_or_none_and_the_next_run_completes_it(
    url: str, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = clusters
    step, seen = 0, set()
    while True:
        place = f"{url}{step}"
        put(old, place)
        put(new, remote_switch.new_place(place))
        with write_atomic(join(place, "notes.txt")) as file:
            file.write(b"mine")
        with monkeypatch.context() as patch:
            kill_after(step, patch)
            try:
                remote_switch.switch(place)
                seen.add("done")
            except KeyboardInterrupt:
                found = content(place)
                if "cluster.json" in found:
                    whole = {**local(old if step <= 1 else new), "notes.txt": b"mine"}
                    assert found == whole, step
                    seen.add("old" if step <= 1 else "new")
                else:
                    seen.add("none")
        if step:  # before the first step, the switch is not decided
            remote_switch.repair(place)
            assert content(place) == {**local(new), "notes.txt": b"mine"}, step
            assert list_folder(remote_switch.new_place(place)) == {}
        if "done" in seen:
            break
        step += 1
    assert seen == {"old", "none", "new", "done"}
    assert step > 10


def test_only_what_the_new_cluster_lists_is_moved_and_other_files_stay(
    url: str, clusters: tuple[Path, Path]
) -> None:
    old, new = clusters
    put(old, url)
    beside = remote_switch.new_place(url)
    put(new, beside)
    kept = "cdx-00001.gz"
    strange = {kept: b"of a killed run", "cdx-00007.gz": b"of a larger one", "notes.txt": b"mine"}
    for name, data in strange.items():
        with write_atomic(join(beside, name)) as file:
            file.write(data)
    remote_switch.switch(url, [kept])
    assert content(url) == {**local(new), kept: local(old)[kept]}
    assert content(beside) == {"notes.txt": b"mine"}


def test_a_cluster_whose_manifest_is_corrupt_is_replaced(url: str, clusters: tuple[Path, Path]) -> None:
    old, new = clusters
    put(old, url)
    with write_atomic(join(url, "cluster.json")) as file:
        file.write(b"{")
    put(new, remote_switch.new_place(url))
    remote_switch.switch(url)
    unknown = {name: data for name, data in local(old).items() if name in ("cdx-00002.gz", "part-00002")}
    assert content(url) == {**local(new), **unknown}


def test_shards_of_a_publication_that_was_killed_do_not_get_into_another_one(
    url: str, run_cdxmill: RunCdxmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "points").write_text("com,g)/\ncom,t)/\n")
    for name, ends in (("a", "123"), ("b", "456"), ("c", "127")):  # c has the first two shards of a
        lines = [f"com,{host})/ 202{end} {{}}\n" for host, end in zip("amz", ends, strict=True)]
        (tmp_path / f"{name}.cdxj").write_text("".join(lines))
        words = ["-q", "--splits", tmp_path / "points", "-o", tmp_path / name, tmp_path / f"{name}.cdxj"]
        assert run_cdxmill("zipnum", *words).returncode == 0
    options = publish.PublishOptions(replace=True, quiet=True)
    publish.publish(str(tmp_path / "a"), url, options)
    noted = 0

    def note(target: str, present: dict[str, str]) -> None:
        nonlocal noted
        write_note(target, present)
        noted += 1
        if noted == 3:
            raise KeyboardInterrupt

    write_note = publish._note
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(publish, "_note", note)
        publish.publish(str(tmp_path / "b"), url, options)
    assert len([name for name in content(remote_switch.new_place(url)) if name.startswith("cdx-")]) == 2
    assert publish.publish(str(tmp_path / "c"), url, options).copied == 1
    found = content(url)
    for name in ("cdx-00000.gz", "cdx-00001.gz", "cdx-00002.gz", "cluster.idx", "cluster.json"):
        assert found[name] == (tmp_path / "c" / name).read_bytes(), name
    assert content(remote_switch.new_place(url)) == {}
