"""A table replaces what an export wrote, and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdxmill.commands.exporting import staging
from cdxmill.commands.exporting.listed_files import LIST, Staged, check_written, files_listed
from cdxmill.commands.exporting.staging import check_free, staged_directory
from cdxmill.errors import StoppedError, UsageError
from cdxmill.storage.location import Location, locate
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
        (lambda path: (table(path) / "mine").symlink_to(path.parent), HELD, rf"{FOREIGN} \(mine\)"),
        (lambda path: os.mkfifo(table(path) / "mine"), HELD, rf"{FOREIGN} \(mine\)"),
        (lambda path: (table(path) / LIST).unlink(), HELD, rf"{FOREIGN} \(a.parquet\)"),
        (lambda path: (table(path) / LIST).write_text("[]"), HELD, rf"{FOREIGN} \(_cdxmill/export.json\)"),
    ],
    ids=[
        *("file", "dangling-link", "link", "fifo", "directory", "table", "table-without-a-file"),
        *(
            "own-file",
            "own-link",
            "own-dangling-link",
            "own-link-to-directory",
            "own-fifo",
            "no-list",
            "odd-list",
        ),
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


def test_those_that_stay_do_not_hide_those_that_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each order in which a file system lists them."""
    (tmp_path / ".t.1-0123abcd.tmp").touch()
    (tmp_path / ".t.2-0123abcd.tmp").symlink_to(tmp_path)
    for number in (3, 4, 5):
        (tmp_path / f".t.{number}-0123abcd.tmp").mkdir()
    held = os.open(tmp_path / ".t.3-0123abcd.tmp", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(sorted(listed(path))))
    staging._remove_left(tmp_path / "t")
    os.close(held)
    assert names(tmp_path) == [f".t.{number}-0123abcd.tmp" for number in (1, 2, 3)]


def test_a_run_holds_its_directory_until_it_ends(tmp_path: Path) -> None:
    with staged_directory(str(tmp_path / "t"), False, print) as staged:
        path = staged.place.directory
        assert path is not None and path.parent == tmp_path
        handle = os.open(path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)
        write(tmp_path / "u", ["c"])
        staged.finish({}, {})
    assert names(tmp_path) == ["t", "u"]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("http://example.com/t", "http:// cannot be written"),
        ("file://example.com/t", "is not a local file"),
        ("file/t", "is not a directory"),
        ("file", "is not a directory"),
        ("full", HELD),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_read(
    output: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full/a").mkdir(parents=True)
    begun = False
    with (
        pytest.raises(UsageError, match=reason),
        staged_directory(output if "://" in output else str(tmp_path / output), False, print),
    ):
        begun = True
    assert not begun
    assert names(tmp_path) == ["file", "full"]


def test_a_url_is_left_to_the_staging_of_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    @contextmanager
    def staged_at_url(*args: object) -> Iterator[Location]:
        asked.append(args)
        yield locate("hdfs://n/t/.run-1")
        asked.append("done")

    monkeypatch.setattr(staging, "staged_at_url", staged_at_url)
    with staged_directory("hdfs://n/t", True, print) as staged:
        assert asked == [(locate("hdfs://n/t"), True, print)]
        assert staged.place == locate("hdfs://n/t/.run-1")
    assert asked[1:] == ["done"]


def test_a_new_name_is_on_the_disk_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []
    monkeypatch.setattr(staging, "sync_directory", lambda path: synced.append(names(path)))
    write(tmp_path / "t", ["a"])
    assert synced == [["t"]]


@pytest.mark.parametrize("is_exchanged", [True, False])
def test_where_directories_cannot_be_exchanged_the_old_one_is_moved_away(
    is_exchanged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t", ["a", "b"])
    if not is_exchanged:
        monkeypatch.setattr(Location, "exchange", lambda one, other: False)
    write(tmp_path / "t", ["c"], replace=True)
    assert (names(tmp_path), names(tmp_path / "t")) == (["t"], ["_cdxmill", "c"])


def test_an_empty_directory_is_replaced_by_a_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails if the directory is not empty any more."""
    (tmp_path / "t").mkdir()

    def exchange(one: Location, other: Location) -> bool:
        raise AssertionError(f"{one} and {other} are exchanged")

    monkeypatch.setattr(Location, "exchange", exchange)
    write(tmp_path / "t", ["a"])
    assert names(tmp_path / "t") == ["_cdxmill", "a"]


def test_the_list_of_files_is_written_when_all_are_there(tmp_path: Path) -> None:
    """What killed tasks have left is not among them."""
    for name in ("a", ".a.7-0123abcd.tmp"):
        (tmp_path / name).write_bytes(b"xy")
    staged = Staged(locate(tmp_path))
    with pytest.raises(StoppedError, match="b: the file that a node wrote is not there"):
        staged.finish({"a": 2, "b": 2}, {})
    assert names(tmp_path) == ["a"]
    staged.finish({"a": 2}, {"rows": 1})
    assert (tmp_path / LIST).read_text() == '{\n "rows": 1,\n "files": {\n  "a": 2\n }\n}'
