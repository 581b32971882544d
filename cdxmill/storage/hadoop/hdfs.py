"""Files of HDFS, through WebHDFS."""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from typing import IO, Any, NamedTuple

from urllib3 import BaseHTTPResponse

from cdxmill.errors import AbsentError, InputError, StoppedError
from cdxmill.storage.entry import Entry
from cdxmill.storage.hadoop.webhdfs import WebHdfs
from cdxmill.storage.local.files import TEMPORARY, spooled
from cdxmill.storage.patience import Pace, Tries, TryAgain, persistently
from cdxmill.storage.web.answers import piece_of


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open the file at `url`: `read_at(offset, size)` returns fewer bytes only at the end of the file.

    Raises AbsentError or RefusedError if it cannot be read. Raises InputError, here, from `read_at` or at the
    end, if HDFS does not answer after all tries or the file changes while it is read. Raises UsageError if
    the address of the name node is unknown.
    """
    file = _File(url)
    with closing(file):
        yield file.read_at
        file.check_unchanged()


def file_size(url: str) -> int:
    """The size of a file in bytes; 0 if it is unknown."""
    try:
        return _File(url).size
    except InputError:
        return 0


@contextmanager
def write_atomic(url: str) -> Iterator[IO[bytes]]:
    """Write a file that gets its name only when it is complete. Its folder is created. Raises StoppedError."""
    with spooled() as file:
        yield file
        try:
            _put(url, file)
        except InputError as error:
            raise StoppedError(f"{url}: cannot be written: {error.reason}; {error.hint}") from None


def status(url: str) -> Entry | None:
    """The size and time of a file or folder; None if it does not exist. Raises InputError."""
    client, path = _locate(url)
    try:
        return _entry(client.ask(url, "GET", path, "GETFILESTATUS")["FileStatus"])
    except AbsentError:
        return None


def list_folder(url: str) -> dict[str, Entry]:
    """The entries of a folder by name; none if it does not exist. Raises InputError."""
    client, path = _locate(url)
    try:
        found = client.ask(url, "GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
    except AbsentError:
        return {}
    return {one["pathSuffix"]: _entry(one) for one in found if one["pathSuffix"]}


def remove(url: str) -> None:
    """Delete a file, or an empty directory, if it exists. Raises StoppedError."""
    _remove(url)


def remove_tree(url: str) -> None:
    """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError."""
    _remove(url, recursive="true")


def _remove(url: str, **parameters: str) -> None:
    client, path = _locate(url)
    try:
        client.ask(url, "DELETE", path, "DELETE", **parameters)
    except InputError as error:
        raise StoppedError(str(error)) from None


def move(url: str, target: str) -> None:
    """Rename a file or directory; it replaces a file or an empty directory at `target`. Raises StoppedError."""
    client, path = _locate(url)
    try:
        _rename(client, target, path, _locate(target)[1])
    except InputError as error:
        raise StoppedError(str(error)) from None


def same_location(one: str, other: str) -> bool:
    """Whether two URLs are the same file or folder."""
    locations = [(client.addresses, path) for client, path in map(_locate, (one, other))]
    return locations[0] == locations[1]


class _Answer(NamedTuple):
    """A body whose next byte is the file's byte `pos`, and which ends before byte `end`."""

    body: BaseHTTPResponse
    pos: int
    end: int


class _File:
    """A file in its present version. Reads in sequence share one answer, which lasts up to the end of the file."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client, self._path = _locate(url)
        self._status = self._ask()
        if self._status["type"] != "FILE":
            raise InputError(url, "is a directory", "name a file, or a directory with archives")
        self.size: int = self._status["length"]
        self._last = -1
        self._unread: list[_Answer] = []

    def close(self) -> None:
        """Close all answers that are still open."""
        while self._unread:
            self._unread.pop().body.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, in as many requests as it takes."""
        data = bytearray()
        tries = Tries(self._url)
        end = min(offset + size, self.size)
        while offset + len(data) < end:
            before = len(data)
            try:
                self._read(offset + before, end - offset - before, data)
            except TryAgain as failure:
                tries.failed(failure, len(data) - before)
        return bytes(data)

    def check_unchanged(self) -> None:
        """Raise InputError if the file has another id, time or size than before; HDFS has no versions."""
        now = self._ask()
        if any(now[name] != self._status[name] for name in ("fileId", "modificationTime", "length")):
            raise InputError(self._url, "has changed while it was read", "run it again")

    def _ask(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.ask(self._url, "GET", self._path, "GETFILESTATUS")["FileStatus"]
        return found

    def _read(self, offset: int, size: int, data: bytearray) -> None:
        answer = self._answer_at(offset, size)
        missing = size
        try:
            pace = Pace()
            while missing and (piece := piece_of(self._url, answer.body, missing)):
                data += piece
                missing -= len(piece)
                pace.arrived(len(piece))
        finally:
            self._last = offset + size - missing
            if missing or self._last == answer.end:
                answer.body.close()
            else:
                self._unread.append(answer._replace(pos=self._last))
        if missing:
            raise TryAgain("connection lost")

    def _answer_at(self, offset: int, size: int) -> _Answer:
        with suppress(IndexError):
            while True:  # threads may share a file: each answer is taken by one of them
                answer = self._unread.pop()
                if answer.pos == offset and offset + size <= answer.end:
                    return answer
                answer.body.close()
        end = self.size if offset == self._last else offset + size
        return _Answer(self._client.open(self._url, self._path, offset, end - offset), offset, end)


def _put(url: str, file: IO[bytes]) -> None:
    """Upload `file` under a temporary name, then rename it. Each attempt has its own temporary name."""
    client, path = _locate(url)
    folder, name = posixpath.split(path)
    temporary = f"{folder.rstrip('/')}/.{name}.{uuid.uuid4().hex}{TEMPORARY}"
    try:
        persistently(url, lambda: client.create(url, temporary, file))
        _rename(client, url, temporary, path)
    except BaseException:
        with suppress(InputError, TryAgain):
            client.ask_once(url, "DELETE", temporary, "DELETE")
        raise


def _rename(client: WebHdfs, url: str, source: str, path: str) -> None:
    """Rename `source` to `path`, which is `url`. Raises InputError."""
    tries = 0

    def once() -> bool:
        nonlocal tries
        tries += 1
        try:
            answer = client.ask_once(
                url, "PUT", source, "RENAME", destination=path, renameoptions="OVERWRITE"
            )
        except AbsentError:
            if tries > 1 and status(url) is not None:  # a try whose answer was lost has done it
                return True
            raise
        return bool(answer.get("boolean", True))

    if not persistently(url, once):
        raise InputError(
            url, "nothing could be renamed to this name", "check the directory, then run it again"
        )


def _entry(found: dict[str, Any]) -> Entry:
    return Entry(found["length"], found["modificationTime"] / 1000, found["type"] == "DIRECTORY")


def _locate(url: str) -> tuple[WebHdfs, str]:
    """The client for a URL, and the path in its file system."""
    authority, slash, path = url.partition("://")[2].partition("/")
    if not slash:
        raise InputError(url, "the URL has no path", "use hdfs://[HOST[:PORT]]/PATH")
    return _client(os.getpid(), authority), posixpath.normpath("/" + path.lstrip("/"))


@lru_cache(maxsize=8)
def _client(process: int, authority: str) -> WebHdfs:
    """The client of one process: a forked process must not use the connections of its parent."""
    return WebHdfs(authority)
