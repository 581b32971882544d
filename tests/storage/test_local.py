"""Local files: what is on the disk when a write has ended, and errors that are not "no such file"."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.errors import InputError, RefusedError, StoppedError
from cdxmill.running.resume import WorkDirectory
from cdxmill.storage import local
from cdxmill.storage.location import Location, locate
from cdxmill.storage.own import append_rows, create_own


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and renamed, in order."""
    made: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        made.append("sync file" if path.is_file() else f"sync {path.name}/")
        fsync(handle)

    def note_rename(path: Path, target: Path) -> Path:
        made.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_rename)
    return made


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


def test_half_a_row_is_an_error_and_does_not_stay(tmp_path: Path) -> None:
    table = tmp_path / "failures.tsv"
    append_rows(table, [["a", "b"]])
    code = (
        "import resource, signal, sys; from pathlib import Path; from cdxmill.storage.own import append_rows\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))\n"
        "append_rows(Path(sys.argv[1]), [['c' * 100]])"
    )
    done = subprocess.run([sys.executable, "-c", code, table], capture_output=True, check=False)
    assert b"StoppedError" in done.stderr
    assert table.read_bytes() == b"a\tb\n"


def test_a_row_after_half_a_row_has_its_own_line(tmp_path: Path) -> None:
    """One of several processes is killed in the middle of a row. The others go on."""
    table = tmp_path / "failures.tsv"
    append_rows(table, [["a", "b"]])
    with table.open("ab") as file:
        file.write(b"half a")
    append_rows(table, [["c", "d"], ["e", "f"]])
    assert table.read_bytes() == b"a\tb\nhalf a\nc\td\ne\tf\n"


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


def test_a_new_file_of_a_run_replaces_what_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("other")
    with create_own(tmp_path / "link") as file:
        file.write(b"new")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "link").read_bytes()) == (False, b"new")
    assert (tmp_path / "other").read_bytes() == b"mine"


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
