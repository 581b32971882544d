"""A path or URL -> the storage that reads it.

    path, file://            local
    http://, https://        http       by urllib3
    s3://, s3a://            s3         by boto3, the extra `s3`

A storage is imported when it is first used, so that plain files cost nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import unquote_to_bytes

from cdxmill.errors import InputError
from cdxmill.storage import local

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.I)
_HTTP = ("http", "https")
_S3 = ("s3", "s3a")
_THIS_MACHINE = ("", "localhost")


def open_ranges(path: str) -> AbstractContextManager[Callable[[int, int], bytes]]:
    """`read_at(offset, size)` over the file at a path or URL; it gives fewer bytes only at its end.

    Raises InputError where the file is absent or cannot be read, UsageError where reading such
    URLs needs a library that is not installed.
    """
    scheme = _scheme(path)
    if scheme in _HTTP:
        from cdxmill.storage import http

        return http.open_ranges(path)
    if scheme in _S3:
        from cdxmill.storage import s3

        return s3.open_ranges(path)
    return local.open_ranges(_local_path(path))


def file_size(path: str) -> int:
    """Bytes of the file at a path or URL; 0 where it cannot be told. A URL costs a request."""
    scheme = _scheme(path)
    if scheme in _HTTP:
        from cdxmill.storage import http

        return http.file_size(path)
    if scheme in _S3:
        from cdxmill.storage import s3

        return s3.file_size(path)
    try:
        return local.file_size(_local_path(path))
    except InputError:
        return 0


def total_size(paths: Iterable[str]) -> int:
    """Bytes of all files; 0, for it cannot be told soon, where one is behind a network.

    Thousands of requests before the first byte is read are more than a progress bar is worth.
    """
    total = 0
    for path in paths:
        if _is_remote(path):
            return 0
        total += file_size(path)
    return total


def is_newer(output: Path, source: str) -> bool:
    """Whether `output` stands and was written after `source`, a path or URL.

    What is behind a network is taken as it is: archives are not rewritten there, and asking
    for each would make a rerun slow. An output of it that stands is a finished one.
    """
    if _is_remote(source):
        return output.exists()
    try:
        return local.is_newer(output, _local_path(source))
    except InputError:
        return False


def check_libraries(paths: Iterable[str]) -> None:
    """Raise UsageError where reading one of `paths` needs a library that is not installed."""
    if any(_scheme(path) in _S3 for path in paths):
        from cdxmill.storage import s3

        s3.require()


def _scheme(path: str) -> str:
    match = _URL.match(path)
    return match[1].lower() if match else ""


def _is_remote(path: str) -> bool:
    return _scheme(path) not in ("", "file")


def _local_path(path: str) -> str:
    """The path that a path or file URL names. Raises InputError for other URLs (RFC 8089)."""
    scheme = _scheme(path)
    if not scheme:
        return path
    if scheme != "file":
        raise InputError(path, f"{scheme}:// cannot be read", "name a path, or a file, http(s) or s3 URL")
    host, slash, rest = path.partition("://")[2].partition("/")
    if host.lower() not in _THIS_MACHINE or not slash:
        raise InputError(path, "is not a file of this machine", "write file:///PATH")
    return os.fsdecode(b"/" + unquote_to_bytes(os.fsencode(rest)))
