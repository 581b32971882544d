"""Objects of S3 and compatible services, with boto3: its credentials, endpoints and regions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import IO, Any

from cdxmill.errors import AbsentError, InputError, RefusedError, StoppedError, UsageError
from cdxmill.storage import hosts
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import spooled
from cdxmill.storage.patience import (
    BUSY,
    DOWNLOAD,
    OVERLOADED,
    TRIES,
    Pace,
    TryAgain,
    persistently,
    read_range,
    refusal,
    timeouts,
    wait_for_turn,
)
from cdxmill.storage.s3_etag import PART, etag_of
from cdxmill.version import install_extra

INSTALL = f"s3:// needs boto3: {install_extra('s3')}"
_BODY_PIECE = 1 << 16
_COPIED_PART = 256 << 20
"""S3 copies parts at the same time, and each in one request; a part of a copy may have up to 5 GiB."""
_STAMP, _TAG = "cdxmill", "cdxmill-etag"
"""The keys in the metadata of an object: of the stamp, and of the ETag that its content gets when it is uploaded."""
_NOT_MET, _CONFLICT, _REFUSED = 412, 409, 501
"""Answers to a conditional PUT: the condition is not met; another PUT is under way; the service has no such conditions."""
_FORBIDDEN = 403
"""The answer for an object that may not be read, and, without the right to list, for a missing one."""
_NO_OBJECT = "the URL has no bucket or no key", "use s3://BUCKET/KEY"


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open an object (see `Location.open_ranges`)."""
    yield _Object(url).read_at


@contextmanager
def write_atomic(url: str, stamp: Callable[[], str] | None = None) -> Iterator[IO[bytes]]:
    """Write a file that is uploaded when it is complete: with one PUT, or in parts. None is left if that fails.

    Its stamp is in its metadata, so both appear at once.
    """
    target = _bucket_and_key(url)
    with spooled() as file:
        yield file
        file.seek(0)
        more: dict[str, Any] = {}
        if stamp:
            tag = etag_of(lambda offset, size: file.read(size))
            more = {"ExtraArgs": {"Metadata": {_STAMP: stamp(), _TAG: tag}}}
            file.seek(0)
        with _stops(url), _errors(url, "written"):
            from boto3.s3.transfer import TransferConfig  # type: ignore[import-untyped]

            parts = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
            _client(os.getpid()).upload_fileobj(file, **target, **more, Config=parts)


def swap(url: str, known: bytes | None, data: bytes) -> bool:
    """Write an object with a conditional PUT (see `Location.swap`). A service that refuses those gets a PUT without one."""
    target, condition = _bucket_and_key(url), {"IfNoneMatch": "*"}
    if known is not None:
        try:
            found = _Object(url)
            is_known = found.read_at(0, len(known) + 1) == known
        except AbsentError:
            return False
        if not is_known:
            return False
        condition = {"IfMatch": found.etag}

    def attempt() -> bool:
        with _one_try(url, "written"):
            return _put_if(target, data, condition)

    with _stops(url):
        return persistently(url, attempt)


def _put_if(target: dict[str, str], data: bytes, condition: dict[str, str]) -> bool:
    from botocore.exceptions import ClientError  # type: ignore[import-untyped]

    client = _client(os.getpid(), 1)
    try:
        client.put_object(**target, Body=data, **condition)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status == _CONFLICT:
            raise TryAgain(str(status)) from None
        if status == _REFUSED:
            client.put_object(**target, Body=data)
            return True
        # without the object, If-Match is answered by 404; so is any PUT without the bucket
        is_other = status == _NOT_MET or error.response["Error"].get("Code") == "NoSuchKey"
        if is_other:
            return False
        raise
    return True


def status(url: str) -> Entry | None:
    """The size and time of an object. None if it does not exist. Raises InputError."""
    return stamped(url)[0]


def stamped(url: str) -> tuple[Entry | None, str]:
    """The size and time of an object, None if it does not exist, and its stamp. Raises InputError.

    It is read if its ETag is another one than `write_atomic` expected: it was changed, or uploaded in other parts. With keys
    of KMS or of the customer, the ETag says nothing, and only the size can show a change.
    """
    try:
        head = _head(url, _bucket_and_key(url))
    except AbsentError:
        return None, ""
    entry, metadata = _entry(head), head.get("Metadata", {})
    tag = metadata.get(_TAG, entry.tag)
    is_sealed = head.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in head
    if tag != entry.tag and not is_sealed and tag != etag_of(_Object(url).read_at):
        return entry, ""
    return entry, metadata.get(_STAMP, "")


def look(url: str, size: int) -> tuple[Entry, bytes]:
    """The entry of an object, and its first `size` bytes; b"" if they cannot be read. Raises InputError."""
    found = _Object(url)
    try:
        return found.entry, found.read_at(0, size)
    except InputError:
        return found.entry, b""


def list_directory(url: str) -> dict[str, Entry]:
    """The objects and directories directly below `url`, by name; an object wins over a directory. Raises InputError."""
    prefix = prefix_of(url)
    found: dict[str, Entry] = {}
    for page in list_pages(url, prefix, "/"):
        for directory in page.get("CommonPrefixes", ()):
            found.setdefault(directory["Prefix"][len(prefix) : -1], Entry(0, 0, is_directory=True))
        for item in page.get("Contents", ()):
            found[item["Key"][len(prefix) :]] = _entry({**item, "ContentLength": item["Size"]})
    found.pop("", None)  # an object that some tools create for the directory itself
    return found


def list_pages(url: str, prefix: str, delimiter: str = "") -> Iterator[dict[str, Any]]:
    """Yield the pages of a listing: the keys in the bucket of `url` that start with `prefix`. Raises InputError."""
    with _errors(url):
        pages = _client(os.getpid()).get_paginator("list_objects_v2")
        yield from pages.paginate(Bucket=_split(url)[0], Prefix=prefix, Delimiter=delimiter)


def prefix_of(url: str) -> str:
    """How the keys below the directory `url` start."""
    key = _split(url)[1].rstrip("/")
    return f"{key}/" if key else ""


def remove(url: str) -> None:
    """Delete an object if it exists. Raises StoppedError."""
    target = _bucket_and_key(url)
    with _stops(url), _errors(url, "deleted"):
        _client(os.getpid()).delete_object(**target)


def remove_tree(url: str) -> None:
    """Delete the object at `url` and all objects below it, 1000 with each request. Raises StoppedError."""
    remove(url)
    with _stops(url), _errors(url, "deleted"):
        for page in list_pages(url, prefix_of(url)):
            keys = [{"Key": item["Key"]} for item in page.get("Contents", ())]
            if not keys:
                continue
            wanted = {"Objects": keys, "Quiet": True}
            kept = _client(os.getpid()).delete_objects(Bucket=_split(url)[0], Delete=wanted).get("Errors")
            if kept:
                raise InputError(url, f"cannot be deleted ({kept[0].get('Code')}: {kept[0].get('Key')})")


def move(url: str, target: str) -> None:
    """Copy an object inside of S3, in parts if it is large, and delete it. Raises StoppedError."""
    source, copy = _bucket_and_key(url), _bucket_and_key(target)
    with _stops(target), _errors(target, "written"):
        from boto3.s3.transfer import TransferConfig

        parts = TransferConfig(multipart_threshold=_COPIED_PART, multipart_chunksize=_COPIED_PART)
        _client(os.getpid()).copy(source, **copy, Config=parts)
    remove(url)


def require() -> None:
    """Raise UsageError if boto3 is not installed."""
    try:
        import boto3  # type: ignore[import-untyped]  # noqa: F401 - an extra, and slow to import
    except ImportError:
        raise UsageError(INSTALL) from None


class _Object:
    """An object in its present version. Reads fail when it changes."""

    def __init__(self, url: str) -> None:
        self._url, self._target = url, _bucket_and_key(url)
        try:
            head = _head(url, self._target)
        except RefusedError:
            hosts.refused(hosts.host_of(url), url, _FORBIDDEN)
            raise
        if "ContentLength" not in head:
            raise InputError(url, "the server does not report the size", DOWNLOAD)
        self.size: int = head["ContentLength"]
        self.entry = _entry(head)
        self.etag: str = head.get("ETag", "")

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, in as many requests as it takes."""
        end = min(offset + size, self.size)
        return read_range(self._url, offset, end, lambda first, data: self._read(first, end - 1, data))

    def _read(self, first: int, last: int, data: bytearray) -> bool:
        before = len(data)
        with _one_try(self._url):
            answer = _client(os.getpid(), 1).get_object(**self._target, Range=f"bytes={first}-{last}")
        with closing(answer["Body"]) as body, _body_errors():
            self._check(answer, first, last)
            pace = Pace()
            while piece := body._raw_stream.read1(_BODY_PIECE):  # StreamingBody.read waits for a full piece
                data += piece
                pace.arrived(len(piece))
        gained = len(data) - before
        del data[before + last + 1 - first :]
        if gained < last + 1 - first:
            raise TryAgain("connection lost")
        return True

    def _check(self, answer: dict[str, Any], first: int, last: int) -> None:
        """Raise InputError if the object has changed or the range is wrong: some servers ignore ranges."""
        if answer.get("ETag", "") != self.etag:
            raise InputError(self._url, "has changed while it was read", "run it again")
        got = answer.get("ContentRange", "no Content-Range")
        if got != f"bytes {first}-{last}/{self.size}":
            reason = f"the server answers a request for bytes {first}-{last} with {got}"
            raise InputError(self._url, reason, DOWNLOAD)
        length = answer.get("ContentLength", last + 1 - first)
        if length != last + 1 - first:
            raise TryAgain(f"the server sent {length} bytes for {got}")


def _head(url: str, target: dict[str, str]) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        with _one_try(url):
            found: dict[str, Any] = _client(os.getpid(), 1).head_object(**target)
            return found

    return persistently(url, attempt)


def _entry(head: dict[str, Any]) -> Entry:
    time = head["LastModified"].timestamp() if "LastModified" in head else 0
    return Entry(head.get("ContentLength", 0), time, tag=head.get("ETag", "").strip('"'))


def _split(url: str) -> tuple[str, str]:
    bucket, _, key = url.partition("://")[2].partition("/")
    return bucket, key


def _bucket_and_key(url: str) -> dict[str, str]:
    bucket, key = _split(url)
    if not bucket or not key:
        raise InputError(url, *_NO_OBJECT)
    return {"Bucket": bucket, "Key": key}


@lru_cache(maxsize=2)
def _client(process: int, tries: int = TRIES) -> Any:
    """The client of one process, as forks must not share it. Reads ask for one try, and count and show their tries.

    Without credentials, requests are unsigned, as for public buckets.
    """
    require()
    import boto3
    from botocore import UNSIGNED  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]

    session = boto3.session.Session()
    connect, read = timeouts(tries)
    retries = {"mode": "adaptive", "total_max_attempts": tries}
    agent = hosts.user_agent()
    config = Config(retries=retries, connect_timeout=connect, read_timeout=read, user_agent_extra=agent)
    if session.get_credentials() is None:
        config = config.merge(Config(signature_version=UNSIGNED))
    return session.client("s3", config=config)


@contextmanager
def _body_errors() -> Iterator[None]:
    """Turn errors while a body is read into TryAgain. boto3 itself repeats only the request."""
    from botocore.exceptions import BotoCoreError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (BotoCoreError, HTTPError, OSError):
        raise TryAgain("connection lost") from None


@contextmanager
def _one_try(url: str, doing: str = "read") -> Iterator[None]:
    """Turn errors of boto3 into TryAgain if another try may help, else into InputError.

    Nothing is read from a bucket that was given up: UntriedError.
    """
    require()
    from botocore import exceptions as foreign

    host = hosts.host_of(url)
    if doing == "read":
        wait_for_turn(url, host)
    with _errors(url, doing):
        try:
            yield
        except foreign.ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status not in BUSY:
                if status != _FORBIDDEN:
                    hosts.answered(host)
                raise
            raise TryAgain(str(status), host=host if status in OVERLOADED else "") from None
        except (foreign.ReadTimeoutError, foreign.ConnectTimeoutError) as error:
            is_host = isinstance(error, foreign.ConnectTimeoutError)
            raise TryAgain("timed out", host=host if is_host else "") from None
        except (foreign.ConnectionError, foreign.HTTPClientError) as error:
            is_host = isinstance(error, foreign.EndpointConnectionError)
            raise TryAgain("no connection", host=host if is_host else "") from None
    hosts.answered(host)


@contextmanager
def _stops(url: str) -> Iterator[None]:
    """Turn InputError into StoppedError: a run cannot continue if its output cannot be written."""
    try:
        yield
    except InputError as error:
        raise StoppedError(str(error)) from None


@contextmanager
def _errors(url: str, doing: str = "read") -> Iterator[None]:
    """Turn the errors that boto3 raises after its last try into InputError."""
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
    if name == str(status):  # the answer to HEAD has no body with a name
        name = error.get("Message", "")
    reason = f"cannot be {doing} ({f'{status} {name}'.strip()})"
    return refusal(url, status, reason, "check the bucket and the key")
