"""What a run notes of its own shards, and when its cluster is put in the place of another: where it is built, and what is held."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cluster import output, switch
from cdxmill.cluster.output import Output, check_replaceable, open_output, put_in_place
from cdxmill.cluster.write import RunRecord, write_record
from cdxmill.errors import StoppedError, UsageError
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location, locate

from ..material.cdx_files import cdxj, write_plain
from .test_output import RUN, names_in, put
from .test_switch import build


@pytest.mark.parametrize(
    ("built", "has_cluster", "given", "held"),
    [
        (None, True, [], []),
        (".C.new", True, [], []),
        ("C/.run-aaaaaaaa", True, ["C/.run-aaaaaaaa"], ["C/.run-aaaaaaaa"]),
        ("C/.run-aaaaaaaa", False, ["C/.run-aaaaaaaa"], []),
    ],
)
def test_where_the_new_cluster_is_decides_what_is_switched_and_held(
    built: str | None,
    has_cluster: bool,
    given: list[str],
    held: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[object, ...]] = []
    locks: list[tuple[object, ...]] = []
    put(tmp_path / "C", ".lock", *(["cluster.json"] if has_cluster else []))
    monkeypatch.setattr(output, "switch", lambda *words: [*map(calls.append, [words]), "x"][1:])
    monkeypatch.setattr(output, "hold", lambda *words: nullcontext([*map(locks.append, [words])]))
    place, notes = locate(tmp_path / "C"), list[str]()
    put_in_place(place, notes.append, ["a"], None if built is None else locate(tmp_path / built))
    assert calls == [(place, ["a"], *(locate(tmp_path / name) for name in given))]
    assert [one for one, _ in locks] == [locate(tmp_path / name) for name in held]
    assert notes == ["x: note: this file stays here, because the new cluster has one of the same name"]
    assert not (tmp_path / "C/.lock").exists()


def test_a_run_that_has_lost_its_lock_writes_no_record_and_switches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise StoppedError("another run holds the directory")

    put(tmp_path, "C/cluster.json", ".C.new/cluster.json")
    monkeypatch.setattr(output, "check_held", lost)
    opened = Output(locate(tmp_path / "C"), locate(tmp_path / ".C.new"), Failures())
    with pytest.raises(StoppedError, match="another run holds"):
        opened.record(RUN, [1], [])
    with pytest.raises(StoppedError, match="another run holds"):
        opened.finish()
    assert names_in(tmp_path / ".C.new") == names_in(tmp_path / "C") == {"cluster.json"}


def test_a_run_notes_which_shards_are_its_own(tmp_path: Path) -> None:
    put(tmp_path, ".work/job.json", "cdx-00002.gz", "cdx-00003.gz")
    opened = Output(locate(tmp_path), locate(tmp_path), Failures())
    opened.start(3)
    assert (tmp_path / ".work/shards.json").read_bytes() == b"3"
    opened.clear()
    assert names_in(tmp_path) == {".work", "cdx-00003.gz"}


@pytest.mark.parametrize(
    ("needs_repair", "has_directories", "is_far", "wanted"),
    [
        (True, True, True, []),
        (True, False, False, []),
        (False, True, True, ["remove_tree"]),
        (False, True, False, ["remove_tree"]),
        (False, False, True, ["remove_tree"]),
        (False, False, False, ["discard"]),
    ],
)
def test_what_was_built_of_inputs_that_cannot_be_read_is_deleted_unless_it_is_the_cluster(
    needs_repair: bool,
    has_directories: bool,
    is_far: bool,
    wanted: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On S3, where a run on this machine builds below the cluster, only files of cdxmill are."""
    calls: list[str] = []
    place: Any = SimpleNamespace(properties=SimpleNamespace(has_directories=has_directories))
    work: Any = SimpleNamespace(remove_tree=lambda: calls.append("remove_tree"))
    monkeypatch.setattr(output, "needs_repair", lambda one: one is place and needs_repair)
    monkeypatch.setattr(output, "discard", lambda one: calls.append("discard") if one is place else None)
    output._discard_work(place, work, is_far)
    assert calls == wanted


@pytest.mark.parametrize("is_far", [True, False])
def test_a_run_that_has_finished_builds_nothing_and_leaves_no_work(is_far: bool, tmp_path: Path) -> None:
    place = locate(tmp_path / "C")
    cluster = write_plain(tmp_path / "a.cdxj", [cdxj("com,a)/")])
    build(tmp_path / "C", cluster, 1)
    (tmp_path / "C/.finished.json").unlink()
    write_record(place, RunRecord(RUN, [7], [], []))
    put(tmp_path / "C", ".work/job.json")
    before = names_in(tmp_path / "C") - {".work"}
    with open_output(place, RUN, False, Failures(), is_far=is_far) as opened:
        assert (opened.work, opened.finished) == (place, RunRecord(RUN, [7], [], []))
        assert names_in(tmp_path / "C") == before
        opened.finish()
    assert names_in(tmp_path / "C") == before


def test_a_run_far_away_gets_the_indexes_of_a_killed_one(tmp_path: Path) -> None:
    """They are of the same archives, and took long. A run on this machine has no use for them."""
    for is_far in (False, True):
        put(
            tmp_path / "C",
            ".run-bbbbbbbb/.replaces",
            ".run-bbbbbbbb/cdx/a.cdx.gz",
            ".run-bbbbbbbb/cdx-00000.gz",
        )
        with open_output(locate(tmp_path / "C"), RUN, False, Failures(), is_far=is_far) as opened:
            own = Path(opened.work.local)
            assert not (tmp_path / "C/.run-bbbbbbbb").exists()
            if is_far:
                assert names_in(own) == {".replaces", "cdx"}
                assert names_in(own / "cdx") == {"a.cdx.gz"}
            else:
                assert names_in(own) == {".lock"}


@pytest.mark.parametrize("name", ["cdx-00009.gz", "part-00009", "overlay-00009-1.keys", "cdx-00000-1.gz"])
def test_a_cluster_beside_files_of_another_cannot_be_replaced(name: str, tmp_path: Path) -> None:
    build(tmp_path / "C", write_plain(tmp_path / "a.cdxj", [cdxj("com,a)/")]), 1)
    put(tmp_path / "C", "notes.txt", "x-cdx-00009.gz")
    check_replaceable(locate(tmp_path / "C"))
    put(tmp_path / "C", name)
    reason = f"/C: {name} is not of the cluster there \\(cluster.json does not list it\\); move it away, or choose another"
    with pytest.raises(UsageError, match=reason):
        check_replaceable(locate(tmp_path / "C"))


@pytest.mark.parametrize("is_far", [True, False])
def test_a_cluster_that_was_finished_just_before_the_switch_is_put_in_its_place(
    is_far: bool, tmp_path: Path
) -> None:
    place = tmp_path / "C"
    record = RunRecord(RUN, [7], [], [])
    for path, key in ((tmp_path / "new", "org,a)/"), (place, "com,a)/")):
        build(path, write_plain(tmp_path / f"{path.name}.cdxj", [cdxj(key)]), 1)
    write_record(locate(tmp_path / "new"), record)
    put(tmp_path / "new", ".replaces", ".work/job.json")
    (tmp_path / "new").rename(place / f".run-{RUN}" if is_far else tmp_path / ".C.new")
    wanted = names_in(place)
    with open_output(locate(place), RUN, True, Failures(), is_far=is_far) as opened:
        assert opened.finished == record
    assert names_in(place) - {".lock"} == wanted - {f".run-{RUN}"}
    assert (place / "cluster.idx").read_bytes().startswith(b"org,a)/")
    assert not (tmp_path / ".C.new").exists()


def note_changes(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synchronized, moved and deleted below a directory, in order."""
    done: list[str] = []

    def noted(owner: object, name: str) -> None:
        call = getattr(owner, name)

        def note(one: Any, *more: Any) -> Any:
            done.append(f"{name} {Path(str(one)).relative_to(directory)}")
            return call(one, *more)

        monkeypatch.setattr(owner, name, note)

    noted(switch, "sync_directory")
    for name in ("exchange", "move", "remove", "remove_tree"):
        noted(Location, name)
    return done


def test_the_disk_has_what_was_moved_before_anything_of_the_old_cluster_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, too, one of the two clusters is whole."""
    for name in ("C", ".C.new"):
        build(tmp_path / name, write_plain(tmp_path / "a.cdxj", [cdxj("com,a)/")]), 1)
    put(tmp_path, ".C.new/.replaces", "C/notes.txt")
    done = note_changes(tmp_path, monkeypatch)
    assert switch.switch(locate(tmp_path / "C")) == []
    assert done[:6] == [
        "sync_directory .C.new",
        "exchange .C.new",
        "sync_directory .",
        "move .C.new",
        "move .C.old/notes.txt",
        "sync_directory C",
    ]
    own = ("remove .C.old/", "remove_tree .C.old/")
    assert all(one.startswith(own) for one in done[6:-2])
    assert done[-4:] == [
        *(f"remove .C.old/{name}" for name in (".finished.json", "cluster.json")),
        *("remove .C.old", "remove C/.replaces"),
    ]


def test_the_disk_has_the_shards_of_a_run_elsewhere_before_the_indexes_and_these_before_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "C/.run-aaaaaaaa"
    build(built, write_plain(tmp_path / "a.cdxj", [cdxj("com,a)/")]), 1)
    done = note_changes(tmp_path, monkeypatch)
    assert switch.switch(locate(tmp_path / "C"), built=locate(built)) == []
    steps = [set(step.split("|")) - {""} for step in "|".join(done).split("sync_directory C")]
    moved = [{one.rpartition("/")[2] for one in step if one.startswith("move")} for step in steps]
    beside = {".finished.json", "splits.seq", "splits.txt", "cluster.loc", "part-00000"}
    indexes = {"cluster.idx", "cluster.summary"}
    assert moved == [set(), {"cdx-00000.gz"}, beside, indexes, {"cluster.json"}, set()]
    assert {"remove_tree C/.run-aaaaaaaa", "remove C/.new/.replaces.json"} <= steps[-1]
