"""Inputs that are pipes: standard input (`-`), `<(...)` of a shell, named pipes.

Inputs are read by byte ranges, and some of them twice. A pipe has neither a size nor ranges, so it is copied to a
temporary file first. The copy is another file in every run, so a stopped run is never continued with it.
"""

from __future__ import annotations

import errno
import os
import posixpath
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from stat import S_ISFIFO
from typing import IO

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.messages import human_bytes
from cdxmill.running.failures import Failures
from cdxmill.storage.local import stopping
from cdxmill.storage.location import Location, locate
from cdxmill.storage.own import create_own
from cdxmill.storage.scratch import temporary_directory

STDIN = "-"
NO_NAME = "-"
"""The name, in index lines, of an archive that comes through a pipe without a name."""
_STDIN_PATH = "/dev/stdin"
_CHUNK = 1 << 20
_OPEN_FILES = ("/dev/", "/proc/")


class Pipes(ExitStack):
    """Copies of pipes in a temporary directory, which is deleted at the end. Unless `quiet`, each copy is reported."""

    def __init__(self, failures: Failures, *, quiet: bool) -> None:
        super().__init__()
        self._failures, self._quiet = failures, quiet
        self._directory: Path | None = None
        self._taken: set[str] = set()

    def copy_of(self, named: str) -> str | None:
        """The path of the copy of an input. None if it is no pipe. Raises InputError, UsageError, StoppedError."""
        if not is_pipe(named):
            return None
        if named in self._taken:
            raise UsageError(f"{named}: was given twice, but it can be read only once")
        self._taken.add(named)
        if self._directory is None:
            self._directory = Path(self.enter_context(temporary_directory()))
        path = _copy(named, self._directory / f"{len(self._taken)}-{_file_name(named)}")
        if not self._quiet:
            size = human_bytes(path.stat().st_size)
            self._failures.note(
                f"{named}: note: a pipe; {size} copied to {path}; a stopped run with it starts from the beginning"
            )
        return str(path)

    def has(self, path: str) -> bool:
        """Whether `path` is a copy."""
        return Path(path).parent == self._directory


def filename_of(named: str) -> str:
    """The name of a pipe in index lines: its base name, or `-` if it has none.

    >>> filename_of("-"), filename_of("/dev/fd/63"), filename_of("fifos/a.warc.gz")
    ('-', '-', 'a.warc.gz')
    """
    return NO_NAME if named == STDIN or named.startswith(_OPEN_FILES) else posixpath.basename(named)


def is_pipe(named: str) -> bool:
    """Whether an input is standard input or a named pipe."""
    if named in (STDIN, _STDIN_PATH):
        return True
    try:
        return S_ISFIFO(os.stat(named).st_mode)  # noqa: PTH116 - also for a name with a NUL
    except (OSError, ValueError):
        return False


def _file_name(named: str) -> str:
    return "standard-input" if named in (STDIN, _STDIN_PATH) else f"pipe-{posixpath.basename(named)[:100]}"


def _copy(named: str, path: Path) -> Path:
    """Copy a pipe to `path`, with `.gz` after its name if it is gzip. Raises InputError, StoppedError."""
    with open_pipe(named) as read:
        data = read(_CHUNK)
        if data.startswith(GZIP_MAGIC):
            path = path.with_name(f"{path.name}.gz")
        with stopping(path), create_own(path) as copy:
            while data:
                copy.write(data)
                data = read(_CHUNK)
    return path


@contextmanager
def unpiped(named: str) -> Iterator[Location]:
    """The place of a file that the user named; that of a temporary copy if it is a pipe. Raises InputError, StoppedError."""
    if not is_pipe(named):
        yield locate(named)
        return
    with temporary_directory() as directory:
        yield locate(_copy(named, Path(directory) / _file_name(named)))


@contextmanager
def open_pipe(named: str) -> Iterator[Callable[[int], bytes]]:
    """Open a pipe: `read(size)` returns fewer bytes only at its end. Raises InputError."""
    try:
        source = _standard_input() if named in (STDIN, _STDIN_PATH) else Path(named).open("rb")  # noqa: SIM115
    except OSError as error:
        raise _unreadable(named, error) from None
    with source:
        yield lambda size: _read(source, named, size)


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:  # it is closed, and another file may have its number
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return open(0, "rb", closefd=False)


def _read(source: IO[bytes], named: str, size: int) -> bytes:
    try:
        return source.read(size)
    except OSError as error:
        raise _unreadable(named, error) from None


def _unreadable(named: str, error: OSError) -> InputError:
    return InputError(named, f"cannot be read ({os.strerror(error.errno or 0)})")
