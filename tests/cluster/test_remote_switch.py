"""A cluster at a URL is replaced: whatever is killed, a rerun completes it, and what is not of the cluster stays."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from cdxmill import lookup
from cdxmill.cluster import reader, switch
from cdxmill.cluster.output import check_replaceable, mend
from cdxmill.commands.clusters import publish
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.options.clusters import Publishing
from cdxmill.storage import s3
from cdxmill.storage.hadoop import hdfs
from cdxmill.storage.location import Location, locate
from tests.conftest import RunCdxmill
from tests.storage.conftest import moto_url
from tests.storage.name_node import NameNode, name_node

__all__ = ["moto_url"]

OTHERS = ("notes.txt", "cdx/mine.cdx.gz")
LINES = 300


@pytest.fixture
def node(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    import boto3  # type: ignore[import-untyped]

    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for made in (s3._client, hdfs._client):
        made.cache_clear()
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="switched")
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running
    hdfs._client.cache_clear()


@pytest.fixture(params=["s3://switched", "hdfs://namenode:9000"])
def url(request: pytest.FixtureRequest, node: NameNode) -> Location:
    return locate(f"{request.param}/{uuid.uuid4().hex}/C")


@pytest.fixture(scope="module")
def clusters(run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An old cluster of three shards, and a new one of two. Their lines differ in one field only."""
    directory = tmp_path_factory.mktemp("clusters")
    made = []
    for name, shards in (("old", 3), ("new", 2)):
        lines = [f'com,example)/{number:03d} 2020 {{"n": "{name}"}}\n' for number in range(LINES)]
        (directory / f"{name}.cdxj").write_text("".join(lines))
        words = ["--numlines", "9", "--location", "gone", "-o", directory / name, directory / f"{name}.cdxj"]
        assert run_cdxmill("zipnum", "-q", "-s", str(shards), *words).returncode == 0
        made.append(directory / name)
    return made[0], made[1]


def put(source: Path, url: Location) -> None:
    for path in source.iterdir():
        write(url / path.name, path.read_bytes())


def objects() -> Any:
    """What moto has in memory: a test that looks there needs no requests."""
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def bucket_and_key(place: Location) -> list[str]:
    return place.text.removeprefix("s3://").split("/", 1)


def write(place: Location, data: bytes) -> None:
    if place.text.startswith("s3:"):
        objects().put_object(*bucket_and_key(place), data)
        return
    with place.write_atomic() as file:
        file.write(data)


def content(url: Location) -> dict[str, bytes]:
    if url.text.startswith("s3:"):
        bucket, prefix = bucket_and_key(url / "")
        found, *_ = objects().list_objects(objects().get_bucket(bucket), prefix, "/", None, None)
        return {one.name.removeprefix(prefix): one.value for one in found if one.name != prefix}
    found = url.entries()
    return {name: (url / name).read_bytes() for name, entry in found.items() if not entry.is_directory}


def local(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def answer(url: Location) -> set[str]:
    """From which cluster the lines of an answer are; "none" if a reader finds no cluster. An answer is whole."""
    try:
        lines = [line["n"] for line in lookup(str(url), "http://example.com/*")]
    except (UsageError, InputError) as error:
        assert "not a ZipNum cluster" in str(error) or "is being replaced" in str(error)
        return {"none"}
    assert len(lines) == LINES
    return set(lines)


def kill_before(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `step` operations that change something be done, and none after them."""
    done = 0

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*words: Any, **options: Any) -> Any:
            nonlocal done
            if done >= step:
                raise KeyboardInterrupt
            done += 1
            return do(*words, **options)

        return operation

    for name in ("move", "remove", "remove_tree", "write_atomic"):
        monkeypatch.setattr(Location, name, counted(getattr(Location, name)))
    # one after the other: a thread that goes on while the test looks would be one of a killed process
    monkeypatch.setattr(switch, "ask_all", lambda ask, places: [ask(place) for place in places])


def steps_of(url: Location) -> range:
    """More steps than a switch has."""
    return range(40 if not url.properties.has_directories else 9)


def test_a_directory_that_others_may_not_read_stays_so(node: NameNode) -> None:
    place = locate("hdfs://namenode:9000/secret/C")
    node.put("/secret/C/a", b"1")
    node.modes["/secret/C"] = "700"
    switch.mark(place)
    assert node.modes["/secret/.C.new"] == "700"


def test_a_kill_before_any_step_leaves_a_cluster_or_none_and_the_next_run_completes_it(
    url: Location, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = clusters
    seen: list[str] = []
    for step in steps_of(url):
        place = locate(f"{url}{step}")
        put(old, place)
        put(new, switch.mark(place))
        for name in OTHERS:
            write(place / name, b"mine")
        with monkeypatch.context() as patch:
            kill_before(step, patch)
            try:
                switch.switch(place)
            except KeyboardInterrupt:
                (found,) = answer(place)
            else:
                found = "done"
            seen.append(found)
        if found == "old" and not switch.needs_repair(place):
            assert {**content(place), **local(old)} == content(place)
            switch.switch(place)  # not begun: the next run begins it
        mend(place, print)
        assert answer(place) == {"new"}
        assert content(place) == {**local(new), "notes.txt": b"mine"}, step
        assert (place / "cdx/mine.cdx.gz").read_bytes() == b"mine"
        assert switch.new_place(place).entries() == {}
        assert not url.properties.has_directories or not switch.old_place(place).exists()
        assert not switch.needs_repair(place)
        if found == "done":
            break
    assert list(dict.fromkeys(seen)) == ["old", "none", "new", "done"], "in this order"
    assert url.properties.has_directories is (seen.count("none") == 1), "HDFS: only between the two renames"
    assert len(seen) > (4 if url.properties.has_directories else 15)


@pytest.mark.parametrize("first", [1, 2, 9])
def test_a_kill_while_a_switch_is_repaired_is_repaired_too(
    first: int, url: Location, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = clusters
    for step in range(0, 12, 3):
        place = locate(f"{url}{step}")
        put(old, place)
        put(new, switch.mark(place))
        for left, run in ((first, switch.switch), (step, switch.repair)):
            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                kill_before(left, patch)
                run(place)
            assert answer(place) in ({"old"}, {"new"}, {"none"})
        mend(place, print)
        assert content(place) == local(new)


@pytest.mark.parametrize("is_late", [True, False])
def test_a_reader_that_stays_open_reports_that_the_cluster_was_replaced(
    is_late: bool, url: Location, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would read blocks of new shards by an old index. A read that fails asks, too."""
    if is_late:
        monkeypatch.setattr(reader, "UNCHECKED", -1.0)
    put(clusters[0], url)
    put(clusters[1], switch.mark(url))
    reason = r"(was replaced|has changed) while it was read; run it again"  # HDFS tells it at the end, too
    with pytest.raises(InputError, match=reason), reader.open_cluster(url) as cluster:
        assert cluster.read(b"cdx-00000.gz", 0, 9)
        switch.switch(url)
        cluster.read(b"cdx-00000.gz" if is_late else b"cdx-00002.gz", 0, 9)


def test_a_cluster_that_is_being_replaced_is_not_published_as_an_unfinished_one(
    node: NameNode, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = locate(f"s3://switched/{uuid.uuid4().hex}")
    put(clusters[0], place)
    put(clusters[1], switch.mark(place))
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        kill_before(9, patch)
        switch.switch(place)
    assert answer(place) == {"none"}
    with pytest.raises(UsageError, match=r"not a finished cluster"):
        publish.publish(Publishing(str(place), tmp_path / "copy", unfinished=True, location="gone"))
    publish.publish(Publishing(str(place), str(place), unfinished=True, location="gone"))
    assert answer(place) == {"new"}
    assert content(place).items() >= local(clusters[1]).items()


def test_if_hdfs_refuses_the_second_rename_the_old_cluster_is_put_back(
    node: NameNode, clusters: tuple[Path, Path]
) -> None:
    place = locate("hdfs://namenode:9000/refused/C")
    put(clusters[0], place)
    with pytest.raises(StoppedError):
        switch._rename_both(place)  # nothing was built
    assert content(place) == local(clusters[0])


def test_files_of_the_same_name_stay_in_hdfs(node: NameNode, clusters: tuple[Path, Path]) -> None:
    """Somebody's `cdx/a` in both clusters: it stays in that of the old one, and is reported."""
    place = locate("hdfs://namenode:9000/both/C")
    put(clusters[0], place)
    put(clusters[1], switch.mark(place))
    for directory in (place, switch.new_place(place)):
        write(directory / "notes.txt", str(directory).encode())
    left = switch.old_place(place) / "notes.txt"
    assert switch.switch(place) == [str(left)]
    assert content(switch.old_place(place)) == {"notes.txt": str(place).encode()}
    assert (place / "notes.txt").read_bytes() == str(switch.new_place(place)).encode()
    with pytest.raises(UsageError, match=r"was replaced before, and .* has files that are left"):
        check_replaceable(place)


def test_only_what_the_new_cluster_lists_is_moved_on_s3_and_other_files_stay(
    node: NameNode, clusters: tuple[Path, Path]
) -> None:
    url = locate(f"s3://switched/{uuid.uuid4().hex}")
    old, new = clusters
    put(old, url)
    beside = switch.new_place(url)
    put(new, beside)
    kept = "cdx-00001.gz"
    strange = {kept: b"of a killed run", "cdx-00007.gz": b"of a larger one", "notes.txt": b"mine"}
    for name, data in strange.items():
        write(beside / name, data)
    switch.switch(url, [kept])
    assert content(url) == {**local(new), kept: local(old)[kept]}
    assert content(beside) == {"notes.txt": b"mine"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cluster.json", "cluster.json: is corrupt"),
        ("cdx-00007.gz", "cdx-00007.gz is not of the cluster there"),
        ("all.idx", "readers would use all.idx"),
        (".new", "is not of cdxmill; move it away"),
    ],
)
def test_what_cannot_be_replaced_is_refused(
    name: str, reason: str, url: Location, clusters: tuple[Path, Path]
) -> None:
    if url.properties.has_directories is (name == "all.idx"):
        name, reason = "part-00007", "part-00007 is not of the cluster there"
    put(clusters[0], url)
    check_replaceable(url)
    write(switch.new_place(url) / "mine" if name == ".new" else url / name, b"mine")
    if name == ".new" and not url.properties.has_directories:
        check_replaceable(url)  # other files in C/.new stay there
        return
    with pytest.raises(UsageError, match=reason):
        check_replaceable(url)


@pytest.mark.parametrize("place", ["s3", "hdfs", "local"])
def test_shards_of_a_publication_that_was_killed_do_not_get_into_another_one(
    place: str, node: NameNode, run_cdxmill: RunCdxmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {
        "s3": f"s3://switched/{uuid.uuid4().hex}",
        "hdfs": "hdfs://namenode:9000/x/C",
        "local": str(tmp_path / "C"),
    }[place]
    url = locate(named)
    (tmp_path / "points").write_text("com,g)/\ncom,t)/\n")
    for name, ends in (("a", "123"), ("b", "456"), ("c", "127")):  # c has the first two shards of a
        lines = [f"com,{host})/ 202{end} {{}}\n" for host, end in zip("amz", ends, strict=True)]
        (tmp_path / f"{name}.cdxj").write_text("".join(lines))
        words = ["-q", "--splits", tmp_path / "points", "-o", tmp_path / name, tmp_path / f"{name}.cdxj"]
        assert run_cdxmill("zipnum", *words).returncode == 0
    publish.publish(Publishing(tmp_path / "a", named, replace=True, processes=1))
    noted = 0

    def note(target: Location, present: dict[str, str]) -> None:
        nonlocal noted
        write_note(target, present)
        noted += 1
        if noted == 5:
            raise KeyboardInterrupt

    write_note = publish._note
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(publish, "_note", note)
        publish.publish(Publishing(tmp_path / "b", named, replace=True, processes=1))
    assert len([name for name in content(switch.new_place(url)) if name.startswith("cdx-")]) == 2
    copied = publish.publish(Publishing(tmp_path / "c", named, replace=True, processes=1)).copied
    assert copied == (3 if place == "hdfs" else 1), "S3 keeps shards, a disk links them"
    found = content(url)
    for name in ("cdx-00000.gz", "cdx-00001.gz", "cdx-00002.gz", "cluster.idx", "cluster.json"):
        assert found[name] == (tmp_path / "c" / name).read_bytes(), name
    assert content(switch.new_place(url)) == {}


@pytest.mark.parametrize("first", ["publish", "zipnum"])
def test_what_a_killed_command_has_left_does_not_get_into_the_cluster_of_another(
    first: str, clusters: tuple[Path, Path], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    """Both commands build in the same directory beside the cluster."""
    old, new = clusters
    place = tmp_path / "C"
    assert run_cdxmill("publish", "-q", old, place).returncode == 0
    beside = Path(switch.mark(locate(place)).local)
    (beside / "cdx-00007.gz").write_bytes(b"left")
    if first == "publish":
        (beside / ".published.json").write_text('{"cdx-00007.gz": ""}')
        words = ["zipnum", "-s", "2", "--location", "gone", "--numlines", "9", "-o", place]
        done = run_cdxmill(*words, "-q", "--replace", old.parent / "new.cdxj")
    else:
        (beside / ".work").mkdir()
        (beside / ".work/shards.json").write_text("9")
        done = run_cdxmill("publish", "-q", "--replace", "--location", "gone", new, place)
    assert done.returncode == 0, done.stderr
    found = {name for name in local_names(place) if name != "metadata.yaml"}
    assert found - {".finished.json"} == local_names(new) - {".finished.json"}
    assert not beside.exists()


def local_names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_an_index_that_is_replaced_while_it_is_read_is_not_taken_for_corrupt_or_whole(
    url: Location, clusters: tuple[Path, Path]
) -> None:
    put(clusters[0], url)
    replaced = pytest.raises(InputError, match="while it was read; run it again")
    with replaced, reader.open_cluster(url) as opened:
        blocks = opened.index.blocks(b"")
        next(blocks)
        put(clusters[1], url)
        list(blocks)
