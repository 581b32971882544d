"""The lock on an output folder, and what is deleted after a killed run."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cdxmill.errors import HeldError, StoppedError, UsageError
from cdxmill.running import lock
from cdxmill.running.lock import LOCK, hold, sweep
from cdxmill.storage.local import temporary_name, write_atomic
from cdxmill.storage.own import open_own

HOLDER = """
import sys, time
from pathlib import Path
from cdxmill.running.lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def start_holder(directory: Path) -> subprocess.Popen[bytes]:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(directory)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


def opened(directory: Path) -> list[str]:
    """The open files below a directory, also those that were deleted."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # another thread has closed it
            found.append(os.readlink(one))  # noqa: PTH115 - of a deleted file, it is no path
    return [name for name in found if name.startswith(f"{directory}/")]


def test_a_directory_is_created_and_no_file_stays(tmp_path: Path) -> None:
    with hold(tmp_path / "a/b") as was_killed:
        assert not was_killed
        assert (tmp_path / "a/b" / LOCK).read_text().startswith(f"process {os.getpid()} on ")
    assert list((tmp_path / "a/b").iterdir()) == []


def test_a_second_run_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    holder = start_holder(tmp_path)
    try:
        with pytest.raises(UsageError, match=f"another run writes .*process {holder.pid} on .* since .*: -c"):
            hold(tmp_path).__enter__()
        assert (tmp_path / LOCK).exists()
    finally:
        holder.kill()
        holder.communicate()


def test_a_killed_run_is_noticed_and_its_temporary_files_are_deleted(tmp_path: Path) -> None:
    holder = start_holder(tmp_path)
    (tmp_path / "sub/.scratch-abcd_123/x").mkdir(parents=True)
    (tmp_path / "sub" / temporary_name("a.cdx.gz")).touch()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with hold(tmp_path) as was_killed:
        assert was_killed
        assert list((tmp_path / "sub").iterdir()) == []
    assert not (tmp_path / LOCK).exists()
    with hold(tmp_path) as was_killed:
        assert not was_killed


def test_files_of_killed_workers_are_deleted_when_a_run_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoppedError), hold(tmp_path):
        (tmp_path / temporary_name("a.cdx.gz")).touch()
        raise StoppedError("a worker process was killed")
    assert list(tmp_path.iterdir()) == []


def test_the_same_thread_may_hold_a_directory_twice(tmp_path: Path) -> None:
    with hold(tmp_path), hold(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_was_deleted_while_waiting_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks: list[int] = []

    def late(handle: int, how: int) -> None:
        if not locks:
            (tmp_path / LOCK).unlink()  # the holder ends between our open and our lock
        locks.append(handle)

    monkeypatch.setattr(fcntl, "flock", late)
    with hold(tmp_path):
        assert (tmp_path / LOCK).read_bytes()
    assert len(locks) == 2
    assert opened(tmp_path) == []


def test_a_refused_run_keeps_no_file_open_and_shows_no_text_of_somebody_else(tmp_path: Path) -> None:
    with hold(tmp_path):
        pass
    with (tmp_path / LOCK).open("wb") as other:
        other.write(b"\x1b[2Jmine")
        other.flush()
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(HeldError, match="another run writes to this directory; wait until it ends"):
            hold(tmp_path).__enter__()
    assert opened(tmp_path) == []


def test_a_file_is_no_directory_to_hold(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="file: is not a directory; choose another output directory"):
        hold(tmp_path / "file").__enter__()


def test_the_lock_of_another_run_in_a_directory_that_was_replaced_stays(tmp_path: Path) -> None:
    with hold(tmp_path / "o"):
        (tmp_path / "o").rename(tmp_path / "old")
        (tmp_path / "o").mkdir()
        (tmp_path / "o" / LOCK).write_text("theirs")
    assert (tmp_path / "o" / LOCK).read_text() == "theirs"


@pytest.mark.parametrize(
    ("words", "shown"),
    [(["index", "a\nb"], "index 'a\\nb'"), (["index", "x" * 400], f"index {'x' * 286}...")],
)
def test_a_lock_has_the_command_on_one_line(
    words: list[str], shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/cdxmill", *words])
    with hold(tmp_path):
        who, _, command = (tmp_path / LOCK).read_text().partition(" UTC: ")
    assert who.startswith(f"process {os.getpid()} on {os.uname().nodename} since ")
    assert command == f"cdxmill {shown}\n"


def test_without_locks_in_the_file_system_the_run_continues_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    notes: list[str] = []
    (tmp_path / LOCK).write_text("process 1 on a since 2020: cdxmill\n")
    (tmp_path / ".a.1-0123abcd.tmp").touch()
    with hold(tmp_path, notes.append) as was_killed:
        assert was_killed
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert len(notes) == 1
    assert "no locks" in notes[0]


def test_a_lock_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(StoppedError, match="cannot be written"):
        hold(tmp_path / ("x" * 255) / ("y" * 300)).__enter__()


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a symbolic link": lambda lock, mine: lock.symlink_to(mine),
    "a symbolic link ": lambda lock, mine: lock.symlink_to("nothing"),
    "a file of somebody else": lambda lock, mine: lock.write_text("mine"),
    "a file of somebody else ": lambda lock, mine: lock.touch(),
    "a file of somebody else  ": lambda lock, mine: lock.hardlink_to(mine),
    "a directory of somebody else": lambda lock, mine: lock.mkdir(),
    "a pipe or device": lambda lock, mine: os.mkfifo(lock),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_lock_that_is_not_ours_stays_as_it_is(what: str, tmp_path: Path) -> None:
    mine, directory = tmp_path / "mine", tmp_path / "o"
    mine.write_text("process 17 on host since ever: my notes")
    directory.mkdir()
    PLANTED[what](directory / LOCK, mine)
    before = (directory / LOCK).lstat()
    with pytest.raises(
        UsageError, match=f"/.lock: is {what.strip()}, and cdxmill needs this name; move it away"
    ):
        hold(directory).__enter__()
    after = (directory / LOCK).lstat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    assert mine.read_text() == "process 17 on host since ever: my notes"


@pytest.mark.parametrize(
    "text", [b"", b"process 17 on host since 2024-01-01 00:00:00 UTC: cdxmill index" + b" x" * 999]
)
def test_the_lock_of_a_killed_run_is_known_also_when_it_is_empty(text: bytes, tmp_path: Path) -> None:
    lock = tmp_path / LOCK
    lock.write_bytes(text)
    lock.chmod(0o644 if text else 0o744)
    with hold(tmp_path) as was_killed:
        assert was_killed
        assert lock.stat().st_mode & 0o100 or text
        assert lock.read_bytes().startswith(b"process %d on " % os.getpid())
        assert b" x x" not in lock.read_bytes()
    assert not lock.exists()
    with hold(tmp_path):
        os.truncate(lock, 0)
        assert lock.stat().st_mode & 0o100


def test_only_our_own_names_are_swept(tmp_path: Path) -> None:
    others = [
        ".a.cdx.gz.tmp",
        "a.17-0123abcd.tmp",
        ".a.attempt_1_0001_r_000001_0.17-0123abcd.tmp",
        ".a.17-0123abcd.tmp.gz",
        ".scratch-mine!",
    ]
    for name in others:
        (tmp_path / name).touch()
    directories = [str(number) for number in range(12)]
    for name in directories:
        (tmp_path / name / "sub").mkdir(parents=True)
        for place in (name, f"{name}/sub"):
            (tmp_path / place / temporary_name("a")).touch()
    running = [tmp_path / name for name in directories[::2]]
    for held in running:
        (held / LOCK).touch()
    (tmp_path / temporary_name("a\nb")).touch()
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, *directories])
    for name in directories:
        left = [path.name for path in (tmp_path / name).rglob("*") if path.is_file()]
        assert len(left) == (3 if tmp_path / name in running else 0), name


def test_a_file_that_another_run_still_writes_is_not_swept(tmp_path: Path) -> None:
    """A single file in a directory below: its run holds no directory."""
    code = "import sys\nfrom cdxmill.storage.local import write_atomic\n"
    code += "with write_atomic(sys.argv[1]) as file:\n    file.write(b'x')\n    print(flush=True)\n    sys.stdin.read()\n"
    (tmp_path / "below").mkdir()
    left = tmp_path / "below/.other.csv.99-0123abcd.tmp"
    left.touch()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "below/table.csv")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(ValueError, match="it fails"), hold(tmp_path):
            raise ValueError("it fails")
        assert not left.exists()
        writer.communicate()
    assert writer.returncode == 0
    assert [path.name for path in (tmp_path / "below").iterdir()] == ["table.csv"]


def test_two_writers_of_one_file_use_two_temporary_names(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with write_atomic(path) as one, write_atomic(path) as two:
        assert one.name != two.name
        one.write(b"one")
        two.write(b"two")
    assert path.read_bytes() == b"one"
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127 + "x")
    with write_atomic(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_a_directory_has_one_holder_whatever_its_name_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out")
    with hold(tmp_path / "out"), hold(tmp_path / "link") as was_killed:
        assert not was_killed


@pytest.mark.parametrize("is_alive", [True, False])
def test_the_lock_of_another_user_says_whether_its_run_has_ended(
    is_alive: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, flags: int, mode: int = 0o666) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_own(path, flags, mode)

    (tmp_path / LOCK).write_bytes(b"process 1 on a since 2020: cdxmill\n")
    with (tmp_path / LOCK).open() as other:
        if is_alive:
            fcntl.flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr(lock, "open_own", refuse)
        told = (
            r"another run writes to this directory \(process 1 on a"
            if is_alive
            else rf"user \(ID {os.getuid()}\)"
        )
        with pytest.raises(UsageError, match=told):
            hold(tmp_path).__enter__()
    (tmp_path / LOCK).unlink()
    with pytest.raises(StoppedError, match="Permission denied"):
        hold(tmp_path).__enter__()
