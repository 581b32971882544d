"""The steps of a change, in order: what is written, kept and deleted, and what a killed change leaves to the next one."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cdxmill.cluster import change
from cdxmill.cluster.change import (
    Change,
    changed_locations,
    changed_record,
    delete_kept,
    is_changeable,
    open_change,
    settle,
)
from cdxmill.cluster.write import FINISHED, RunRecord, kept_shards, read_record, write_record
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import Location, locate

from .test_output import names_in, put
from .test_switch import build, new_cdx, old_cdx, old_directory

__all__ = ["new_cdx", "old_cdx"]

NEW = "cdx-00001-1.gz"
"""The second shard after the first change."""


@pytest.fixture
def place(old_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster of three shards, and no wait for readers."""
    build(tmp_path / "C", old_cdx, 3)
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0)
    assert is_changeable(tmp_path / "C")
    return tmp_path / "C"


def replace_shard(opened: Change, stale: Sequence[str] = ()) -> None:
    """Commit a copy of the second shard as its successor."""
    directory = Path(opened.place.local)
    shutil.copy(directory / "cdx-00001.gz", directory / NEW)
    part = (directory / "part-00001").read_text().replace("cdx-00001.gz", NEW)
    (directory / "part-00001-1").write_text(part)
    first, second, *others = opened.manifest.shards
    record = changed_record(opened.place, opened.number, [], [])
    opened.commit([first, second._replace(name=NEW), *others], record, {"beside.txt": b"new"}, stale)


def changed(place: Path, stale: Sequence[str] = ()) -> None:
    with open_change(str(place), print) as opened:
        replace_shard(opened, stale)
        assert NEW in shards_in_index(place)


def rows_of(place: Path) -> list[str]:
    return [line.split("\t")[0] for line in (place / "cluster.loc").read_text().splitlines()]


def shards_in_index(place: Path) -> set[str]:
    return {line.split("\t")[1] for line in (place / "cluster.idx").read_text().splitlines()}


def whole(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


def test_readers_find_the_new_shards_in_the_locations_before_the_index_has_them(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 7)
    monkeypatch.setattr(
        time, "sleep", lambda seconds: seen.append((seconds, rows_of(place), shards_in_index(place)))
    )
    changed(place)
    old = {f"cdx-0000{number}.gz" for number in range(3)}
    assert seen == [(7, ["cdx-00000.gz", NEW, "cdx-00002.gz", "cdx-00001.gz"], old)]
    assert shards_in_index(place) == old - {"cdx-00001.gz"} | {NEW}


def test_the_new_manifest_is_beside_the_index_until_the_change_is_done(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what shows that the change is ready, and then that it is cdxmill's, goes after what each of them needs."""
    removed: list[str] = []
    put(place, "stale.txt", "sub/stale.txt")

    def noted(do: Callable[[Location], None]) -> Callable[[Location], None]:
        def remove(one: Location) -> None:
            if one.name == "ready.json":
                assert (place / ".change/cluster.json").read_bytes() == (place / "cluster.json").read_bytes()
            removed.append(one.name)
            do(one)

        return remove

    for name in ("remove", "remove_tree"):
        monkeypatch.setattr(Location, name, noted(getattr(Location, name)))
    changed(place, ["stale.txt", "sub/stale.txt"])
    assert removed == ["stale.txt", "stale.txt", "ready.json", "cluster.json", "plan.json", ".change"]
    assert json.loads((place / "cluster.json").read_text())["change"] == 1
    assert (place / "beside.txt").read_bytes() == b"new"
    assert list(kept_shards(locate(place))) == ["cdx-00001.gz"]
    record = read_record(locate(place))
    assert record is not None
    assert record.run == "change 1"
    assert names_in(place) >= {"cdx-00001.gz", NEW, "sub"}
    assert not (place / "sub/stale.txt").exists()


@pytest.mark.parametrize("name", ["cluster.summary", "cluster.idx", "cluster.json"])
def test_a_change_that_was_killed_while_it_moved_files_is_completed(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill is before this file has its new content. On HDFS, the manifest may be missing then."""
    shutil.copytree(place, place.with_name("expected"))
    changed(place.with_name("expected"))
    move, write = Location.move, change._write

    def killed(one: Location) -> None:
        if one.name == name and ".change" not in one.text:
            raise KeyboardInterrupt

    def move_or_not(one: Location, target: Location) -> None:
        killed(target)
        move(one, target)

    def write_or_not(one: Location, data: bytes) -> None:
        killed(one)
        write(one, data)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Location, "move", move_or_not)
        patch.setattr(change, "_write", write_or_not)
        changed(place)
    assert is_changeable(place)
    (place / "cluster.json").unlink()
    assert is_changeable(place)
    with open_change(place, print) as opened:
        assert opened.number == 2
    changing = {".kept.json", "cluster.loc"}
    found, expected = whole(place), whole(place.with_name("expected"))
    assert {one: found[one] for one in found.keys() - changing} == {
        one: expected[one] for one in expected.keys() - changing
    }
    assert not (place / ".change").exists()


FOREIGN = ["notes.txt", "cdx-00007.gz", "cdx-00000-1", "overlay-00001-1.txt", "cdx-00000-2.gz"]
WRITTEN = [NEW, "part-00001-1", *(f"overlay-00001-1.{ending}" for ending in ("gz", "idx", "keys"))]


@pytest.mark.parametrize("has_locations", [True, False])
def test_of_a_change_that_is_taken_back_only_its_own_files_are_deleted(
    has_locations: bool, place: Path
) -> None:
    put(place, *FOREIGN)
    before, number = whole(place), (place / "cluster.loc").stat().st_ino
    put(place, *WRITTEN)
    put(place, ".change/plan.json", text='{"change": 1}')
    if has_locations:
        with (place / "cluster.loc").open("a") as file:
            file.write(f"{NEW}\t{place}/{NEW}\n")
        number = (place / "cluster.loc").stat().st_ino
    settle(locate(place))
    assert whole(place) == before
    is_written = (place / "cluster.loc").stat().st_ino != number
    assert is_written is has_locations, "if the disk is full, nothing can be written"
    assert not (place / ".change").exists()


def test_a_change_of_which_the_plan_alone_is_left_is_not_taken_back(place: Path) -> None:
    changed(place)
    before = whole(place)
    put(place, ".change/plan.json", text='{"change": 1}')
    settle(locate(place))
    assert whole(place) == before


def test_a_change_that_raises_is_taken_back(place: Path) -> None:
    before = whole(place)
    with pytest.raises(InputError), open_change(place, print) as opened:
        put(place, *WRITTEN)
        assert json.loads((opened.staged / "plan.json").read_bytes()) == {"change": 1}
        raise InputError("a", "is corrupt")
    assert whole(place) == before
    assert not (place / ".change").exists()


@pytest.mark.parametrize("name", ["plan.json", "ready.json"])
@pytest.mark.parametrize("text", ["mine", "[]", "{}"])
def test_a_change_that_is_not_of_cdxmill_stays(name: str, text: str, place: Path) -> None:
    put(place, f".change/{name}", text=text)
    with pytest.raises(StoppedError, match="is not of cdxmill, or corrupt; move it away"):
        settle(locate(place))
    assert (place / ".change" / name).read_text() == text


def test_a_cluster_that_cannot_be_changed_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="http:// cannot be written"), open_change("http://a/C", print):
        pass
    with pytest.raises(UsageError, match="not a ZipNum cluster"), open_change(place.parent, print):
        pass
    put(place, ".change/mine.txt")
    with pytest.raises(UsageError, match="is a directory of somebody else"), open_change(place, print):
        pass
    shutil.rmtree(place / ".change")
    (place / "part-00000").unlink()
    with pytest.raises(InputError, match="part-00000 is missing"), open_change(place, print):
        pass
    reason = r"has no cluster\.json, so it cannot be changed"
    (place / "cluster.json").rename(place.parent / "kept")
    assert not is_changeable(place)
    with pytest.raises(UsageError, match=reason), open_change(place, print):
        pass
    reason = "was killed while it replaced the cluster"
    (place.parent / "kept").rename(place / "cluster.json")
    monkeypatch.setattr(change, "mend", lambda place, note: put(Path(place.local), ".replaces"))
    with pytest.raises(StoppedError, match=reason), open_change(place, print):
        pass


def test_a_replacement_that_was_killed_is_completed_before_a_change(place: Path) -> None:
    place.rename(old_directory(place))
    changed(place)
    assert NEW in shards_in_index(place)
    assert not old_directory(place).exists()


def test_new_shards_are_where_those_of_their_number_are(tmp_path: Path) -> None:
    """A place that does not end with the name of the shard is not known for its successor."""
    (tmp_path / "cluster.loc").write_text(
        "cdx-00000.gz\tone/cdx-00000.gz\ttwo/cdx-00000.gz\n"
        "cdx-00001-1.gz\tthree/cdx-00001-1.gz\tfour/other\n"
        "overlay-00001-1.gz\tfive/overlay-00001-1.gz\n"
    )
    shards = ["cdx-00000.gz", "cdx-00001-2.gz", "overlay-00001-1.gz", "overlay-00002-2.gz"]
    found = changed_locations(locate(tmp_path), shards, {"cdx-00001-1.gz": 1.0, "cdx-00007.gz": 1.0})
    assert found.decode() == (
        "cdx-00000.gz\tone/cdx-00000.gz\ttwo/cdx-00000.gz\n"
        "cdx-00001-2.gz\tthree/cdx-00001-2.gz\n"
        "overlay-00001-1.gz\tfive/overlay-00001-1.gz\n"
        "overlay-00002-2.gz\tone/overlay-00002-2.gz\ttwo/overlay-00002-2.gz\n"
        "cdx-00001-1.gz\tthree/cdx-00001-1.gz\tfour/other\n"
    )


def test_only_kept_shards_that_are_due_and_in_no_list_are_deleted(place: Path) -> None:
    changed(place)
    put(place, "cdx-00009.gz", "part-00009")
    put(place, "notes.txt")
    young, listed = {"cdx-00009.gz": time.time()}, {"cdx-00000.gz": 1.0}
    put(place, ".kept.json", text=json.dumps({"cdx-00001.gz": 1.0, "notes.txt": 1.0, **young, **listed}))
    assert delete_kept(locate(place), 3600) == ["cdx-00001.gz"]
    assert not names_in(place) & {"cdx-00001.gz", "part-00001"}
    assert names_in(place) >= {"cdx-00000.gz", "part-00000", "cdx-00009.gz", "part-00009", "notes.txt"}
    assert rows_of(place) == ["cdx-00000.gz", NEW, "cdx-00002.gz"]
    assert kept_shards(locate(place)) == young | listed
    put(place, ".kept.json", text=json.dumps(listed))
    assert delete_kept(locate(place), 3600) == []
    assert (place / ".kept.json").exists()
    put(place, ".kept.json", text=json.dumps({"cdx-00009.gz": 1.0}))
    assert delete_kept(locate(place), 3600) == ["cdx-00009.gz"]
    assert not (place / ".kept.json").exists()


def test_the_record_of_a_changed_cluster_continues_that_of_its_build(tmp_path: Path) -> None:
    place, failures = locate(tmp_path), [Failure("a", None, "is corrupt"), Failure("b", 7, "is corrupt")]
    assert changed_record(place, 3, failures, ["a"]) == RunRecord("change 3", [], failures, ["a"])
    write_record(place, RunRecord("run", [1, 2], failures[:1], ["a", "b"]))
    found = changed_record(place, 3, failures[1:], ["b", "c"])
    assert found == RunRecord("change 3", [1, 2], failures, ["a", "b", "c"])
    assert read_record(place / "absent") is None
    assert (tmp_path / FINISHED).exists()


def test_the_parts_of_shards_that_stay_are_those_of_the_index_and_that_of_an_empty_one_its_file(
    old_cdx: Path, tmp_path: Path
) -> None:
    """The last shard has no lines, so the index does not have it. At a URL, one file is read in place of many."""
    place, lines = tmp_path / "C", [line.split(b" ")[0] for line in old_cdx.read_bytes().splitlines()]
    options = ZipnumOptions(points=(lines[20], lines[40], b"z"), block_lines=7, quiet=True)
    build_cluster([str(old_cdx)], place, options, Failures())
    assert shards_in_index(place) == {f"cdx-0000{number}.gz" for number in range(3)}
    expected = (place / "cluster.idx").read_bytes().replace(b"cdx-00001.gz", NEW.encode())
    with open_change(place, print) as opened:
        for name in ("part-00000", "part-00002"):
            (place / name).write_bytes(b"not read")
        replace_shard(opened)
    assert (place / "cluster.idx").read_bytes() == expected
