"""The size, the time and the first bytes of a file, for as few requests as the storage allows."""

from __future__ import annotations

from typing import cast

from cdxmill.errors import InputError
from cdxmill.storage.entry import Entry, Looks
from cdxmill.storage.location import Location


def look(place: Location, size: int) -> tuple[Entry | None, bytes]:
    """The entry of a file, and its first `size` bytes; b"" if it cannot be read.

    The entry is None if nothing exists there or the storage does not answer. Raises UsageError as open_ranges does.
    """
    try:
        storage, name = place.reads
        if place.properties.has_look:
            return cast("Looks", storage).look(name, size)
        entry = storage.status(name)
    except InputError:
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
