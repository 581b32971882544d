"""HTTP statuses of web servers, S3 and WebHDFS, and the errors they become."""

from __future__ import annotations

from cdxmill.errors import AbsentError, InputError, RefusedError

BUSY = frozenset((429, 500, 502, 503, 504))
"""The server is in trouble. The same request may succeed later."""
_ERRORS = {401: RefusedError, 403: RefusedError, 404: AbsentError, 410: AbsentError}


def error_type(status: int) -> type[InputError]:
    """The type of error for a status that is not worth another try.

    >>> error_type(404).__name__, error_type(403).__name__, error_type(400).__name__
    ('AbsentError', 'RefusedError', 'InputError')
    """
    return _ERRORS.get(status, InputError)
