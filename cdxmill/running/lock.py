"""A lock on a local output directory: one run writes to it at a time.

The lock is `flock` on DIRECTORY/.lock. The file has one line, which says who holds the directory. It is deleted at the end
of the run. If the file exists and nobody holds it, the earlier run was killed. Then its temporary files are deleted,
as they are when a run ends with an error.
"""

from __future__ import annotations

import errno
import fcntl
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

from cdxmill.errors import UsageError
from cdxmill.messages import say
from cdxmill.storage.local import OWN_TEMPORARY, make_directory, stopping

LOCK = ".lock"
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
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    if len(command) > _COMMAND_SHOWN:
        command = f"{command[:_COMMAND_SHOWN]}..."
    text = f"process {os.getpid()} on {socket.gethostname()} since {since}: {command}"
    return text.replace("\n", "\\n").encode("utf-8", "surrogateescape") + b"\n"


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
