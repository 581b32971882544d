"""Objects of S3 and of servers that speak it: boto3's chain of credentials, endpoints and regions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import IO, Any

from cdxmill.errors import AbsentError, InputError, StoppedError, UsageError
from cdxmill.storage.entry import Entry
from cdxmill.storage.local import spooled
from cdxmill.storage.patience import TRIES, Tries, TryAgain
from cdxmill.storage.statuses import error_type

INSTALL = "s3:// needs boto3: pip install 'cdxmill[s3]'"
_PIECE = 1 << 16
_TIMEOUTS = {"connect_timeout": 20, "read_timeout": 60}
"""Seconds, as for HTTP."""
_NO_OBJECT = "names no object", "write s3://BUCKET/KEY"
_HINTS = {403: "check its rights", 404: "check the bucket and the key"}


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """`read_at(offset, size)` over the object at `url`; it gives fewer bytes only at its end.

    Raises InputError, at once or from `read_at`, where it is absent or refused, where S3 does
    not answer after all tries, and where the object changes meanwhile; UsageError without boto3.
    """
    yield _Object(url).read_at


def file_size(url: str) -> int:
    """Bytes of the object at `url`; 0 where it cannot be told."""
    try:
        return _Object(url).size
    except InputError:
        return 0


@contextmanager
def write_atomic(url: str) -> Iterator[IO[bytes]]:
    """A file that becomes the object at `url` once it is whole: one PUT, or a completed multipart upload.

    Raises StoppedError where it cannot be written; nothing of it is left then.
    """
    place = _place(url)
    with spooled() as file:
        yield file
        file.seek(0)
        with _stops(url), _faults(url, "written"):
            _client(os.getpid()).upload_fileobj(file, **place)


def status(url: str) -> Entry | None:
    """Size and time of the object at `url`; None where there is none. Raises InputError."""
    place = _place(url)
    try:
        with _faults(url):
            head = _client(os.getpid()).head_object(**place)
    except AbsentError:
        return None
    return Entry(head["ContentLength"], head["LastModified"].timestamp())


def list_folder(url: str) -> dict[str, Entry]:
    """Objects and folders right below `url`, by name. Raises InputError."""
    bucket, prefix = _split(url)
    prefix = f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""
    found: dict[str, Entry] = {}
    with _faults(url):
        pages = _client(os.getpid()).get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
            for folder in page.get("CommonPrefixes", ()):
                found[folder["Prefix"][len(prefix) : -1]] = Entry(0, 0, is_folder=True)
            for item in page.get("Contents", ()):
                found[item["Key"][len(prefix) :]] = Entry(item["Size"], item["LastModified"].timestamp())
    found.pop("", None)  # the folder itself, as some tools mark it
    return found


def remove(url: str) -> None:
    """Delete the object at `url` where there is one. Raises StoppedError."""
    place = _place(url)
    with _stops(url), _faults(url, "deleted"):
        _client(os.getpid()).delete_object(**place)


def require() -> None:
    """Raise UsageError where boto3 is not installed."""
    try:
        import boto3  # type: ignore[import-untyped]  # noqa: F401 - an extra, and slow to import
    except ImportError:
        raise UsageError(INSTALL) from None


class _Object:
    """An object as it is now; later states of it are refused."""

    def __init__(self, url: str) -> None:
        self._url, self._place = url, _place(url)
        with _faults(url):
            self._client = _client(os.getpid())
            head = self._client.head_object(**self._place)
        if "ContentLength" not in head:
            raise InputError(url, "the server does not tell the size", "fetch the file, then index it")
        self.size: int = head["ContentLength"]
        self._etag = head.get("ETag")

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, in as many requests as it takes."""
        data = bytearray()
        tries = Tries(self._url)
        end = min(offset + size, self.size)
        while offset + len(data) < end:
            before = len(data)
            try:
                self._read(offset + before, end - 1, data)
            except TryAgain as failure:
                tries.failed(failure, len(data) - before)
        return bytes(data)

    def _read(self, first: int, last: int, data: bytearray) -> None:
        before = len(data)
        with _faults(self._url):
            answer = self._client.get_object(**self._place, Range=f"bytes={first}-{last}")
        with closing(answer["Body"]) as body, _cuts():
            self._check(answer, first, last)
            for piece in body.iter_chunks(_PIECE):
                data += piece
        if len(data) - before < last + 1 - first:
            raise TryAgain("the connection was cut")

    def _check(self, answer: dict[str, Any], first: int, last: int) -> None:
        """The object is still the same, and the range the one asked for: some servers heed none."""
        if answer.get("ETag") != self._etag:
            raise InputError(self._url, "has changed while it was read", "run it again")
        got = answer.get("ContentRange", "no Content-Range")
        if got != f"bytes {first}-{last}/{self.size}":
            reason = f"the server answers a request for bytes {first}-{last} with {got}"
            raise InputError(self._url, reason, "fetch the file, then index it")


def _split(url: str) -> tuple[str, str]:
    """Bucket and key."""
    bucket, _, key = url.partition("://")[2].partition("/")
    return bucket, key


def _place(url: str) -> dict[str, str]:
    bucket, key = _split(url)
    if not bucket or not key:
        raise InputError(url, *_NO_OBJECT)
    return {"Bucket": bucket, "Key": key}


@lru_cache(maxsize=1)
def _client(process: int) -> Any:
    """The client of a process: making one takes as long as fetching megabytes; forks must not share it.

    Public buckets are read unsigned where no credentials are to be found.
    """
    require()
    import boto3
    from botocore import UNSIGNED  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]

    session = boto3.session.Session()
    config = Config(retries={"mode": "adaptive", "total_max_attempts": TRIES}, **_TIMEOUTS)
    if session.get_credentials() is None:
        config = config.merge(Config(signature_version=UNSIGNED))
    return session.client("s3", config=config)


@contextmanager
def _cuts() -> Iterator[None]:
    """What boto3 raises while a body is read becomes TryAgain: it asks again only before that."""
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (BotoCoreError, HTTPError, OSError):
        raise TryAgain("the connection was cut") from None


@contextmanager
def _stops(url: str) -> Iterator[None]:
    """A run cannot go on where its output cannot be written."""
    try:
        yield
    except InputError as error:
        raise StoppedError(str(error)) from None


@contextmanager
def _faults(url: str, doing: str = "read") -> Iterator[None]:
    """What boto3 raises once it has tried often enough becomes InputError."""
    require()
    from boto3.exceptions import Boto3Error  # type: ignore[import-untyped]
    from botocore import exceptions as foreign

    try:
        yield
    except foreign.ClientError as error:
        raise _refused(url, error.response, doing) from None
    except (foreign.ConnectionError, foreign.HTTPClientError):
        reason = f"did not answer (no connection) after {TRIES} tries"
        raise InputError(url, reason, "run it again") from None
    except foreign.ParamValidationError:
        raise InputError(url, *_NO_OBJECT) from None
    except (foreign.BotoCoreError, Boto3Error, ValueError) as error:
        raise InputError(url, f"cannot be {doing} ({' '.join(str(error).split())})") from None


def _refused(url: str, response: dict[str, Any], doing: str) -> InputError:
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    if status == 429 or status >= 500:
        tries = response["ResponseMetadata"].get("RetryAttempts", 0) + 1
        return InputError(url, f"did not answer ({status}) after {tries} tries", "run it again")
    error = response.get("Error", {})
    name = error.get("Code", "")
    name = (
        error.get("Message", "") if name == str(status) else name
    )  # answers to HEAD have no body to name it
    return error_type(status)(
        url, f"cannot be {doing} ({f'{status} {name}'.strip()})", _HINTS.get(status, "")
    )
