"""Directories for temporary files of a run: created when needed, deleted at the end, or by a later run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from cdxmill.errors import StoppedError, UsageError
from cdxmill.regex import regex
from cdxmill.storage.local import new_directory, read_fully, reason_of, stopping
from cdxmill.storage.location import locate
from cdxmill.storage.own import create_own, open_own

_PREFIX = "cdxmill-run-"
_LOCK = ".lock"
_OWN = regex(r"cdxmill-run-[a-z0-9_]{8}")


@contextmanager
def temporary_directory(place: str | None = None) -> Iterator[str]:
    """A directory for temporary files, in the directory `place` or where the system has such files. It is deleted at the end.

    A file in it is locked as long as a process of the run lives: a lock of the directory would not be seen by other machines.
    First, the directories of this user's killed runs are deleted.
    """
    import shutil  # slow to import
    import tempfile  # slow to import

    base = place or tempfile.gettempdir()
    _sweep(base)
    directory, handle = _locked_directory(base)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(handle)


def _locked_directory(base: str) -> tuple[str, int]:
    import tempfile  # slow to import

    while True:
        directory = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
        path = f"{directory}/{_LOCK}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # without locks, nobody else can lock the file, and delete the directory
            fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # another run has deleted it before it was locked
            if os.path.samestat(os.stat(path), os.fstat(handle)):  # noqa: PTH116
                return directory, handle
        os.close(handle)


def _sweep(base: str) -> None:
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if _OWN.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _delete_if_dead(entry)


def _delete_if_dead(entry: os.DirEntry[str]) -> None:
    import shutil  # slow to import

    with suppress(OSError, UsageError):
        if entry.stat(follow_symlinks=False).st_uid != os.getuid():
            return
        # without this file, the directory was made a moment ago
        handle = open_own(Path(entry.path, _LOCK), os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry.path, ignore_errors=True)
        finally:
            os.close(handle)


@contextmanager
def hidden_directory(place: Path) -> Iterator[Path]:
    """A directory for temporary files in the directory `place`. It is deleted at the end; `running.lock` deletes those of killed runs."""
    directory = place / f".scratch-{os.urandom(4).hex()}"
    directory.mkdir(mode=0o700)
    try:
        yield directory
    finally:
        delete_tree(directory)


def delete_tree(directory: Path) -> None:
    """Delete a directory and its content, as far as possible. Most have none, or do not exist."""
    try:
        directory.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        import shutil  # slow to import

        shutil.rmtree(directory, ignore_errors=True)


class Scratch:
    """Files below `directory`. Each read opens and closes its file, because there may be thousands."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Create a file to write. Raises StoppedError if it cannot be written."""
        path = self.directory / name
        with stopping(path):
            self.directory.mkdir(parents=True, exist_ok=True)
            with create_own(path) as file:
                yield file

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """`read_at(offset, size)` of a file in the directory, or at an absolute path. Raises StoppedError."""
        path = self.directory / name

        def read_at(offset: int, size: int) -> bytes:
            try:
                handle = os.open(path, os.O_RDONLY)
                try:
                    return read_fully(handle, offset, size)
                finally:
                    os.close(handle)
            except OSError as error:
                raise StoppedError(f"{path}: cannot be read ({reason_of(error)}); run it again") from None

        return read_at

    def delete(self, names: Iterable[str]) -> None:
        """Delete some of the files."""
        for name in names:
            (self.directory / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the directory and its content."""
        delete_tree(self.directory)


@contextmanager
def scratch_files(output: str) -> Iterator[Callable[[], IO[bytes]]]:
    """A function that creates temporary files without a name, on the disk of a local output. They are closed at the end.

    Raises StoppedError if one cannot be written.
    """
    import tempfile  # slow to import

    path = locate(output).directory
    directory = None if path is None else path.parent
    with stopping(directory or Path(tempfile.gettempdir())), ExitStack() as files:
        if directory is not None:
            files.enter_context(new_directory(directory))
        yield lambda: files.enter_context(tempfile.TemporaryFile(dir=directory))
