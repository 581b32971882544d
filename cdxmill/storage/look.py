"""The size, the time and the first bytes of a file, for as few requests as the storage allows."""

from __future__ import annotations

from cdxmill.errors import InputError
from cdxmill.storage.choose import HTTP, S3, open_ranges, scheme_of, status
from cdxmill.storage.entry import Entry


def look(path: str, size: int) -> tuple[Entry | None, bytes]:
    """The entry of a path or URL, and its first `size` bytes; b"" if it cannot be read.

    With a `size` of 0, an HTTP file is asked for one byte. It shows that a file of unknown size is not empty.
    The entry is None if nothing exists there or the storage does not answer. Raises UsageError as open_ranges does.
    """
    try:
        if scheme_of(path) in HTTP:
            from cdxmill.storage.web.http import look_by_http

            return look_by_http(path, max(size, 1))
        if scheme_of(path) in S3:
            from cdxmill.storage.s3.objects import look_by_s3

            return look_by_s3(path, size)
        entry = status(path)
    except InputError:
        return None, b""
    return entry, _head(path, size) if size else b""


def first_bytes(path: str, size: int) -> bytes:
    """The first `size` bytes at a path or URL, or fewer; b"" if it cannot be read. Raises UsageError."""
    is_one_request = scheme_of(path) in (*HTTP, *S3)
    return look(path, size)[1] if is_one_request else _head(path, size)


def _head(path: str, size: int) -> bytes:
    try:
        with open_ranges(path) as read_at:
            return read_at(0, size)
    except InputError:
        return b""
