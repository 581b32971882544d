"""A lock on an output directory: one run writes to it at a time. DIRECTORY/.lock says who, and since when.

On a disk, the lock is `flock` on this file, which is deleted at the end of the run. If it exists and nobody holds it, the
earlier run was killed. Then its temporary files are deleted, as they are when a run ends with an error. A `.lock` that is
not cdxmill's is neither changed nor deleted: cdxmill knows its own by the content, or an empty one by its mode.

At a URL, the file is the lock. It is created only if it does not exist: by a conditional PUT on S3, by a rename that
replaces nothing on HDFS. The run renews it from time to time (`renew_held`), and checks that it is its own before an output
gets its name (`check_held`). A file that was not renewed for an hour is that of a killed run, and so is one of a process of
this machine that has ended. A service without conditional PUT is noticed and named. There, of two runs that begin in the
same moment the later one has the lock, and the other one stops at its next check.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IXUSR
from threading import get_ident
from typing import Any, NamedTuple

from cdxmill.errors import AbsentError, HeldError, InputError, RefusedError, StoppedError, UsageError
from cdxmill.messages import say
from cdxmill.regex import regex
from cdxmill.running.progress import WITH_EACH_TICK
from cdxmill.storage.local import (
    NO_LOCKS,
    OWN_TEMPORARY,
    check_directory,
    delete_unlocked,
    new_directory,
    stopping,
)
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.own import foreign, open_own
from cdxmill.storage.patience import stops
from cdxmill.storage.scratch import delete_tree

LOCK = ".lock"
RENEWED = 300.0
"""Seconds after which the lock at a URL is checked and renewed during a run."""
_STALE = 3600.0
"""Seconds. A file of the largest size is uploaded in less."""
_SCRATCH = regex(r"\.scratch-[a-z0-9_]{8}")
_OWN = regex(rb"process \d+ on \S* since ")
_MODE = 0o766
"""A lock is executable, although it is no program: so an empty one is known if a run was killed before it wrote to it."""
_COMMAND_SHOWN = 300
"""Characters. A command line may have thousands of files."""

_PROCESS = os.urandom(8).hex()
_held: dict[tuple[int, str], _LocalLock | _RemoteLock] = {}
"""The directories that a thread of this process holds: `build` runs `zipnum`."""


@contextmanager
def hold(directory: PathOrUrl, note: Callable[[str], None] = say) -> Iterator[bool]:
    """Hold a directory, which is created if needed. Yields whether an earlier run was killed in it.

    Temporary files of a killed run are deleted first. The thread that holds a directory may hold it again. If the run fails,
    a new directory with nothing in it is deleted.
    Raises HeldError if another run holds it, StoppedError if the lock cannot be written, InputError if it cannot be read.
    """
    place = locate(directory)
    if place.is_remote:
        with _hold(place, note) as was_killed:
            yield was_killed
        return
    path = Path(place.local)
    check_directory(path)
    with new_directory(path), _hold(place, note) as was_killed:
        yield was_killed


@contextmanager
def _hold(place: Location, note: Callable[[str], None]) -> Iterator[bool]:
    key = get_ident(), place.absolute() if place.is_remote else os.path.realpath(place.local)
    if key in _held:
        yield _held[key].was_killed
        return
    with _hold_remote(place, note) if place.is_remote else _hold_local(Path(place.local), note) as lock:
        _held[key] = lock
        try:
            yield lock.was_killed
        finally:
            del _held[key]


def check_held(seconds: float = 0) -> None:
    """Raise StoppedError if another run has taken a remote directory that this thread holds. Call it before a file gets its name.

    A lock that was checked in the last `seconds` is not asked for. Every RENEWED seconds it is renewed.
    """
    for (thread, _), lock in list(_held.items()):
        if thread == get_ident() and isinstance(lock, _RemoteLock):
            lock.check(seconds)


def renew_held() -> None:
    """Renew the remote locks of this thread, if it is time to. Call it often. Raises StoppedError as `check_held` does."""
    check_held(RENEWED)


@contextmanager
def _hold_local(directory: Path, note: Callable[[str], None]) -> Iterator[_LocalLock]:
    with _lock(directory, note) as was_killed:
        if was_killed:
            sweep(directory)
        try:
            yield _LocalLock(was_killed)
        except BaseException:
            sweep(directory)  # of workers, which are killed at the end
            raise


@contextmanager
def _hold_remote(directory: Location, note: Callable[[str], None]) -> Iterator[_RemoteLock]:
    lock = _RemoteLock(directory, note)
    WITH_EACH_TICK.append(renew_held)
    try:
        _sweep_remote(directory)
        yield lock
    except BaseException:
        with suppress(InputError, StoppedError):
            _sweep_remote(directory)
        raise
    finally:
        WITH_EACH_TICK.remove(renew_held)
        with suppress(InputError, StoppedError):
            lock.release()


class _LocalLock(NamedTuple):
    was_killed: bool


@contextmanager
def _lock(directory: Path, note: Callable[[str], None]) -> Iterator[bool]:
    path = directory / LOCK
    with stopping(path):
        handle, was_killed = _locked(path, directory, note)
    try:
        with stopping(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, _who(), 0)
        yield was_killed
    finally:
        with suppress(OSError):
            if _is_at(path, handle):  # the directory may have been replaced
                path.unlink()
        os.close(handle)


def _locked(path: Path, directory: Path, note: Callable[[str], None]) -> tuple[int, bool]:
    """The open and locked file, and whether it existed. Its holder may delete it between opening and locking."""
    while True:
        was_there = path.exists()
        handle = _open(path, directory, note)
        try:
            _flock(handle, directory, note)
            if not _is_own(handle):
                raise foreign(path)
            if _is_at(path, handle):
                return handle, was_there
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open(path: Path, directory: Path, note: Callable[[str], None]) -> int:
    """Open the file. Raises UsageError if it is another user's: the message says whether its run has ended."""
    try:
        return open_own(path, os.O_RDWR | os.O_CREAT, _MODE)
    except PermissionError:
        with suppress(OSError):
            with os.fdopen(open_own(path, os.O_RDONLY)) as file:
                _flock(file.fileno(), directory, note)
                user = os.fstat(file.fileno()).st_uid
            hint = f"was left by a run of another user (ID {user}); let this user run it again, or delete it"
            raise UsageError(f"{path}: {hint}") from None
        raise


def _is_own(handle: int) -> bool:
    start = os.pread(handle, _COMMAND_SHOWN, 0)
    return bool(_OWN.match(start) if start else os.fstat(handle).st_mode & S_IXUSR)


def _flock(handle: int, directory: Path, note: Callable[[str], None]) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        found = os.pread(handle, 4096, 0)
        who = found.decode("utf-8", "backslashreplace").strip() if _OWN.match(found) else ""
        raise HeldError(
            f"{directory}: another run writes to this directory{who and ' ('}{who}{who and ')'};"
            " wait until it ends, or choose another directory"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        note(
            f"{directory}: note: the file system has no locks; make sure that no other run writes to this directory"
        )


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _who() -> bytes:
    """`process 17 on HOST since 2024-01-01 12:00:00 UTC: cdxmill index ...`."""
    import shlex  # slow to import

    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    if len(command) > _COMMAND_SHOWN:
        command = f"{command[:_COMMAND_SHOWN]}..."
    text = f"process {os.getpid()} on {os.uname().nodename} since {_now()}: {command}"
    return text.replace("\n", "\\n").encode("utf-8", "surrogateescape") + b"\n"


class _RemoteLock:
    """The lock of a directory at a URL. Raises HeldError if another run has it, else writes it."""

    def __init__(self, directory: Location, note: Callable[[str], None]) -> None:
        self._file, self._run, self._since = directory / LOCK, run_id(), _now()
        before, found = _read(self._file)
        if before is not None and not found:
            raise UsageError(f"{self._file}: is not the lock of a run at a URL; delete it if nobody needs it")
        if found.get("run") != self._run and not _is_stale(found):
            raise self._refusal(found)
        self.was_killed = before is not None
        text = self._text()
        if not self._file.swap(before, text):
            now, found = _read(self._file)
            if now != text:  # else the answer to a try was lost
                raise self._refusal(found)
        self._renewed = self._checked = time.monotonic()
        if not directory.properties.has_directories and self._file.swap(None, text):
            note(
                f"{directory}: note: the service has no conditional PUT; make sure that no other run writes to this directory"
            )

    def _refusal(self, found: dict[str, Any]) -> HeldError:
        who = f"process {found.get('process')} on {found.get('host')} since {found.get('since')}"
        hint = f"wait until it ends, or delete {self._file} if it was killed"
        return HeldError(f"{self._file.parent}: another run writes to this directory ({who}); {hint}")

    def check(self, seconds: float) -> None:
        """Raise StoppedError if another run has taken the lock; else renew it if that is due."""
        if time.monotonic() - self._checked <= seconds:
            return
        is_due = time.monotonic() - self._renewed > RENEWED
        with stops(str(self._file), "renewed"):
            before, found = _read(self._file)
            is_own = found.get("run") == self._run
            is_own = is_own and not (is_due and not self._file.swap(before, self._text()))
        if not is_own:
            raise StoppedError(
                f"{self._file}: another run has taken this directory; run it again when that ends"
            )
        self._checked = time.monotonic()
        if is_due:
            self._renewed = self._checked

    def release(self) -> None:
        """Delete the lock, unless another run has taken it."""
        if _read(self._file)[1].get("run") == self._run:
            self._file.remove()

    def _text(self) -> bytes:
        import json

        known = {"run": self._run, "process": os.getpid(), "host": os.uname().nodename, "since": self._since}
        return json.dumps({**known, "renewed": time.time()}).encode() + b"\n"


def _read(file: Location) -> tuple[bytes | None, dict[str, Any]]:
    """A lock at a URL as it was written, None if there is none; and its content, {} if it cannot be understood.

    S3 without the right to list refuses to read what does not exist.
    """
    import json

    try:
        data = file.read_bytes()
    except (AbsentError, RefusedError):
        return None, {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return data, {}
    return data, found if isinstance(found, dict) and "run" in found else {}


def run_id() -> str:
    """The run of this thread, as its locks at URLs have it. After a switch on HDFS, the lock of the new directory has the place of the old one."""
    return f"{_PROCESS}-{get_ident()}"


def killed_run(directory: Location) -> str | None:
    """The run that was killed while it held a directory at a URL; None if it has no lock, or its run may be alive.

    Raises InputError.
    """
    found = _read(directory / LOCK)[1]
    return str(found["run"]) if found and _is_stale(found) else None


def _is_stale(found: dict[str, Any]) -> bool:
    """Whether the run that wrote the lock was killed."""
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        if found["host"] == os.uname().nodename:
            try:
                os.kill(int(found["process"]), 0)
            except ProcessLookupError:
                return True
            except OSError:  # it is another user's
                pass
        return time.time() - float(found["renewed"]) > _STALE
    return True


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def _sweep_remote(directory: Location) -> None:
    """Delete temporary files that a killed run left in a directory of HDFS. S3 has none. Raises InputError, StoppedError.

    A worker may have written one after its run ended with an error and deleted its lock. Those of hidden files stay: they
    are locks and probes of runs that wait.
    """
    if directory.properties.has_directories:
        for name in directory.entries():
            if OWN_TEMPORARY.fullmatch(name) and not name.startswith(".."):
                (directory / name).remove()


def sweep(directory: Path) -> None:
    """Delete temporary files and directories that a killed run left below `directory`.

    Only names that cdxmill gives are deleted, and no file that another run still writes. Subdirectories with a lock of their own are
    skipped. Symbolic links to directories are not followed.
    """
    for parent, directories, files in os.walk(directory):
        here = Path(parent)
        if here != directory and LOCK in files:
            directories.clear()
            continue
        for name in [name for name in directories if _SCRATCH.fullmatch(name)]:
            directories.remove(name)
            delete_tree(here / name)
        for name in files:
            if OWN_TEMPORARY.fullmatch(name):
                delete_unlocked(here / name, without_locks=True)
