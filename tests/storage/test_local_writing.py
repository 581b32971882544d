"""Local files are written whole or not at all: what is on the disk when a write has ended, or has failed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdxmill.errors import StoppedError
from cdxmill.storage import local
from cdxmill.storage.location import locate

from ..material.open_files import open_files


def test_a_file_is_synced_before_its_rename_and_its_directory_after(tmp_path: Path, calls: list[str]) -> None:
    with local.write_atomic(tmp_path / "a/b/c") as file:
        file.write(b"x")
    assert calls == [f"sync {tmp_path.name}/", "sync a/", "sync file", "rename", "sync b/"]


def test_names_can_be_synced_once_per_directory(tmp_path: Path, calls: list[str]) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        with local.write_atomic(path, sync_name=False) as file:
            file.write(b"x")
    local.sync_directories([*paths, tmp_path / "absent/c"])
    assert calls == ["sync file", "rename", "sync file", "rename", f"sync {tmp_path.name}/"]


def test_a_failed_sync_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoppedError), local.write_atomic(tmp_path / "a") as file:
        file.write(b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoppedError, match="is a device or a pipe"), locate(tmp_path / "pipe").write_atomic():
        pass
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


_WRITER = """
import sys
from cdxmill.storage.local import write_named
with write_named(sys.argv[1]) as file:
    file.write(b"theirs")
    file.flush()
    print("begun", flush=True)
    sys.stdin.read()
"""


def start_writer(path: Path) -> subprocess.Popen[bytes]:
    """A process that has begun to write a file, and goes on when its standard input ends."""
    pipe = subprocess.PIPE
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdin=pipe, stdout=pipe)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"begun\n"
    return writer


@pytest.mark.parametrize("name", ["o.csv", "o" * 250, "\udcff\n.cdxj"])
def test_what_a_killed_run_left_of_a_named_file_is_deleted_and_what_is_being_written_stays(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    killed, alive = start_writer(path), start_writer(path)
    others = [
        tmp_path / other for other in (".o.tmp", ".other.1-0123abcd.tmp", f"{name[:200]}.1-0123abcd.tmp")
    ]
    for other in others:
        other.write_bytes(b"")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(list(tmp_path.iterdir())) == 2 + len(others)
    with local.write_named(str(path)) as file:
        file.write(b"ours")
        assert len(list(tmp_path.iterdir())) == 2 + len(others)
    assert open_files(tmp_path) == []
    assert path.read_bytes() == b"ours"
    alive.communicate(timeout=60)
    assert alive.returncode == 0
    assert path.read_bytes() == b"theirs"
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


@pytest.mark.parametrize(
    ("number", "is_deleted"),
    [
        (errno.EIO, True),
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EACCES, False),
        (errno.EROFS, False),
    ],
)
@pytest.mark.parametrize("is_written", [False, True])
def test_a_disk_that_fails_keeps_no_unfinished_file_of_a_killed_process(
    number: int, is_deleted: bool, is_written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that ends because the disk has failed deletes what its workers were writing."""
    left, whole = tmp_path / ".o.1-0123abcd.tmp", os.open
    left.write_bytes(b"half")

    def fail(path: Path, flags: int, *more: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number))
        return whole(path, flags, *more)

    with left.open("rb") as file:
        if is_written:
            fcntl.flock(file, fcntl.LOCK_EX)
        monkeypatch.setattr(os, "open", fail)
        local.delete_unlocked(left)
        monkeypatch.undo()
        assert left.exists() == (is_written or not is_deleted)
        left.unlink(missing_ok=True)


def test_a_link_with_the_name_of_an_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / ".o.1-0123abcd.tmp").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / ".o.2-0123abcd.tmp")
    local.drop_unfinished(tmp_path / "o")
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert (tmp_path / ".o.1-0123abcd.tmp").is_symlink()
    local.drop_unfinished(tmp_path / "absent/o")


def test_a_file_that_is_deleted_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run beside it takes it for that of a killed one."""
    flock, deleted = fcntl.flock, list[Path]()

    def lock_late(file: int, how: int) -> None:
        if not deleted:
            deleted.extend(tmp_path.iterdir())
            deleted[0].unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with local.write_atomic(tmp_path / "o") as file:
        file.write(b"text")
    assert deleted
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"text"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_directory_that_cannot_be_synced_stops_the_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fail_for_directories(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").is_dir():
            raise OSError(number, os.strerror(number))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail_for_directories)
    with pytest.raises(StoppedError, match=os.strerror(number)), local.write_atomic(tmp_path / "b/a") as file:
        file.write(b"x")
    with pytest.raises(StoppedError, match=os.strerror(number)):
        local.sync_directories([tmp_path / "b/a"])
    assert open_files(tmp_path) == []
    number = errno.EINVAL
    with local.write_atomic(tmp_path / "b/a") as file:
        file.write(b"x")
    assert (tmp_path / "b/a").read_bytes() == b"x"


def test_all_of_a_file_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    with local.write_atomic(tmp_path / "a", sync_name=False) as file:
        file.write(b"written")
    assert sizes == [7]


def test_an_unsynced_file_has_its_rights(tmp_path: Path, calls: list[str]) -> None:
    with local.write_atomic(tmp_path / "a", sync_file=False, mode=0o600) as file:
        file.write(b"x")
    assert calls == ["rename"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert open_files(tmp_path) == []


def test_new_directories_stay_only_if_something_is_written(tmp_path: Path) -> None:
    with pytest.raises(KeyError), local.write_named(str(tmp_path / "a/b/c")):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    with pytest.raises(KeyError), local.new_directory(tmp_path / "a/b"):
        (tmp_path / "a/b/file").touch()
        raise KeyError
    assert (tmp_path / "a/b/file").exists()
    assert local.create_directory(tmp_path / "a/b") == []
    assert local.create_directory(tmp_path / "a/c/d") == [tmp_path / "a/c/d", tmp_path / "a/c"]
    with pytest.raises(StoppedError, match="File exists"), local.new_directory(tmp_path / "a/b/file"):
        pass


def test_a_directory_that_another_process_creates_at_the_same_time_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def mkdir_late(path: Path, *args: Any, **options: Any) -> None:
        mkdir(path, *args, **options)
        if path == tmp_path / "a":
            mkdir(path / "b")

    monkeypatch.setattr(Path, "mkdir", mkdir_late)
    assert local.create_directory(tmp_path / "a/b")[-1] == tmp_path / "a"
    assert (tmp_path / "a/b").is_dir()


def test_a_pipe_that_the_user_named_is_written_directly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with local.write_named(str(tmp_path / "pipe")) as file:
        file.write(b"x")
    assert os.read(reading, 9) == b"x"
    os.close(reading)
    target = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
    for place in ("/dev/fd", "/proc/self/fd"):
        with local.write_named(f"{place}/{target}") as file:
            file.write(place.encode())
        assert (tmp_path / "out").read_bytes() == place.encode()
    os.close(target)
    (tmp_path / "link").symlink_to("out")
    with local.write_named(str(tmp_path / "link")) as file:
        file.write(b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").read_bytes() == b"/proc/self/fd"


def test_a_file_among_the_names_of_streams_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_STREAMS", (tmp_path,))
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(KeyError), local.write_named(str(tmp_path / "a")) as file:
        file.write(b"new")
        raise KeyError
    assert (tmp_path / "a").read_bytes() == b"old"


def test_the_name_of_an_unfinished_file_has_the_attempt_of_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert local.OWN_TEMPORARY.fullmatch(local.temporary_name("a"))
    monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1_0")
    assert local.temporary_name("a").startswith(f".a.attempt_1_0.{os.getpid()}-")
    assert not local.OWN_TEMPORARY.fullmatch(local.temporary_name("a"))
    assert len(os.fsencode(local.temporary_name("ü" * 200))) == 255


@pytest.mark.parametrize("write", [local.write_named, local.write_atomic])
def test_a_directory_is_not_replaced_by_a_file(write: Callable[[str], Any], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with (
        pytest.raises(StoppedError, match=r"cannot be written \(Is a directory\)"),
        write(str(tmp_path / "a")),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
