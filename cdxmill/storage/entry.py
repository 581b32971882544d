"""The functions that every storage has, and what it knows about a file: size and time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, NamedTuple, Protocol


class Entry(NamedTuple):
    """A file or directory: its size in bytes, and the time of its last change in seconds since 1970."""

    size: int
    modified: float
    is_folder: bool = False


class Reads(Protocol):
    """The functions of a storage that can read."""

    def __hash__(self) -> int: ...
    def open_ranges(self, path: str, /) -> AbstractContextManager[Callable[[int, int], bytes]]:
        """Open a file: `read_at(offset, size)` returns fewer bytes only at its end. Raises InputError."""

    def file_size(self, path: str, /) -> int:
        """The size of a file in bytes; 0 if it is unknown."""

    def status(self, path: str, /) -> Entry | None:
        """The size and time of a file or directory; None if it does not exist. Raises InputError."""


class Writes(Reads, Protocol):
    """The functions of a storage that can also write."""

    def write_atomic(self, path: str, /) -> AbstractContextManager[IO[bytes]]:
        """Write a file that gets its name only when it is complete. Its directory is created. Raises StoppedError."""

    def list_folder(self, path: str, /) -> dict[str, Entry]:
        """The entries of a directory by name; none if it does not exist. Raises InputError."""

    def remove(self, path: str, /) -> None:
        """Delete a file if it exists. Raises StoppedError."""

    def remove_tree(self, path: str, /) -> None:
        """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError."""

    def move(self, path: str, target: str, /) -> None:
        """Give a file or directory another name (see `Location.move`). Raises StoppedError."""
