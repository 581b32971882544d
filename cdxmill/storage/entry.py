"""What a storage knows about a file: size and time."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A file or folder: its size in bytes, and the time of its last change in seconds since 1970."""

    size: int
    modified: float
    is_folder: bool = False
