"""Open a file that must not change while it is read: an input whose lines would be of two different files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from stat import S_ISREG
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.storage.location import Location, PathOrUrl, locate


class _Identity(NamedTuple):
    """Which file a path names, and its state. Truncating, writing and replacing change it."""

    device: int
    inode: int
    size: int
    modified: int


@contextmanager
def open_unchanged(path: PathOrUrl) -> Iterator[Callable[[int, int], bytes]]:
    """As `open_ranges`. At the end, raises InputError if a local file was written, truncated or replaced meanwhile."""
    file = locate(path)
    before = _identity(file)
    with file.open_ranges() as read_at:
        yield read_at
    if before is not None and _identity(file) != before:
        raise InputError(
            file.text, "changed while it was read", "run it again when nothing writes to the file"
        )


def _identity(file: Location) -> _Identity | None:
    """None if it is remote, does not exist, or is no regular file."""
    if file.is_remote:
        return None
    try:
        found = os.stat(file.stored_in.local)  # noqa: PTH116 - a path with a NUL is a ValueError here, too
    except (OSError, ValueError):
        return None
    return (
        _Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if S_ISREG(found.st_mode)
        else None
    )
