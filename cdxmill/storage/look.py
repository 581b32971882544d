"""The size, the time and the first bytes of a file, for as few requests as the storage allows."""

from __future__ import annotations

from cdxmill.errors import InputError
from cdxmill.storage.choose import open_ranges, status
from cdxmill.storage.entry import Entry


def look(path: str, size: int) -> tuple[Entry | None, bytes]:
    """The entry of a path or URL, and its first `size` bytes; b"" if it cannot be read.

    The entry is None if nothing exists there or the storage does not answer. Raises UsageError as open_ranges does.
    """
    try:
        if path.lower().startswith(("http://", "https://")):
            from cdxmill.storage.http_look import look_by_http

            return look_by_http(path, size)
        entry = status(path)
    except InputError:
        return None, b""
    try:
        with open_ranges(path) as read_at:
            return entry, read_at(0, size)
    except InputError:
        return entry, b""
