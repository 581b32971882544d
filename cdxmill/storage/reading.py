"""Ways to read a file: its first bytes, unchanged from start to end, or mapped into memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from stat import S_ISREG
from typing import IO, Any, TypeVar, cast

from cdxmill.errors import InputError, OutageError, RefusedError
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import input_error, open_ranges
from cdxmill.storage.location import Location, PathOrUrl, locate, pieces
from cdxmill.storage.wacz import WaczFiles

Read = TypeVar("Read")


def look(place: Location, size: int) -> tuple[Entry | None, bytes]:
    """The entry of a file, and its first `size` bytes; b"" if it cannot be read.

    The entry is None if nothing exists there or a remote storage does not answer. Raises UsageError as open_ranges does, and
    OutageError if the disk fails: the identity of a run depends on sizes and times.
    """
    storage: Any
    try:
        storage, name = place.reads
        if place.properties.has_look and not isinstance(storage, WaczFiles):
            return cast("tuple[Entry, bytes]", storage.look(name, size))
        entry = storage.status(name)
    except InputError as error:
        if isinstance(error, OutageError) and not place.is_remote:
            raise
        return None, b""
    return entry, _head(place, size) if size else b""


def first_bytes(place: Location, size: int) -> bytes:
    """The first `size` bytes of a file, or fewer; b"" if it cannot be read. Raises UsageError."""
    return look(place, size)[1] if place.properties.has_look else _head(place, size)


def _head(place: Location, size: int) -> bytes:
    try:
        with place.open_ranges() as read_at:
            return read_at(0, size)
    except InputError:
        return b""


def bytes_if_any(place: Location) -> bytes | None:
    """The content of a small file that may be missing; None if it is, or if it is too large. Raises OutageError."""
    return if_any(place, place.read_bytes)


def if_any(place: Location, read: Callable[[], Read]) -> Read | None:
    """What `read` reads of a small file that may be missing; None if it is, or if it is too large.

    A remote storage without the right to list answers 403 for a missing file, too. Raises OutageError: what is decided
    without this file would be wrong.
    """
    try:
        return read()
    except OutageError as error:
        if isinstance(error, RefusedError) and place.is_remote:
            return None
        raise
    except InputError:
        return None


def json_if_any(place: Location) -> Any:
    """The value in a small JSON file; None if the file is missing or corrupt. Raises OutageError."""
    import json  # slow to import

    try:
        return json.loads(bytes_if_any(place) or b"")
    except (ValueError, RecursionError):
        return None


def sha256_of(place: Location) -> str:
    """The SHA-256 of a file in hexadecimal digits. Raises InputError."""
    import hashlib  # slow to import

    digest = hashlib.sha256()
    with place.open_ranges() as read_at:
        for piece in pieces(read_at):
            digest.update(piece)
    return digest.hexdigest()


def written(file: IO[bytes]) -> str | None:
    """The SHA-256 of a local file that is being written, read from its disk. None if it is uploaded when it is complete.

    Raises OSError.
    """
    if not isinstance(file.name, str):
        return None
    file.flush()
    os.fsync(file.fileno())
    if hasattr(os, "posix_fadvise"):  # else the bytes come from memory
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return sha256_of(Location(file.name))


@contextmanager
def open_unchanged(path: PathOrUrl) -> Iterator[Callable[[int, int], bytes]]:
    """As `open_ranges`. At the end, raises InputError if a local file was written, truncated or replaced meanwhile."""
    file = locate(path)
    before = _state(file)
    with file.open_ranges() as read_at:
        yield read_at
    if before is not None and _state(file) != before:
        hint = "run it again when nothing writes to the file"
        raise InputError(file.text, "changed while it was read", hint)


def _state(file: Location) -> tuple[int, int, int, int] | None:
    """What truncating, writing and replacing a file change. None if it is remote, or no regular file. Raises OutageError."""
    if file.is_remote:
        return None
    path = file.stored_in.local
    try:
        found = os.stat(path)  # noqa: PTH116 - a path with a NUL is a ValueError here, too
    except ValueError:
        return None
    except OSError as error:
        if isinstance(why := input_error(path, error), OutageError):
            raise why from None
        return None
    if not S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def open_mapped(path: str) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
    """Open a local file: `read_at(offset, size)` and the size of the file. Raises as `local.open_ranges`.

    Requires: nobody truncates the file while it is open. cdxmill replaces files and never truncates one.
    """
    with open_ranges(path) as read_at:
        if not read_at(0, 1):  # empty files cannot be mapped, and pipes cannot be read here
            yield read_at, 0
            return
        try:
            handle = os.open(path, os.O_RDONLY)
            try:
                data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            raise InputError(path, f"cannot be read ({error})") from None
        with data:
            yield lambda offset, size: data[offset : offset + size], len(data)
