"""What a storage says of a file."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A file or folder: size in bytes, and when it last changed, in seconds since 1970."""

    size: int
    modified: float
    is_folder: bool = False
