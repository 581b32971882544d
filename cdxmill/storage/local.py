"""Files of this machine: read ranges, write whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR
from typing import IO

from cdxmill.errors import AbsentError, InputError, RefusedError, StoppedError, UsageError
from cdxmill.storage.entry import Entry

TEMPORARY = ".tmp"
_ATTEMPT = "mapreduce_task_attempt_id"
"""Hadoop may have two machines at the same file of a shared folder: each writes under a name of its own."""

_ERRORS = {
    errno.ENOENT: (AbsentError, "check the path"),
    errno.EACCES: (RefusedError, "check the rights of the file"),
    errno.EISDIR: (InputError, "name a file, or a folder with archives"),
}


@contextmanager
def open_ranges(path: str) -> Iterator[Callable[[int, int], bytes]]:
    """`read_at(offset, size)` over a file; it gives fewer bytes only at the file's end.

    Raises InputError where the file is absent or cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer would wait for ever
        try:
            os.pread(handle, 1, 0)
        except OSError:
            os.close(handle)
            raise
    except OSError as error:
        raise _input_error(path, error) from None

    def read_at(offset: int, size: int) -> bytes:
        try:
            return _read_fully(handle, offset, size)
        except OSError as error:
            raise _input_error(path, error) from None

    try:
        yield read_at
    finally:
        os.close(handle)


def _read_fully(handle: int, offset: int, size: int) -> bytes:
    data = os.pread(handle, size, offset)
    while len(data) < size and (more := os.pread(handle, size - len(data), offset + len(data))):
        data += more
    return data


def _input_error(path: str, error: OSError) -> InputError:
    kind, hint = _ERRORS.get(error.errno or 0, (InputError, ""))
    return kind(path, f"cannot be read ({os.strerror(error.errno or 0)})", hint)


@contextmanager
def write_atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that stands under its name only once it is whole; its folder is made.

    Raises StoppedError where it cannot be written.
    """
    path, attempt = Path(path), os.environ.get(_ATTEMPT, "")
    temporary = path.with_name(f".{path.name}{attempt and '.'}{attempt}{TEMPORARY}")
    with stopping(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                yield file
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


@contextmanager
def stopping(path: Path) -> Iterator[None]:
    """Failing writes to `path` become StoppedError."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StoppedError(
            f"{path}: cannot be written ({reason}); free space or fix it, then run it again"
        ) from None


def make_folder(path: Path) -> None:
    """Have a folder at `path`. Raises UsageError where something else is there, StoppedError where it cannot be made."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is no folder, and a folder is written: name another one")
    with stopping(path):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def spooled() -> Iterator[IO[bytes]]:
    """A temporary file for what is sent elsewhere once it is whole. Raises StoppedError."""
    with stopping(Path(tempfile.gettempdir())), tempfile.TemporaryFile() as file:
        yield file


def file_size(path: str) -> int:
    """Bytes of the file at `path`; 0 where it cannot be told."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def status(path: str) -> Entry | None:
    """What is at `path`; None where nothing is, or it cannot be told."""
    try:
        return _entry(Path(path).stat())
    except (OSError, ValueError):
        return None


def list_folder(path: str) -> dict[str, Entry]:
    """What is in the folder at `path`, by name; nothing where there is none.

    Raises InputError where it cannot be looked into.
    """
    try:
        with os.scandir(path) as found:
            return {item.name: _entry(item.stat()) for item in found if item.is_dir() or item.is_file()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _input_error(path, error) from None


def _entry(stat: os.stat_result) -> Entry:
    return Entry(stat.st_size, stat.st_mtime, S_ISDIR(stat.st_mode))


def remove(path: str) -> None:
    """Delete the file at `path` where there is one. Raises StoppedError."""
    with stopping(Path(path)):
        Path(path).unlink(missing_ok=True)


def append_line(path: Path, fields: list[str]) -> None:
    """Append tab-separated `fields` as one line, in one write. Raises StoppedError."""
    with stopping(path), path.open("ab") as file:
        file.write(format_line(fields))


def format_line(fields: list[str]) -> bytes:
    """`fields` as one line, tab-separated."""
    line = "\t".join(text.replace("\t", "%09").replace("\n", "%0A") for text in fields)
    return f"{line}\n".encode("utf-8", "surrogateescape")
