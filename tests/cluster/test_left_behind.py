"""What a switch leaves beside the new cluster, what it discards first, and what stops it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster import output, switch
from cdxmill.cluster.output import check_replaceable, mend
from cdxmill.cluster.write import RunRecord, read_record, write_record
from cdxmill.errors import StoppedError, UsageError
from cdxmill.storage.location import Location, locate

from .test_switch import (
    build,
    foreign_files,
    is_whole,
    make_old,
    new_cdx,
    new_directory,
    old_cdx,
    old_directory,
)

__all__ = ["new_cdx", "old_cdx"]


def put_new(directory: Path, cdx: Path) -> Path:
    """A complete new cluster beside `directory`, where no cluster is yet."""
    build(directory, cdx, 2)
    (directory / ".replaces").touch()
    return directory.rename(new_directory(directory))


def put_both(directory: Path, old_cdx: Path, new_cdx: Path) -> Path:
    """A cluster, and the complete new one beside it, which is returned."""
    build(directory, old_cdx, 3)
    directory.rename(directory.with_name("aside"))
    new = put_new(directory, new_cdx)
    directory.with_name("aside").rename(directory)
    return new


def test_what_both_clusters_have_stays_beside_the_new_one(
    old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    make_old(directory, old_cdx)
    directory.rename(tmp_path / "aside")
    (put_new(directory, new_cdx) / "notes.txt").write_bytes(b"theirs")
    (tmp_path / "aside").rename(directory)
    left = switch.switch(locate(directory))
    assert left == [str(old_directory(directory) / "notes.txt")]
    assert (directory / "notes.txt").read_bytes() == b"theirs"
    assert is_whole(directory, new_cdx)
    assert foreign_files(directory) == {"notes.txt", "cdx/deep/mine.txt"}
    assert [path.name for path in old_directory(directory).iterdir()] == ["notes.txt"]
    with pytest.raises(UsageError, match="was replaced before"):
        build(directory, old_cdx, 3, replace=True)


def test_a_new_cluster_is_discarded_with_its_manifest_first_and_without_its_marks(
    new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = put_new(tmp_path / "C", new_cdx)
    (new / ".lock").touch()
    gone: list[str] = []
    remove = Location.remove_tree

    def noted(one: Location) -> None:
        gone.append(one.name)
        remove(one)

    monkeypatch.setattr(Location, "remove_tree", noted)
    switch.discard(locate(tmp_path / "C"))
    assert {path.name for path in new.iterdir()} == {".replaces", ".lock"}
    assert gone[0] == "cluster.json"
    assert len(gone) == len(set(gone)) > 5


def test_an_old_cluster_of_which_nothing_is_known_stays_beside_the_new_one(
    old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    build(directory, new_cdx, 2)
    (directory / ".replaces").touch()
    build(tmp_path / "old", old_cdx, 3)
    (tmp_path / "old/cluster.json").write_bytes(b"{}")
    (tmp_path / "old").rename(old_directory(directory))
    before = sorted(path.name for path in old_directory(directory).iterdir())
    with pytest.raises(StoppedError, match=r"is corrupt.*; the files of the old cluster stay in .*/\.C\.old"):
        mend(locate(directory), print)
    assert sorted(path.name for path in old_directory(directory).iterdir()) == before
    assert is_whole(directory, new_cdx)


def test_a_run_that_is_killed_while_another_one_waits_for_the_lock_is_noticed(
    old_cdx: Path, new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "C"
    build(directory, old_cdx, 3)
    monkeypatch.setattr(output, "mend", lambda place, note: (directory / ".replaces").touch())
    with pytest.raises(
        StoppedError, match="another run was killed while it replaced the cluster; run it again"
    ):
        build(directory, new_cdx, 2, replace=True)
    assert is_whole(directory, old_cdx)


def test_a_manifest_that_cannot_be_read_stops_the_run(old_cdx: Path, tmp_path: Path) -> None:
    build(tmp_path / "C", old_cdx, 3)
    (tmp_path / "C/cluster.json").unlink()
    (tmp_path / "C/cluster.json").mkdir()
    with pytest.raises(StoppedError, match=r"cluster\.json: cannot be read \(Is a directory\)"):
        check_replaceable(locate(tmp_path / "C"))


def test_below_a_directory_of_indexes_files_of_others_move_one_by_one(
    pywb_warcs: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    for name, target in (("example", tmp_path / "aside"), ("iana", new_directory(directory))):
        cdxmill.build(pywb_warcs / f"{name}.warc.gz", output=directory, shards=1, processes=1)
        for file in ("cdx/both.txt", f"cdx/{name}.txt", "foreign/both.txt", f"foreign/{name}.txt"):
            (directory / file).parent.mkdir(exist_ok=True)
            (directory / file).write_text(name)
        directory.rename(target)
    (tmp_path / "aside").rename(directory)
    old = old_directory(directory)
    assert switch.switch(locate(directory)) == [str(old / "cdx/both.txt"), str(old / "foreign")]
    (index,) = directory.glob("cdx/*.cdx.gz")
    assert index.name.startswith("iana")
    found = {str(path.relative_to(directory)) for path in directory.glob("*/*") if path != index}
    assert found == {
        *("cdx/both.txt", "cdx/example.txt", "cdx/iana.txt", "cdx/.outputs.tsv"),
        *("foreign/both.txt", "foreign/iana.txt"),
    }
    assert (directory / "cdx/both.txt").read_text() == "iana"
    assert {str(path.relative_to(old)) for path in old.glob("*/*")} == {
        *("cdx/both.txt", "foreign/both.txt", "foreign/example.txt"),
    }


@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize("kind", ["link", "file", "directory"])
def test_what_somebody_has_put_beside_the_cluster_is_refused(
    kind: str, is_marked: bool, old_cdx: Path, tmp_path: Path
) -> None:
    """Only a marked directory, or an empty one, is cdxmill's. A link is not, wherever it leads."""
    build(tmp_path / "C", old_cdx, 3)
    new, mine = new_directory(tmp_path / "C"), tmp_path / "mine"
    if kind == "file":
        new.write_bytes(b"mine")
    else:
        mine.mkdir()
        if is_marked:
            (mine / ".replaces").touch()
            (mine / "mine.txt").touch()
        new.symlink_to("mine") if kind == "link" else mine.rename(new)
    if kind == "directory":
        check_replaceable(locate(tmp_path / "C"))
    else:
        with pytest.raises(UsageError, match=r"\.C\.new is not of cdxmill; move it away"):
            check_replaceable(locate(tmp_path / "C"))


def test_a_link_in_the_old_cluster_stays_and_what_it_leads_to_does_not_move(
    pywb_warcs: Path, tmp_path: Path
) -> None:
    """Somebody has put the directory of indexes on another disk."""
    directory, disk = tmp_path / "C", tmp_path / "disk"
    for name, target in (("example", tmp_path / "aside"), ("iana", new_directory(directory))):
        cdxmill.build(pywb_warcs / f"{name}.warc.gz", output=directory, shards=1, processes=1)
        directory.rename(target)
    (tmp_path / "aside/cdx").rename(disk)
    (disk / "mine.txt").touch()
    (tmp_path / "aside/cdx").symlink_to(disk)
    (new_directory(directory) / ".replaces").touch()
    (tmp_path / "aside").rename(directory)
    assert switch.switch(locate(directory)) == [str(old_directory(directory) / "cdx")]
    assert [path.name for path in disk.iterdir()] == ["mine.txt"], (
        "without the indexes that the run had written"
    )
    assert [path.name for path in directory.glob("cdx/*.cdx.gz")] != []


@pytest.mark.parametrize("has_new", [True, False])
def test_a_list_of_archives_that_no_run_has_recorded_moves_unless_the_new_cluster_has_one(
    has_new: bool, old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    new = put_both(directory, old_cdx, new_cdx)
    if has_new:
        (new / "archives.tsv").write_text("new")
    (directory / "archives.tsv").write_text("old")
    assert switch.switch(locate(directory)) == []
    assert (directory / "archives.tsv").read_text() == ("new" if has_new else "old")
    assert not old_directory(directory).exists()


def test_directories_of_indexes_are_deleted_from_the_innermost_on(
    old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    new = put_both(directory, old_cdx, new_cdx)
    (directory / "cdx/deep").mkdir(parents=True)
    (directory / "cdx/deep/a.cdx.gz").touch()
    (new / "cdx/deep").mkdir(parents=True)
    write_record(locate(directory), RunRecord("run", [], [], ["cdx/deep/a.cdx.gz"]))
    assert switch.switch(locate(directory)) == []
    assert not old_directory(directory).exists()
    assert list((directory / "cdx/deep").iterdir()) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], False),
        (["C"], False),
        (["C", ".C.old"], False),
        (["C", ".C.new"], False),
        ([".C.old"], True),
        (["C/.replaces"], True),
        (["C/.new"], False),
        (["C/.new/.replaces.json"], True),
    ],
)
def test_only_a_switch_that_was_begun_is_completed(names: list[str], expected: bool, tmp_path: Path) -> None:
    """Files that an earlier one has left in OLD are no reason: else nobody could change the cluster any more."""
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    assert switch.needs_repair(locate(tmp_path / "C")) is expected


def noted_steps(has_exchange: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced, renamed and deleted from now on, in order."""
    steps: list[str] = []
    fsync = os.fsync

    def note_sync(handle: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}")
        fsync(handle)

    def noted(name: str) -> None:
        do = getattr(Location, name)

        def operation(place: Location, *others: Location) -> object:
            steps.append(" ".join([name, place.name, *(one.name for one in others)]))
            return do(place, *others) if has_exchange or name != "exchange" else False

        monkeypatch.setattr(Location, name, operation)

    monkeypatch.setattr(os, "fsync", note_sync)
    for name in ("exchange", "move", "remove", "remove_tree"):
        noted(name)
    return steps


@pytest.mark.parametrize("has_exchange", [True, False])
def test_names_are_on_the_disk_before_what_they_replace_is_deleted(
    has_exchange: bool, old_cdx: Path, new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "C"
    put_both(directory, old_cdx, new_cdx)
    steps = noted_steps(has_exchange, monkeypatch)
    switch.switch(locate(directory))
    two = [] if has_exchange else ["move C .C.old", "move .C.new C"]
    after = ["move .C.new .C.old"] if has_exchange else []
    began = ["sync .C.new", "exchange .C.new C", *two, f"sync {tmp_path.name}", *after, "sync C"]
    assert steps[: len(began)] == began
    assert steps[len(began)].startswith("remove_tree ")
    last = ["remove .finished.json", "remove cluster.json", "remove .C.old", "remove .replaces"]
    assert steps[-len(last) :] == last


def test_a_directory_whose_manifest_is_gone_is_replaced_as_a_whole(new_cdx: Path, tmp_path: Path) -> None:
    """The new cluster is beside it, so no file is moved from a directory below."""
    directory = tmp_path / "C"
    put_new(directory, new_cdx)
    directory.mkdir()
    (directory / "notes.txt").write_bytes(b"mine")
    assert switch.switch(locate(directory)) == []
    assert is_whole(directory, new_cdx)
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()
    assert (directory / "notes.txt").read_bytes() == b"mine"


def test_a_run_that_replaces_no_cluster_touches_nothing_beside_the_directory(
    new_cdx: Path, tmp_path: Path
) -> None:
    """Nobody has looked whether the directory can be renamed, and whose files those are."""
    directory, built = tmp_path / "C", tmp_path / "C/.run-aaaaaaaa"
    new = put_new(directory, new_cdx)
    directory.mkdir()
    new.rename(built)
    for name in ("C/cdx/mine.txt", "C/.run-aaaaaaaa/cdx/a.cdx.gz"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"mine")
    record = read_record(locate(built))
    assert record is not None
    write_record(locate(built), record._replace(files=["cdx/a.cdx.gz"]))
    for beside in (new_directory(directory), old_directory(directory)):
        beside.mkdir()
        (beside / "mine.txt").write_bytes(b"mine")
    assert switch.switch(locate(directory), (), locate(built)) == []
    assert is_whole(directory, new_cdx)
    assert not built.exists()
    assert {path.name for path in (directory / "cdx").iterdir()} == {"mine.txt", "a.cdx.gz"}
    for beside in (new_directory(directory), old_directory(directory)):
        assert (beside / "mine.txt").read_bytes() == b"mine"


def test_files_that_are_moved_are_on_the_disk_before_the_index_that_leads_to_them(
    new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, built = tmp_path / "C", tmp_path / "C/.run-aaaaaaaa"
    new = put_new(directory, new_cdx)
    directory.mkdir()
    new.rename(built)
    steps = noted_steps(True, monkeypatch)
    switch.switch(locate(directory), (), locate(built))
    groups = "\n".join(steps).split("sync C\n")
    moved = [{step.split()[1] for step in group.splitlines() if step.startswith("move ")} for group in groups]
    assert [names for names in moved if names] == [
        {"cdx-00000.gz", "cdx-00001.gz"},
        {"part-00000", "part-00001", "cluster.loc", "splits.txt", "splits.seq", ".finished.json"},
        {"cluster.idx", "cluster.summary"},
        {"cluster.json"},
    ]
    assert moved[-1] == set()
    assert "remove_tree .run-aaaaaaaa" in groups[-1]


def test_names_that_cannot_be_put_on_the_disk_stop_the_switch(
    old_cdx: Path, new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "C"
    put_both(directory, old_cdx, new_cdx)

    def failing(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(StoppedError, match="Input/output error"):
        patch.setattr(os, "fsync", failing)
        switch.switch(locate(directory))
    mend(locate(directory), print)
    assert is_whole(directory, old_cdx) or is_whole(directory, new_cdx)
