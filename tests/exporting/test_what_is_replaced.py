"""A table replaces what an export wrote, and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.commands.exporting.listed_files import LIST, Staged, check_written, files_listed
from cdxmill.commands.exporting.staging import check_free, staged_directory
from cdxmill.errors import StoppedError, UsageError
from cdxmill.storage.location import locate
from tests.material.open_files import open_files

HELD = "already exists; use --replace to replace it"
FOREIGN = "has files that no export wrote"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def table(path: Path) -> Path:
    """A directory of two files that an export wrote."""
    (path / "_cdxmill").mkdir(parents=True)
    for name in ("a.parquet", "b.parquet"):
        (path / name).write_bytes(b"PAR1")
    (path / LIST).write_text(json.dumps({"files": {"a.parquet": 4, "b.parquet": 4}}))
    return path


def test_a_place_is_free_if_nothing_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("absent", "empty"):
        for replace in (False, True):
            check_free(tmp_path / name, replace)


@pytest.mark.parametrize(
    ("make", "reason", "replaced"),
    [
        (lambda path: path.write_bytes(b""), "is not a directory", "is not a directory"),
        (lambda path: path.symlink_to("absent"), "is not a directory", "is not a directory"),
        (lambda path: path.symlink_to(table(path.parent / "b")), "is not a directory", "is not a directory"),
        (lambda path: os.mkfifo(path), "is not a directory", "is not a directory"),
        (lambda path: (path / "deep").mkdir(parents=True), HELD, ""),
        (table, HELD, ""),
        (lambda path: (table(path) / "b.parquet").unlink(), HELD, ""),
        (lambda path: (table(path) / "mine").write_bytes(b""), HELD, rf"{FOREIGN} \(mine\)"),
        (lambda path: (table(path) / "mine").symlink_to("a.parquet"), HELD, rf"{FOREIGN} \(mine\)"),
        (lambda path: (table(path) / "mine").symlink_to("absent"), HELD, rf"{FOREIGN} \(mine\)"),
        (lambda path: os.mkfifo(table(path) / "mine"), HELD, rf"{FOREIGN} \(mine\)"),
        (lambda path: (table(path) / LIST).unlink(), HELD, rf"{FOREIGN} \(a.parquet\)"),
        (lambda path: (table(path) / LIST).write_text("[]"), HELD, rf"{FOREIGN} \(_cdxmill/export.json\)"),
    ],
    ids=[
        *("file", "dangling-link", "link", "fifo", "directory", "table", "table-without-a-file"),
        *("own-file", "own-link", "own-dangling-link", "own-fifo", "no-list", "odd-list"),
    ],
)
def test_what_somebody_has_there_stays(
    make: Callable[[Path], object], reason: str, replaced: str, tmp_path: Path
) -> None:
    make(tmp_path / "t")
    for replace, expected in ((False, reason), (True, replaced)):
        if expected:
            with pytest.raises(UsageError, match=expected):
                check_free(tmp_path / "t", replace)
        else:
            check_free(tmp_path / "t", replace)


def write(output: Path, files: list[str], replace: bool = False) -> None:
    with staged_directory(str(output), replace, print) as staged:
        for name in files:
            with (staged.place / name).write_atomic() as file:
                file.write(name.encode())
        staged.finish({name: len(name) for name in files}, {"lines": 3})


def test_a_table_takes_the_place_of_another_one_whole(tmp_path: Path) -> None:
    write(tmp_path / "t", ["a", "b"])
    assert names(tmp_path / "t") == ["_cdxmill", "a", "b"]
    with pytest.raises(UsageError, match=HELD):
        write(tmp_path / "t", ["c"])
    write(tmp_path / "t", ["c"], replace=True)
    assert names(tmp_path / "t") == ["_cdxmill", "c"]
    assert json.loads((tmp_path / "t" / LIST).read_bytes()) == {"lines": 3, "files": {"c": 1}}
    assert files_listed(locate(tmp_path / "t")) == {LIST, "c"}
    assert names(tmp_path) == ["t"]


def test_what_appears_meanwhile_stays(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=HELD),
        staged_directory(str(tmp_path / "t"), False, print) as staged,
    ):
        staged.finish({}, {})
        (tmp_path / "t").mkdir()
        (tmp_path / "t/mine").write_bytes(b"")
    assert names(tmp_path) == ["t"]
    assert names(tmp_path / "t") == ["mine"]


def test_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), staged_directory(str(tmp_path / "deep/t"), False, print) as staged:
        assert isinstance(staged, Staged)
        raise KeyError
    assert names(tmp_path) == []


@pytest.mark.parametrize("files", [{"a": 3}, {"a": 2, "b": 0}, {"a": 1}])
def test_a_file_that_is_not_as_it_was_written_stops_the_export(files: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"xy")
    check_written(locate(tmp_path), {"a": 2})
    with pytest.raises(StoppedError, match="the file that a node wrote is not there"):
        check_written(locate(tmp_path), files)


def test_what_a_killed_run_left_is_deleted_and_no_file_stays_open(tmp_path: Path) -> None:
    for name in (".t.123-0123abcd.tmp", ".t.124-0123abcd.tmp", ".u.123-0123abcd.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.parquet").touch()
    (tmp_path / ".t.125-0123abcd.tmp").touch()
    (tmp_path / ".t.126-0123abcd.tmp").symlink_to(tmp_path / ".u.123-0123abcd.tmp")
    with (tmp_path / ".t.124-0123abcd.tmp/a.parquet").open():
        held = os.open(tmp_path / ".t.124-0123abcd.tmp", os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        write(tmp_path / "t", ["c"])
        os.close(held)
    kept = [".t.124-0123abcd.tmp", ".t.125-0123abcd.tmp", ".t.126-0123abcd.tmp", ".u.123-0123abcd.tmp", "t"]
    assert names(tmp_path) == kept
    assert open_files(tmp_path) == []
