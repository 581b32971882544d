"""What a switch leaves beside the new cluster, what it discards first, and what stops it."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster import output, switch
from cdxmill.cluster.output import check_replaceable, mend
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
