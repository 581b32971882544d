"""A run's directory for temporary files is deleted at its end, or by a later run if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.errors import StoppedError
from cdxmill.storage.scratch import Scratch, delete_tree, hidden_directory, scratch_files, temporary_directory

from ..material.open_files import open_files

CHILD = """
import os, signal, sys
from pathlib import Path
from cdxmill.storage.scratch import temporary_directory
with temporary_directory(sys.argv[1]) as directory:
    (Path(directory) / "below").mkdir()
    (Path(directory) / "below/run").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_directory_is_deleted_at_the_end(tmp_path: Path) -> None:
    with temporary_directory(str(tmp_path)) as directory:
        (Path(directory) / "run").write_text("x")
        assert Path(directory).parent == tmp_path
    assert names(tmp_path) == set()
    assert open_files(tmp_path) == []


def test_a_directory_is_where_the_system_has_such_and_may_be_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "cdxmill-run-dead0000").mkdir()
    (tmp_path / "cdxmill-run-dead0000/.lock").touch()
    with temporary_directory() as directory:
        assert names(tmp_path) == {Path(directory).name}
        shutil.rmtree(directory)
    assert open_files(tmp_path) == []


def test_a_later_run_deletes_only_the_directories_of_killed_runs(tmp_path: Path) -> None:
    foreign = {"cdxmill-branches", "cdxmill-run-x", "cdxmill-run-notes.txt", "cdxmill-run-linked00"}
    for name in foreign - {"cdxmill-run-linked00"}:
        (tmp_path / name).mkdir()
        (tmp_path / name / ".lock").touch()
    (tmp_path / "cdxmill-run-linked00").symlink_to(tmp_path / "cdxmill-branches")
    (tmp_path / "cdxmill-run-file0000").write_text("mine")
    with temporary_directory(str(tmp_path)) as directory:  # another run that lives
        killed = subprocess.run([sys.executable, "-c", CHILD, tmp_path], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(names(tmp_path)) == len(foreign) + 3
        with temporary_directory(str(tmp_path)) as other:
            kept = foreign | {"cdxmill-run-file0000", Path(directory).name, Path(other).name}
            assert names(tmp_path) == kept


def test_directories_of_others_and_those_made_a_moment_ago_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new00000", "dead0000"):
        (tmp_path / f"cdxmill-run-{name}").mkdir()
    (tmp_path / "cdxmill-run-dead0000/.lock").touch()
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    with temporary_directory(str(tmp_path)):
        assert {"cdxmill-run-new00000", "cdxmill-run-dead0000"} < names(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: user)
    with temporary_directory(str(tmp_path)) as directory:
        assert open_files(tmp_path) == [f"{Path(directory).name}/.lock"]
    assert names(tmp_path) == {"cdxmill-run-new00000"}


@pytest.mark.parametrize("is_new", [False, True])
def test_a_directory_that_another_run_deletes_before_it_is_locked_is_made_again(
    is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run may have made one with the same name."""
    flock, deleted = fcntl.flock, list[Path]()

    def lock_late(file: int, how: int) -> None:
        if not deleted:
            deleted.extend(tmp_path.iterdir())
            shutil.rmtree(deleted[0])
            if is_new:
                deleted[0].mkdir()
                (deleted[0] / ".lock").touch()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with temporary_directory(str(tmp_path)) as directory:
        assert Path(directory) not in deleted
        assert open_files(tmp_path) == [f"{Path(directory).name}/.lock"]


OFTEN = """
import sys
from cdxmill.storage.scratch import temporary_directory
for _ in range(300):
    with temporary_directory(sys.argv[1]) as directory:
        pass
"""


def test_runs_that_start_at_the_same_time_do_not_delete_the_directories_of_each_other(tmp_path: Path) -> None:
    runs = [subprocess.Popen([sys.executable, "-c", OFTEN, tmp_path]) for _ in range(6)]
    assert [run.wait() for run in runs] == [0] * 6
    assert names(tmp_path) == set()


def test_a_scratch_file_creates_its_directories_and_others_join_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "deep/below")
    for name in ("a", "b"):
        with scratch.create(name) as file:
            file.write(name.encode())
    assert [scratch.reader(name)(0, 9) for name in ("a", "b")] == [b"a", b"b"]


def test_scratch_files_are_deleted_one_by_one_and_with_their_directory(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "below")
    for name in ("a", "b", "c"):
        with scratch.create(name):
            pass
    scratch.delete(["a", "absent"])
    assert names(scratch.directory) == {"b", "c"}
    with pytest.raises(
        StoppedError, match=r"below/a: cannot be read \(No such file or directory\); run it again"
    ):
        scratch.reader("a")(0, 1)
    with pytest.raises(StoppedError, match=r"below/b/d: cannot be written"), scratch.create("b/d"):
        pass
    scratch.reader("b")(0, 1)
    assert open_files(tmp_path) == []
    scratch.remove()
    scratch.remove()
    assert names(tmp_path) == set()


def test_a_hidden_directory_is_for_its_owner_and_deleted_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(KeyError), hidden_directory(tmp_path) as directory:
        assert directory.parent == tmp_path
        assert directory.name.startswith(".scratch-")
        assert directory.stat().st_mode & 0o777 == 0o700
        (directory / "below").mkdir()
        (directory / "below/file").touch()
        raise KeyError
    assert names(tmp_path) == set()
    (tmp_path / "empty").mkdir()
    delete_tree(tmp_path / "empty")
    assert names(tmp_path) == set()


def test_files_without_a_name_are_on_the_disk_of_the_output_and_closed_at_the_end(tmp_path: Path) -> None:
    for place in (tmp_path / "new/out", tmp_path / "out"):
        with scratch_files(str(place)) as create:
            files = [create(), create()]
            files[0].write(b"x")
            assert place.parent.is_dir()
            assert len(open_files(tmp_path)) == 2
            assert names(place.parent) <= {"new"}
        assert [file.closed for file in files] == [True, True]
    with pytest.raises(KeyError), scratch_files(str(tmp_path / "newer/out")):
        raise KeyError
    assert names(tmp_path) == {"new"}
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoppedError, match=r"file: cannot be written"),
        scratch_files(str(tmp_path / "file/out")),
    ):
        pass


def test_files_without_a_name_are_where_the_system_has_such_if_the_output_is_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_files("s3://bucket/out") as create:
        assert create().write(b"x") == 1
        assert len(open_files(tmp_path)) == 1
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(StoppedError, match=r"gone: cannot be written \(No such file"),
        scratch_files("s3://bucket/out") as create,
    ):
        create()


def test_a_tree_is_deleted_as_far_as_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    (tmp_path / "tree/below").mkdir(parents=True)
    (tmp_path / "tree/file").touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        delete_tree(tmp_path / "tree")
    assert names(tmp_path / "tree") == {"file"}
