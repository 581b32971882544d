"""Files of this machine: read ranges, write whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cdxmill.errors import InputError, StoppedError

TEMPORARY = ".tmp"


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
    hints = {
        errno.ENOENT: "check the path",
        errno.EACCES: "check the rights of the file",
        errno.EISDIR: "name a file, or a folder with archives",
    }
    return InputError(
        path, f"cannot be read ({os.strerror(error.errno or 0)})", hints.get(error.errno or 0, "")
    )


@contextmanager
def write_atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file that stands under its name only once it is whole; its folder is made.

    Raises StoppedError where it cannot be written.
    """
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
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


def file_size(path: str) -> int:
    """Bytes of the file at `path`; 0 where it cannot be told."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def append_line(path: Path, fields: list[str]) -> None:
    """Append tab-separated `fields` as one line, in one write. Raises StoppedError."""
    with stopping(path), path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\t".join(text.replace("\t", "%09").replace("\n", "%0A") for text in fields) + "\n")


def is_newer(path: Path, source: str) -> bool:
    """Whether `path` stands and was written after `source`."""
    try:
        return path.stat().st_mtime_ns >= Path(source).stat().st_mtime_ns
    except OSError:
        return False
