"""Local files: what is on the disk when a write has ended, and errors that are not "no such file"."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdxmill.errors import InputError, OutageError, RefusedError, StoppedError, UsageError
from cdxmill.running.resume import WorkDirectory
from cdxmill.storage import local
from cdxmill.storage.location import Location, locate

from ..material.failing_disk import fail_reads
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


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_any_error_but_absent_is_an_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, **_: object) -> os.stat_result:
        raise OSError(number, os.strerror(number), path)

    (tmp_path / "a").touch()
    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(RefusedError if number == errno.EACCES else InputError, match=os.strerror(number)):
        locate(tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["absent", "file/below", "a\0b", "x" * 300, "loop"])
def test_what_cannot_exist_is_absent(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert not locate(tmp_path / name).exists()


def test_links_that_lead_nowhere_are_no_entries(tmp_path: Path) -> None:
    for name, target in {"self": "self", "one": "two", "two": "one", "dangling": "absent", "up": "."}.items():
        (tmp_path / name).symlink_to(target)
    assert list(locate(tmp_path).entries()) == ["up"]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoppedError, match="is a device or a pipe"), locate(tmp_path / "pipe").write_atomic():
        pass
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_of_a_link_to_a_directory_the_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    for remove in (Location.remove, Location.remove_tree):
        (tmp_path / "link").symlink_to("mine")
        remove(locate(tmp_path / "link"))
        assert not os.path.lexists(tmp_path / "link")
        assert (tmp_path / "mine/file").exists()


def test_a_work_directory_is_emptied_after_a_restart_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = tmp_path / "boot_id"
    monkeypatch.setattr("cdxmill.running.resume._BOOT_ID", boot)
    for text, kept in (("one", None), ("one", 1), ("two", None)):
        boot.write_text(text)
        work = WorkDirectory(tmp_path / "work", "job")
        assert work.load("result") == kept
        work.save("result", 1)
    boot.unlink()
    assert WorkDirectory(tmp_path / "work", "job").load("result") is None
    assert WorkDirectory(tmp_path / "work", "job") is not None


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


def test_what_cannot_be_renamed_stops_the_run(tmp_path: Path) -> None:
    """Also if two directories cannot be exchanged for another reason than that the system has no such call."""
    (tmp_path / "a").mkdir()
    here, absent = locate(tmp_path / "a"), locate(tmp_path / "absent")
    with pytest.raises(StoppedError, match="No such file or directory"):
        here.exchange(absent)
    with pytest.raises(StoppedError, match="No such file or directory"):
        absent.move(here)


def test_a_file_is_closed_after_its_reads_and_what_cannot_be_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file on a network, a read may return less than is there."""
    (tmp_path / "a").write_bytes(bytes(range(100)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: pread(file, min(size, 7), offset))
    with local.open_ranges(str(tmp_path / "a")) as read_at:
        assert open_files(tmp_path) == ["a"]
        assert read_at(10, 80) == bytes(range(10, 90))
        assert read_at(90, 80) == bytes(range(90, 100))
    for name, told in (
        ("", "Is a directory"),
        ("absent", "No such file"),
        ("a\0b", "no file can have this name"),
    ):
        with pytest.raises(InputError, match=told), local.open_ranges(f"{tmp_path}/{name}"):
            pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="save it to a file"), local.open_ranges(str(tmp_path / "pipe")):
        pass
    assert open_files(tmp_path) == []


def test_a_disk_that_fails_later_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x")
    with local.open_ranges(str(tmp_path / "a")) as read_at:
        fail_reads(monkeypatch, "a")
        with pytest.raises(OutageError, match=r"a: cannot be read \(Input/output error\)"):
            read_at(0, 1)
    with pytest.raises(OutageError), local.open_ranges(str(tmp_path / "a")):
        pass
    assert open_files(tmp_path) == []


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
    with pytest.raises(StoppedError, match=os.strerror(number)), local.write_atomic(tmp_path / "a") as file:
        file.write(b"x")
    with pytest.raises(StoppedError, match=os.strerror(number)):
        local.sync_directories([tmp_path / "a"])
    assert open_files(tmp_path) == []
    number = errno.EINVAL
    with local.write_atomic(tmp_path / "a") as file:
        file.write(b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_an_error_without_a_number_is_told_by_its_text(tmp_path: Path) -> None:
    assert str(local.input_error("a", OSError("odd"))) == "a: cannot be read (odd)"
    with pytest.raises(StoppedError, match=r"a: cannot be written \(odd\)"), local.stopping(tmp_path / "a"):
        raise OSError("odd")


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


def test_the_name_of_an_unfinished_file_has_the_attempt_of_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert local.OWN_TEMPORARY.fullmatch(local.temporary_name("a"))
    monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1_0")
    assert local.temporary_name("a").startswith(f".a.attempt_1_0.{os.getpid()}-")
    assert not local.OWN_TEMPORARY.fullmatch(local.temporary_name("a"))
    assert len(os.fsencode(local.temporary_name("ü" * 200))) == 255


def test_a_file_is_no_directory_for_outputs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for check in (local.make_directory, local.check_directory):
        with pytest.raises(UsageError, match="file: is not a directory; choose another output directory"):
            check(tmp_path / "file")
        check(tmp_path)
    local.check_directory(tmp_path / "absent")
    local.check_above(str(tmp_path / "absent/below"))
    for name in ("file/below", "file/far/below"):
        with pytest.raises(UsageError, match="file is not a directory; choose another output"):
            local.check_above(str(tmp_path / name))
    with pytest.raises(StoppedError, match="cannot be written"):
        local.make_directory(tmp_path / "file/below")


def test_a_directory_that_cannot_be_listed_is_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "file").touch()
    for name in ("absent", "file", "a\0b"):
        assert local.list_directory(str(tmp_path / name)) == {}
    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(RefusedError):
        local.list_directory(str(tmp_path))


def test_a_directory_with_files_is_deleted_as_a_tree_only(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").touch()
    with pytest.raises(StoppedError, match="not empty"):
        local.remove(str(tmp_path / "a"))
    assert (tmp_path / "a/file").exists()
    local.remove_tree(str(tmp_path / "a"))
    for remove in (local.remove, local.remove_tree):
        (tmp_path / "empty").mkdir()
        remove(str(tmp_path / "empty"))
        remove(str(tmp_path / "empty"))
    assert list(tmp_path.iterdir()) == []


def test_access_rights_are_copied_and_directories_exchanged(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    (tmp_path / "a").chmod(0o711)
    local.copy_mode(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o711
    local.copy_mode(str(tmp_path / "absent"), str(tmp_path / "b"))
    assert local.exchange(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "a/b").exists()
    assert (tmp_path / "b/a").exists()
