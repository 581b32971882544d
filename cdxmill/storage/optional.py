"""Files that may be missing. Buckets behind HTTP answer 403 for those, so such a refusal does not count against the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

_thread = local()


def is_optional() -> bool:
    """Whether this thread asks for a file that may be missing."""
    return getattr(_thread, "is_optional", False)


@contextmanager
def optional() -> Iterator[None]:
    """Ask for files that may be missing."""
    before, _thread.is_optional = is_optional(), True
    try:
        yield
    finally:
        _thread.is_optional = before
