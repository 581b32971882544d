"""Objects of S3 and of servers that speak it: boto3's chain of credentials, endpoints and regions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

from cdxmill.errors import InputError, UsageError
from cdxmill.storage.patience import TRIES, Tries, TryAgain

INSTALL = "reading s3:// needs boto3: pip install 'cdxmill[s3]'"
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


def require() -> None:
    """Raise UsageError where boto3 is not installed."""
    try:
        import boto3  # type: ignore[import-untyped]  # noqa: F401 - an extra, and slow to import
    except ImportError:
        raise UsageError(INSTALL) from None


class _Object:
    """An object as it is now; later states of it are refused."""

    def __init__(self, url: str) -> None:
        require()
        self._url = url
        bucket, _, key = url.partition("://")[2].partition("/")
        if not bucket or not key:
            raise InputError(url, *_NO_OBJECT)
        self._place = {"Bucket": bucket, "Key": key}
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
def _faults(url: str) -> Iterator[None]:
    """What boto3 raises once it has tried often enough becomes InputError."""
    from botocore import exceptions as foreign

    try:
        yield
    except foreign.ClientError as error:
        raise _refused(url, error.response) from None
    except (foreign.ConnectionError, foreign.HTTPClientError):
        reason = f"did not answer (no connection) after {TRIES} tries"
        raise InputError(url, reason, "run it again") from None
    except foreign.ParamValidationError:
        raise InputError(url, *_NO_OBJECT) from None
    except (foreign.BotoCoreError, ValueError) as error:
        raise InputError(url, f"cannot be read ({' '.join(str(error).split())})") from None


def _refused(url: str, response: dict[str, Any]) -> InputError:
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    if status == 429 or status >= 500:
        tries = response["ResponseMetadata"].get("RetryAttempts", 0) + 1
        return InputError(url, f"did not answer ({status}) after {tries} tries", "run it again")
    error = response.get("Error", {})
    name = error.get("Code", "")
    name = (
        error.get("Message", "") if name == str(status) else name
    )  # answers to HEAD have no body to name it
    return InputError(url, f"cannot be read ({f'{status} {name}'.strip()})", _HINTS.get(status, ""))
