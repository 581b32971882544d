"""A lock on an output directory: one run writes to it at a time. DIRECTORY/.lock says who, and since when.

On a disk, the lock is `flock` on this file, which is deleted at the end of the run. If it exists and nobody holds it, the
earlier run was killed. Then its temporary files are deleted, as they are when a run ends with an error.

At a URL, only `copy` uses a lock. No file can be locked there, so the run renews the file from time to time. One that was not renewed for an hour is that of
a killed run, and so is one of a process of this machine that has ended. Two runs that begin in the same moment both write
the file, and the later one has the lock; the other one stops before it finishes its first output.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import Any

from cdxmill.errors import AbsentError, InputError, StoppedError, UsageError
from cdxmill.messages import say
from cdxmill.storage.local import OWN_TEMPORARY, make_directory, stopping
from cdxmill.storage.location import Location

LOCK = ".lock"
RENEWED = 300.0
"""Seconds after which the lock at a URL is checked and renewed during a run. It costs two requests."""
_STALE = 3600.0
"""Seconds. A file of the largest size is uploaded in less."""
_SCRATCH = re.compile(r"\.scratch-[a-z0-9_]{8}")
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What `flock` reports if the file system does not support it."""
_COMMAND_SHOWN = 300
"""Characters. A command line may have thousands of files."""

_held: dict[tuple[int, str], bool] = {}
"""The directories that a thread of this process holds, and whether a killed run left them: `build` runs `zipnum`."""


@contextmanager
def hold(directory: Path, note: Callable[[str], None] = say) -> Iterator[bool]:
    """Hold a directory, which is created if needed. Yields whether an earlier run was killed in it.

    Temporary files of a killed run are deleted first. The thread that holds a directory may hold it again.
    Raises UsageError if another run holds it, StoppedError if the lock cannot be written.
    """
    make_directory(directory)
    key = get_ident(), os.path.realpath(directory)
    if key in _held:
        yield _held[key]
        return
    with _lock(directory, note) as was_killed:
        if was_killed:
            sweep(directory)
        _held[key] = was_killed
        try:
            yield was_killed
        except BaseException:
            sweep(directory)  # of workers, which are killed at the end
            raise
        finally:
            del _held[key]


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
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _flock(handle, directory, note)
            if _is_at(path, handle):
                return handle, was_there
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _flock(handle: int, directory: Path, note: Callable[[str], None]) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = os.pread(handle, 4096, 0).decode("utf-8", "backslashreplace").strip()
        raise UsageError(
            f"{directory}: another run writes to this directory{who and ' ('}{who}{who and ')'};"
            " wait until it ends, or choose another directory"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        note(
            f"{directory}: note: the file system has no locks; make sure that no other run writes to this directory"
        )


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _who() -> bytes:
    """`process 17 on HOST since 2024-01-01 12:00:00 UTC: cdxmill index ...`."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    if len(command) > _COMMAND_SHOWN:
        command = f"{command[:_COMMAND_SHOWN]}..."
    text = f"process {os.getpid()} on {socket.gethostname()} since {_now()}: {command}"
    return text.replace("\n", "\\n").encode("utf-8", "surrogateescape") + b"\n"


@contextmanager
def hold_remote(directory: Location) -> Iterator[Callable[[float], None]]:
    """Hold a remote directory. Yields a function that raises StoppedError if another run has taken it, and renews the lock.

    It does nothing if it did that in the last seconds, whose number it takes. Raises UsageError if another run holds it.
    """
    lock = _RemoteLock(directory)
    try:
        yield lock.check
    finally:
        with suppress(InputError, StoppedError):
            lock.release()


class _RemoteLock:
    """Raises UsageError if another run has the lock, else writes it."""

    def __init__(self, directory: Location) -> None:
        self._file, self._run, self._since = directory / LOCK, os.urandom(8).hex(), _now()
        found = self._read()
        if found and not _is_stale(found):
            who = f"process {found.get('process')} on {found.get('host')} since {found.get('since')}"
            hint = f"wait until it ends, or delete {self._file} if it was killed"
            raise UsageError(f"{directory}: another run writes to this directory ({who}); {hint}")
        self._write()

    def check(self, seconds: float) -> None:
        """Raise StoppedError if another run has taken the lock; else renew it. Not if that was `seconds` ago or less."""
        if time.monotonic() - self._renewed <= seconds:
            return
        if self._read().get("run") != self._run:
            raise StoppedError(
                f"{self._file}: another run has taken this directory; run it again when that ends"
            )
        if time.monotonic() - self._renewed > RENEWED:
            self._write()

    def release(self) -> None:
        """Delete the lock, unless another run has taken it."""
        if self._read().get("run") == self._run:
            self._file.remove()

    def _write(self) -> None:
        known = {"run": self._run, "process": os.getpid(), "host": socket.gethostname(), "since": self._since}
        with self._file.write_atomic() as file:
            file.write(json.dumps({**known, "renewed": time.time()}).encode() + b"\n")
        self._renewed = time.monotonic()

    def _read(self) -> dict[str, Any]:
        """The content of the lock; {} if there is none, or if it cannot be understood."""
        try:
            found = json.loads(self._file.read_bytes())
        except (AbsentError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _is_stale(found: dict[str, Any]) -> bool:
    """Whether the run that wrote the lock was killed."""
    with suppress(KeyError, TypeError, ValueError):
        if found["host"] == socket.gethostname():
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


def sweep(directory: Path) -> None:
    """Delete temporary files and directories that a killed run left below `directory`.

    Only names that cdxmill gives are deleted. Subdirectories with a lock of their own are skipped. Symbolic links to
    directories are not followed.
    """
    for parent, directories, files in os.walk(directory):
        here = Path(parent)
        if here != directory and LOCK in files:
            directories.clear()
            continue
        for name in [name for name in directories if _SCRATCH.fullmatch(name)]:
            directories.remove(name)
            shutil.rmtree(here / name, ignore_errors=True)
        for name in files:
            if OWN_TEMPORARY.fullmatch(name):
                with suppress(OSError):
                    (here / name).unlink()
