"""What a switch at a URL leaves and deletes, and when it stops."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cluster import change, switch
from cdxmill.cluster.output import Output, hold_new, mend, open_output, put_in_place
from cdxmill.cluster.write import RunRecord, fault_of, files_of, write_record
from cdxmill.errors import InputError, StoppedError
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.storage.location import Location, locate

from .test_remote_switch import answer, clusters, content, local, moto_url, node, put, write

__all__ = ["clusters", "moto_url", "node"]

pytestmark = pytest.mark.usefixtures("node")

TAKEN = "another run has taken this directory"


@pytest.fixture
def bucket_place() -> Location:
    return locate(f"s3://switched/{uuid.uuid4().hex}/C")


def take(place: Location) -> None:
    """Write the lock of another run that lives."""
    other = {"run": "x", "process": 1, "host": "elsewhere", "since": "now", "renewed": time.time()}
    write(place / ".lock", json.dumps(other).encode())


def take_after_a_move(place: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the lock of another run after each move of a file."""
    move: Callable[[Location, Location], None] = Location.move

    def taken(one: Location, target: Location) -> None:
        move(one, target)
        take(place)

    monkeypatch.setattr(Location, "move", taken)


def take_with_a_call(called: Callable[..., bytes], place: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the lock of another run when a change calls this function."""

    def taken(*arguments: object) -> bytes:
        take(place)
        return called(*arguments)

    monkeypatch.setattr(change, called.__name__, taken)


def keys_below(place: Location) -> set[str]:
    """The keys of all objects, also those that stand for directories."""
    prefix = place.text.removeprefix("s3://switched/") + "/"
    found = boto3.client("s3", region_name="us-east-1").list_objects_v2(Bucket="switched", Prefix=prefix)
    return {one["Key"].removeprefix(prefix) for one in found.get("Contents", ())}


@pytest.mark.parametrize("name", [None, "notes.txt"])
def test_nothing_of_the_run_stays_in_the_directory_of_the_new_cluster_on_s3(
    name: str | None, bucket_place: Location, clusters: tuple[Path, Path]
) -> None:
    """Hadoop has created the directory as an object."""
    old, new = clusters
    put(old, bucket_place)
    beside = switch.new_place(bucket_place)
    put(new, beside)
    write(beside / ".work/job.json", b"{}")
    write(beside / "", b"")
    if name is not None:
        write(beside / name, b"mine")
    switch.switch(bucket_place)
    assert content(bucket_place) == local(new)
    assert keys_below(beside) == ({"", name} if name is not None else set())


def test_of_a_discarded_cluster_on_s3_only_files_of_others_stay(
    bucket_place: Location, clusters: tuple[Path, Path]
) -> None:
    beside = switch.new_place(bucket_place)
    put(clusters[0], beside)
    write(beside / "notes.txt", b"mine")
    switch.discard(bucket_place)
    assert keys_below(beside) == {"notes.txt"}


@pytest.mark.parametrize("moment", ["before", "while files are moved"])
def test_a_switch_stops_as_soon_as_another_run_has_taken_the_directory(
    moment: str, bucket_place: Location, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else both would delete and move files. Here it asks before each step, elsewhere every minute."""
    place = bucket_place
    put(clusters[0], place)
    put(clusters[1], switch.new_place(place))
    monkeypatch.setattr(switch, "CHECKED", -1.0)
    with hold(place):
        if moment == "before":
            take(place)
        else:
            take_after_a_move(place, monkeypatch)
        with pytest.raises(StoppedError, match=TAKEN):
            switch.switch(place)
    if moment == "before":
        assert answer(place) == {"old"}
    else:  # the shards are moved, and no other file
        found, old, new = content(place), local(clusters[0]), local(clusters[1])
        assert {name for name in found if found[name] == new.get(name) != old.get(name)} == {
            *("cdx-00000.gz", "cdx-00001.gz")
        }
        assert "cluster.idx" not in found


def test_a_run_that_has_lost_its_directory_writes_no_record(bucket_place: Location) -> None:
    with hold(bucket_place):
        take(bucket_place)
        with pytest.raises(StoppedError, match=TAKEN):
            Output(bucket_place, bucket_place, Failures()).record("run", [], [])
        with pytest.raises(StoppedError, match=TAKEN):
            put_in_place(bucket_place, print)
    assert content(bucket_place).keys() == {".lock"}


def test_a_run_that_has_lost_its_directory_deletes_nothing_of_the_run_that_has_it(
    bucket_place: Location, clusters: tuple[Path, Path]
) -> None:
    """Both build in the same place, beside the cluster that they replace."""
    put(clusters[0], bucket_place)
    beside, error = switch.new_place(bucket_place), InputError("a", "is corrupt")
    with pytest.raises(StoppedError, match=TAKEN), open_output(bucket_place, "a" * 8, True, Failures()):
        take(bucket_place)
        write(beside / "cdx-00000.gz", b"of the other run")
        raise error
    assert keys_below(beside) == {"cdx-00000.gz"}


def test_the_directory_of_the_new_cluster_has_no_lock_of_its_own_on_s3(bucket_place: Location) -> None:
    with hold_new(bucket_place, print):
        assert keys_below(bucket_place) == set()


def test_indexes_at_a_url_stay_and_the_list_of_archives_does_not(clusters: tuple[Path, Path]) -> None:
    place = locate("hdfs://namenode:9000/indexes/C")
    put(clusters[0], place)
    put(clusters[1], switch.mark(place))
    indexes = {f"cdx/{name}.cdx.gz" for name in "ab"}
    for name in (*indexes, "archives.tsv"):
        write(place / name, b"old")
    write_record(place, RunRecord("run", [], [], [*indexes, "archives.tsv"]))
    write(switch.new_place(place) / "cdx/b.cdx.gz", b"new")
    left = switch.old_place(place) / "cdx"
    assert switch.switch(place) == [str(left)]
    assert left.entries().keys() == {"a.cdx.gz", "b.cdx.gz"}
    assert content(place).keys() == local(clusters[1]).keys()


def test_the_lock_that_moves_with_its_directory_is_deleted(clusters: tuple[Path, Path]) -> None:
    """The run was killed between two renames: only the directory of the old cluster can be held."""
    place = locate("hdfs://namenode:9000/between/C")
    put(clusters[0], switch.old_place(place))
    mend(place, print)
    assert content(place) == local(clusters[0])
    assert place.parent.entries().keys() == {"C"}


def test_nothing_is_left_beside_a_new_cluster_in_hdfs(clusters: tuple[Path, Path]) -> None:
    place = locate("hdfs://namenode:9000/alone/C")
    put(clusters[0], place)
    put(clusters[1], switch.mark(place))
    assert switch.switch(place) == []
    assert place.parent.entries().keys() == {"C"}


@pytest.mark.parametrize("moment", ["before the files", "before the locations", "while files are moved"])
def test_a_change_stops_as_soon_as_another_run_has_taken_the_directory(
    moment: str, bucket_place: Location, clusters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see nothing of it, or the next run completes it. What is not listed may be of the other run, whose change has
    the same number. Here it asks before each file."""
    place, others = bucket_place, "cdx-00001-1.gz"
    put(clusters[0], place)
    monkeypatch.setattr(change, "CHECKED", -1.0)
    before = {**content(place), others: b"of the other run"}
    with pytest.raises(StoppedError, match=TAKEN), change.open_change(place, print) as opened:
        write(place / others, before[others])
        if moment == "before the files":
            take(place)
        elif moment == "before the locations":
            take_with_a_call(change.changed_locations, place, monkeypatch)
        else:
            take_after_a_move(place, monkeypatch)
        record = RunRecord("change 1", [], [], [])
        opened.commit(opened.manifest.shards, record, {"a.txt": b"", "b.txt": b""})
    found, staged = content(place), set((place / ".change").entries())
    is_begun = moment == "while files are moved"
    assert found.keys() - before.keys() == {".lock", *([".kept.json"] if is_begun else [])}
    assert {name: found[name] for name in before} == before
    assert ("ready.json" in staged) is is_begun, "the next run completes it"
    assert (staged == {"plan.json"}) is (moment == "before the files"), "others may have written the rest"


def test_shards_on_s3_are_known_by_their_sizes_and_local_paths_are_not_followed(
    bucket_place: Location, clusters: tuple[Path, Path]
) -> None:
    place = bucket_place
    put(clusters[0], place)
    data = (place / "cdx-00001.gz").read_bytes()
    write(place / "cdx-00001.gz", bytes(len(data)))
    assert fault_of(place, exact=True) is None
    own = {f"{place}/{name}" for name in content(place)}
    write(place / "cluster.loc", b"cdx-00007.gz\t/etc/passwd\ts3://switched/other/cdx-00007.gz\n")
    found = {one.text for one in files_of(place / "cluster.idx")}
    assert found == own | {"s3://switched/other/cdx-00007.gz"}


def test_of_a_run_elsewhere_that_fails_nothing_stays_on_s3(bucket_place: Location) -> None:
    error = InputError("a", "is corrupt")
    write(bucket_place / "notes.txt", b"mine")
    with (
        pytest.raises(InputError, match="is corrupt"),
        open_output(bucket_place, "aaaaaaaa", False, Failures(), is_far=True) as opened,
    ):
        write(opened.work / "cdx-00000.gz", b"half")
        raise error
    assert keys_below(bucket_place) == {"notes.txt"}
