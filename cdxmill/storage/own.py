"""Files and directories on a disk under names that cdxmill chose, such as `.lock`, `.outputs.tsv` and `.work`.

Somebody else may have put something under such a name, in a directory that others can write to or that was downloaded. So
no link is followed there, no pipe or device is opened, and a file with a second name (a hard link) is not changed. What is
not cdxmill's own stays as it is, and the run ends with one line (UsageError).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import IO

from cdxmill.errors import UsageError
from cdxmill.formats.own_records import format_row
from cdxmill.storage.local import create_directory, stopping, sync_directory

_CHECKED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""For names that may be taken: a link is an error, a pipe does not block."""
_NOT_FILES = (errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO)
"""What `open` reports for a link (EMLINK on BSD), a directory, and a pipe or socket that nobody reads."""


def open_own(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file that cdxmill keeps. With O_CREAT in the `flags`, it is created if it is missing.

    Raises UsageError if it is no file, or has a second name and is opened to change it; OSError if it cannot be opened.
    """
    plain = flags & ~os.O_CREAT | _CHECKED
    while True:
        try:
            handle = os.open(path, plain)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            with suppress(FileExistsError):  # another process has created it since
                return os.open(path, plain | os.O_CREAT | os.O_EXCL, mode)
            continue
        except OSError as error:
            if error.errno in _NOT_FILES:
                raise foreign(path) from None
            raise
        found = os.fstat(handle)
        is_shared = found.st_nlink > 1 and flags & os.O_ACCMODE != os.O_RDONLY
        if S_ISREG(found.st_mode) and not is_shared:
            return handle
        os.close(handle)
        raise foreign(path)


def foreign(path: Path) -> UsageError:
    """The error for a name of cdxmill under which something of somebody else is."""
    mode = path.lstat().st_mode
    kinds = (
        (S_ISLNK, "a symbolic link"),
        (S_ISDIR, "a directory of somebody else"),
        (S_ISREG, "a file of somebody else"),
    )
    what = next((what for is_kind, what in kinds if is_kind(mode)), "a pipe or device")
    return UsageError(
        f"{path}: is {what}, and cdxmill needs this name; move it away, or choose another directory"
    )


def read_own(path: Path) -> bytes:
    """The content of a file that cdxmill keeps, b"" if it is missing. Raises as `open_own`."""
    try:
        with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""


def create_own(path: Path) -> IO[bytes]:
    """Open a new file to write, in a directory of cdxmill's own. What has its name is deleted, and never opened. Raises OSError."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def own_directory(path: Path) -> None:
    """Create a directory of cdxmill's own if needed. Raises UsageError if its name is a link or a file, StoppedError."""
    with stopping(path):
        try:
            create_directory(path)
        except FileExistsError:
            raise foreign(path) from None
        if path.is_symlink():
            raise foreign(path)


def append_rows(path: Path, rows: Iterable[list[str]]) -> None:
    """Append tab-separated rows in one write, and wait until they are on the disk. Raises StoppedError; UsageError as `open_own`.

    They begin on a line of their own, also if a process was killed in the middle of a row.
    """
    data = b"".join(map(format_row, rows))
    if not data:
        return
    with stopping(path), _appending(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            data = b"\n" + data
        written = file.write(data)
        if written < len(data):  # the disk is full
            if os.fstat(file.fileno()).st_size == file.tell():  # no other process has appended since
                file.truncate(file.tell() - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
        if not size:
            sync_directory(path.parent)


def _appending(path: Path) -> IO[bytes]:
    return os.fdopen(open_own(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "ab", buffering=0)
