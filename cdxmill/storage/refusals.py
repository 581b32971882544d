"""Errors for answers of web servers, S3 and WebHDFS that no other try can mend."""

from __future__ import annotations

from cdxmill.errors import AbsentError, InputError, RefusedError

BUSY = frozenset((429, 500, 502, 503, 504))
"""HTTP statuses of a server in trouble: the same request may succeed later."""
DOWNLOAD = "download the file and use the local copy"
"""The hint if a server does not support what cdxmill needs."""


def refusal(url: str, status: int, reason: str, absent_hint: str) -> InputError:
    """The error for an HTTP status; `absent_hint` is its hint if the file does not exist.

    >>> refusal("http://host/a", 404, "cannot be read (404 Not Found)", "check the URL")
    AbsentError('http://host/a: cannot be read (404 Not Found); check the URL')
    """
    if status in (404, 410):
        return AbsentError(url, reason, absent_hint)
    if status in (401, 403):
        return RefusedError(url, reason, "check the access rights")
    return InputError(url, reason)
