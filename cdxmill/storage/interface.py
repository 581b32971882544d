"""The functions that every storage has, and what it knows about a file: size and time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, NamedTuple, Protocol


class Entry(NamedTuple):
    """A file or directory: its size in bytes, and the time of its last change in seconds since 1970.

    `tag` differs for each version of a file: the ETag on S3, else the time as precisely as the storage tells it, "" if it
    tells none.
    """

    size: int
    modified: float
    is_directory: bool = False
    tag: str = ""


class Properties(NamedTuple):
    """What a storage can do. Callers ask for this, and not for the storage.

    Its files can be written, moved, removed and listed (`can_write`), it tells when they were changed (`has_times`), one
    request gives size, time and first bytes (`has_look`: its function `look`), a file that is known to exist is opened
    without a request (`opens_freely`), directories are moved in one step (`has_directories`): S3 has only keys.
    """

    is_remote: bool = True
    can_write: bool = False
    has_times: bool = True
    has_look: bool = False
    opens_freely: bool = False
    has_directories: bool = True


class Reads(Protocol):
    """The functions of a storage that can read."""

    def __hash__(self) -> int: ...
    def open_ranges(self, path: str, /) -> AbstractContextManager[Callable[[int, int], bytes]]:
        """Open a file: `read_at(offset, size)` returns fewer bytes only at its end. Raises InputError."""

    def status(self, path: str, /) -> Entry | None:
        """The size and time of a file or directory. None if it does not exist. Raises InputError."""


class Writes(Reads, Protocol):
    """The functions of a storage that can also write."""

    def write_atomic(
        self, path: str, stamp: Callable[[], str] | None = None, /
    ) -> AbstractContextManager[IO[bytes]]:
        """Write a file that gets its name only when it is complete. Its directory is created. Raises StoppedError.

        The file gets the text of `stamp`, which is asked for when its content is complete (see `Location.stamped`).
        """

    def stamped(self, path: str, /) -> tuple[Entry | None, str]:
        """What `status` gives, and the stamp (see `Location.stamped`). Only remote storages have it. Raises InputError."""

    def list_directory(self, path: str, /) -> dict[str, Entry]:
        """The entries of a directory by name. Empty if it does not exist. Raises InputError."""

    def remove(self, path: str, /) -> None:
        """Delete a file if it exists. Raises StoppedError."""

    def remove_tree(self, path: str, /) -> None:
        """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError."""

    def move(self, path: str, target: str, /) -> None:
        """Give a file or directory another name (see `Location.move`). Raises StoppedError."""
