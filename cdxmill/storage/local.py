"""Local files: read ranges, and write whole files or none."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO

from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError, StoppedError, UsageError
from cdxmill.messages import FULL, write_advice
from cdxmill.regex import regex
from cdxmill.storage.interface import Entry

TEMPORARY = ".tmp"
OWN_TEMPORARY = regex(r"\.(?!.*\.attempt_).+\.\d+-[0-9a-f]{8}\.tmp", re.S)
"""Names that `temporary_name` gives outside of Hadoop."""
_ATTEMPT = "mapreduce_task_attempt_id"
"""Set by Hadoop. It names the attempt whose unfinished file a directory has."""
_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Directories of symbolic links to open files."""
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What `flock` reports if the file system does not support it."""
_DISK_FAULTS = (errno.EIO, *FULL)
_LONGEST = 255
"""Bytes of a file name, on most file systems."""

_ERRORS: dict[int | None, tuple[type[InputError], str]] = {
    errno.ENOENT: (AbsentError, "check the path"),
    errno.EACCES: (RefusedError, "check the access rights"),
    errno.ESPIPE: (InputError, "save it to a file"),
    errno.EISDIR: (InputError, "name a file, or a directory with archives"),
    errno.EINVAL: (InputError, ""),
    errno.ENXIO: (InputError, ""),
    **dict.fromkeys((errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP), (InputError, "")),
}

_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
"""The error numbers of a file that does not exist."""
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def open_ranges(path: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open a file (see `Location.open_ranges`)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else a pipe without a writer would block
        try:
            os.pread(handle, 1, 0)
        except OSError:
            os.close(handle)
            raise
    except OSError as error:
        raise input_error(path, error) from None
    except ValueError:  # a NUL, or half of a surrogate pair
        raise AbsentError(path, "cannot be read (no file can have this name)", "check the path") from None

    def read_at(offset: int, size: int) -> bytes:
        try:
            return read_fully(handle, offset, size)
        except OSError as error:
            raise input_error(path, error) from None

    try:
        yield read_at
    finally:
        os.close(handle)


def read_fully(handle: int, offset: int, size: int) -> bytes:
    """The `size` bytes at `offset` of an open file; fewer only at its end. Of a file on a network, `pread` may return fewer elsewhere."""
    data = os.pread(handle, size, offset)
    while len(data) < size and (more := os.pread(handle, size - len(data), offset + len(data))):
        data += more
    return data


def input_error(path: str, error: OSError) -> InputError:
    """The error for a file that cannot be read: of the machine (OutageError), unless the number shows something else."""
    kind, hint = _ERRORS.get(error.errno, (OutageError, ""))  # EIO, ESTALE and others: the disk
    return kind(path, f"cannot be read ({reason_of(error)})", hint)


def reason_of(error: OSError) -> str:
    """What an error says, without its number and its path."""
    return os.strerror(error.errno) if error.errno else str(error)


@contextmanager
def write_atomic(
    path: str | Path, *, sync_file: bool = True, sync_name: bool = True, mode: int = 0o666
) -> Iterator[IO[bytes]]:
    """Write a file that gets its name only when it is complete. Its directory is created.

    At the end the file is on the disk, and so is its name. Without `sync_name` call `sync_directories` later. Without
    `sync_file` the file may be empty after a power cut. `mode` is as that of `open`, with the umask. A link with this name
    is replaced, and not followed. Raises StoppedError if the file cannot be written, or if a device or pipe has its name.
    """
    path = Path(path)
    temporary = path.with_name(temporary_name(path.name))
    with stopping(path):
        if _is_stream(path):
            raise StoppedError(f"{path}: is a device or a pipe; move it away, or choose another output")
        create_directory(path.parent)
        try:
            with _create(temporary, mode) as file:
                yield file
                file.flush()
                if sync_file:
                    os.fsync(file.fileno())
            temporary.replace(path)
            if sync_file and sync_name:
                sync_directory(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def _create(path: Path, mode: int) -> IO[bytes]:
    """A new file, which is locked as long as it is open, so that `drop_unfinished` of another process leaves it alone."""
    while True:
        file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115 - the caller closes it
        with contextlib.suppress(OSError):  # the file system may have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():
            return file
        file.close()  # it was deleted before it was locked


def drop_unfinished(path: Path) -> None:
    """Delete what killed processes left of the file `path`. What a process still writes is locked."""
    with contextlib.suppress(OSError):
        for found in path.parent.iterdir():
            if OWN_TEMPORARY.fullmatch(found.name) and found.name == _hidden(path.name, _ending(found.name)):
                delete_unlocked(found)


def delete_unlocked(path: Path, *, without_locks: bool = False) -> None:
    """Delete a temporary file, unless a process still writes it. `without_locks`: also where the file system has no locks."""
    with contextlib.suppress(OSError):
        handle = _open_to_lock(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        except OSError as error:
            if without_locks and error.errno in NO_LOCKS:
                path.unlink()
        finally:
            os.close(handle)


def _open_to_lock(path: Path) -> int:
    """Open a file for writing, as NFS wants it for a lock. A disk that has just failed may allow only reading."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | flags)
    except OSError as error:
        if error.errno not in _DISK_FAULTS:
            raise
        return os.open(path, os.O_RDONLY | flags)


@contextmanager
def write_named(path: str) -> Iterator[IO[bytes]]:
    """Write a file that the user named: as `write_atomic` does, but a device or pipe directly. Raises StoppedError.

    What killed runs left of it is deleted. If nothing is written, no new directory stays.
    """
    if not _is_stream(Path(path)):
        drop_unfinished(Path(path))
        with new_directory(Path(path).parent), write_atomic(path) as file:
            yield file
        return
    with stopping(Path(path)), Path(path).open("wb") as file:
        yield file


def create_directory(directory: Path) -> list[Path]:
    """Create a directory and its parents if needed, so that they exist after a power cut, too. Raises OSError.

    Returns those that it created, the innermost first.
    """
    above: list[Path] = []
    try:
        directory.mkdir()
    except FileNotFoundError:
        above = create_directory(directory.parent)
        directory.mkdir(exist_ok=True)
    except FileExistsError:
        if directory.is_dir():
            return []
        raise
    sync_directory(directory.parent)
    return [directory, *above]


@contextmanager
def new_directory(directory: Path) -> Iterator[None]:
    """Create a directory and its parents if needed. If the `with` block fails, those that are new and empty are deleted.

    Raises StoppedError. Processes that write to the directory at the same time must be within one such block.
    """
    with stopping(directory):
        created = create_directory(directory)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for path in created:
                path.rmdir()
        raise


def sync_directories(paths: Iterable[str | Path]) -> None:
    """Wait until the names of files that were written without `sync_name` are on the disk. Raises StoppedError."""
    for directory in sorted({Path(path).parent for path in paths}):
        with stopping(directory), contextlib.suppress(FileNotFoundError):  # no file was written to it
            sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on the disk. Raises OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot do this for directories
            raise
    finally:
        os.close(handle)


def _is_stream(path: Path) -> bool:
    """Whether it is a device or pipe, or a name such as /dev/stdout."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    is_name = path.parent in _STREAMS and path.is_symlink()
    return is_name or not (S_ISREG(mode) or S_ISDIR(mode))


def temporary_name(name: str) -> str:
    """A hidden name beside the file `name`, which no other process or thread uses."""
    attempt = os.environ.get(_ATTEMPT, "")
    own = f"{attempt}{attempt and '.'}{os.getpid()}-{os.urandom(4).hex()}"
    return _hidden(name, f".{own}{TEMPORARY}")


def _ending(name: str) -> str:
    """What `temporary_name` put after the name of a file, outside of Hadoop."""
    return name[name.rindex(".", 0, -len(TEMPORARY)) :]


def _hidden(name: str, ending: str) -> str:
    """The name of a file with an ending, hidden and short enough."""
    end = os.fsencode(ending)
    return os.fsdecode(b"." + os.fsencode(name)[: _LONGEST - 1 - len(end)] + end)


@contextmanager
def stopping(path: Path) -> Iterator[None]:
    """Turn an OSError while writing `path` into StoppedError."""
    try:
        yield
    except OSError as error:
        raise StoppedError(
            f"{path}: cannot be written ({reason_of(error)}); {write_advice(error.errno)}"
        ) from None


def make_directory(path: Path) -> None:
    """Create the directory `path` if needed. Raises UsageError if it is a file, StoppedError if it cannot be created."""
    check_directory(path)
    with stopping(path):
        create_directory(path)


def check_directory(path: Path) -> None:
    """Raise UsageError if an output directory is a file."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is not a directory; choose another output directory")


@contextmanager
def spooled() -> Iterator[IO[bytes]]:
    """Open a temporary file for content that is uploaded when it is complete. Raises StoppedError."""
    import tempfile  # slow to import

    with stopping(Path(tempfile.gettempdir())), tempfile.TemporaryFile() as file:
        yield file


def status(path: str) -> Entry | None:
    """The size and time of a file or directory. None if it does not exist. Raises InputError if that is unknown."""
    try:
        return _entry(os.stat(path))  # noqa: PTH116 - servers ask for each request, and a Path takes longer
    except ValueError:  # no file can have this name
        return None
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise input_error(path, error) from None


def check_above(path: str) -> None:
    """Raise UsageError if something above the path is there and no directory, so that nothing can be written there."""
    above = next((one for one in Path(path).absolute().parents if os.path.lexists(one)), Path("/"))
    with contextlib.suppress(OSError):  # what cannot be read may be one
        if not above.is_dir():
            raise UsageError(f"{path}: {above} is not a directory; choose another output")


def list_directory(path: str) -> dict[str, Entry]:
    """The entries of a directory by name. Empty if it does not exist. Raises InputError if it cannot be listed.

    A link that leads nowhere, or to itself, is no entry.
    """
    try:
        with os.scandir(path) as found:
            items = list(found)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: no file can have this name
        return {}
    except OSError as error:
        raise input_error(path, error) from None
    entries = {}
    for item in items:
        try:
            if item.is_dir() or item.is_file():
                entries[item.name] = _entry(item.stat())
        except OSError as error:
            if error.errno not in _ABSENT:  # else it may have been deleted since: the others are still there
                raise input_error(item.path, error) from None
    return entries


def _entry(stat: os.stat_result) -> Entry:
    return Entry(stat.st_size, stat.st_mtime, S_ISDIR(stat.st_mode), str(stat.st_mtime_ns))


def remove(path: str) -> None:
    """Delete a file, or an empty directory, if it exists. Raises StoppedError."""
    _remove(path, os.rmdir)


def remove_tree(path: str) -> None:
    """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError."""
    import shutil  # slow to import

    _remove(path, shutil.rmtree)


def _remove(path: str, remove_directory: Callable[[str], object]) -> None:
    with stopping(Path(path)), contextlib.suppress(FileNotFoundError):
        if Path(path).is_dir() and not Path(path).is_symlink():
            remove_directory(path)
        else:
            Path(path).unlink()


def move(path: str, target: str) -> None:
    """Rename a file or directory. A directory that is not empty is never replaced. Raises StoppedError."""
    with stopping(Path(target)):
        Path(path).replace(target)


def copy_mode(path: str, target: str) -> None:
    """Give a directory the access rights of another one, if that exists. Raises StoppedError."""
    import shutil  # slow to import

    with stopping(Path(target)), contextlib.suppress(FileNotFoundError):
        shutil.copymode(path, target)


def exchange(one: str, other: str) -> bool:
    """Exchange two directories. False if the system (macOS) or the file system (NFS) cannot. Raises StoppedError."""
    import ctypes  # few runs need it

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if not call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    with stopping(Path(other)):
        raise OSError(number, os.strerror(number), other)
