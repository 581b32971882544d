"""Objects of S3 and compatible services, with boto3: its credentials, endpoints and regions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import IO, Any

from cdxmill.errors import AbsentError, InputError, RefusedError
from cdxmill.storage import hosts
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import spooled
from cdxmill.storage.patience import (
    DOWNLOAD,
    TRIES,
    Pace,
    TryAgain,
    persistently,
    read_range,
    timeouts,
)
from cdxmill.storage.s3_errors import FORBIDDEN, NO_OBJECT, body_errors, one_try, stops_run
from cdxmill.storage.s3_etag import PART, etag_of

_BODY_PIECE = 1 << 16
_COPIED_PART = 256 << 20
"""S3 copies parts at the same time, and each in one request; a part of a copy may have up to 5 GiB."""
_STAMP, _TAG = "cdxmill", "cdxmill-etag"
"""The keys in the metadata of an object: of the stamp, and of the ETag that its content gets when it is uploaded."""
_NOT_MET, _CONFLICT, _REFUSED = 412, 409, 501
"""Answers to a conditional PUT: the condition is not met; another PUT is under way; the service has no such conditions."""


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
        with stops_run(url):
            persistently(url, lambda: _upload(url, file, target, more))


def _upload(url: str, file: IO[bytes], target: dict[str, str], more: dict[str, Any]) -> None:
    """Upload a whole file once. boto3 itself repeats its parts, and closes what it has uploaded."""
    from boto3.s3.transfer import TransferConfig  # type: ignore[import-untyped]

    parts = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
    with os.fdopen(os.dup(file.fileno()), "rb") as copy, one_try(url, "written"):
        copy.seek(0)
        _client(os.getpid()).upload_fileobj(copy, **target, **more, Config=parts)


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
        with one_try(url, "written"):
            return _put_if(target, data, condition)

    with stops_run(url):
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
    wanted = {"Bucket": _split(url)[0], "Prefix": prefix, "Delimiter": delimiter}
    while True:
        page = _asked(url, "listed", "list_objects_v2", **wanted)
        yield page
        if not page.get("IsTruncated"):
            return
        wanted["ContinuationToken"] = page["NextContinuationToken"]


def _asked(url: str, doing: str, operation: str, **wanted: Any) -> Any:
    """The answer to a small request. Raises InputError after all tries."""

    def attempt() -> Any:
        with one_try(url, doing):
            return getattr(_client(os.getpid(), 1), operation)(**wanted)

    return persistently(url, attempt)


def prefix_of(url: str) -> str:
    """How the keys below the directory `url` start."""
    key = _split(url)[1].rstrip("/")
    return f"{key}/" if key else ""


def remove(url: str) -> None:
    """Delete an object if it exists. Raises StoppedError."""
    with stops_run(url):
        _asked(url, "deleted", "delete_object", **_bucket_and_key(url))


def remove_tree(url: str) -> None:
    """Delete the object at `url` and all objects below it, 1000 with each request. Raises StoppedError."""
    remove(url)
    with stops_run(url):
        for page in list_pages(url, prefix_of(url)):
            keys = [{"Key": item["Key"]} for item in page.get("Contents", ())]
            if not keys:
                continue
            wanted = {"Objects": keys, "Quiet": True}
            answer = _asked(url, "deleted", "delete_objects", Bucket=_split(url)[0], Delete=wanted)
            if kept := answer.get("Errors"):
                raise InputError(url, f"cannot be deleted ({kept[0].get('Code')}: {kept[0].get('Key')})")


def move(url: str, target: str) -> None:
    """Copy an object inside of S3, in parts if it is large, and delete it. Raises StoppedError."""
    from boto3.s3.transfer import TransferConfig

    source, copy = _bucket_and_key(url), _bucket_and_key(target)
    parts = TransferConfig(multipart_threshold=_COPIED_PART, multipart_chunksize=_COPIED_PART)

    def attempt() -> None:
        with one_try(target, "written"):
            _client(os.getpid()).copy(source, **copy, Config=parts)

    with stops_run(target):
        persistently(target, attempt)
    remove(url)


class _Object:
    """An object in its present version. Reads fail when it changes."""

    def __init__(self, url: str) -> None:
        self._url, self._target = url, _bucket_and_key(url)
        try:
            head = _head(url, self._target)
        except RefusedError:
            hosts.refused(hosts.host_of(url), url, FORBIDDEN)
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
        with one_try(self._url):
            answer = _client(os.getpid(), 1).get_object(**self._target, Range=f"bytes={first}-{last}")
        with closing(answer["Body"]) as body, body_errors():
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
        with one_try(url):
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
        raise InputError(url, *NO_OBJECT)
    return {"Bucket": bucket, "Key": key}


@lru_cache(maxsize=2)
def _client(process: int, tries: int = TRIES) -> Any:
    """The client of one process, as forks must not share it. Reads ask for one try, and count and show their tries.

    Without credentials, requests are unsigned, as for public buckets.
    """
    import boto3  # type: ignore[import-untyped]
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
