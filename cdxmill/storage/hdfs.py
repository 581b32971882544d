"""Files of HDFS, by way of WebHDFS."""

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
from cdxmill.storage.http_faults import faults
from cdxmill.storage.local import TEMPORARY, spooled
from cdxmill.storage.patience import Tries, TryAgain
from cdxmill.storage.webhdfs import WebHdfs, persistently

_PIECE = 1 << 16


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """`read_at(offset, size)` over the file at `url`; it gives fewer bytes only at its end.

    Raises InputError, at once, from `read_at` or at the end, where the file is absent or refused, where HDFS
    does not answer after all tries, and where the file has changed meanwhile; UsageError where
    there is no telling which name node to ask.
    """
    file = _File(url)
    with closing(file):
        yield file.read_at
        file.check_unchanged()


def file_size(url: str) -> int:
    """Bytes of the file at `url`; 0 where it cannot be told."""
    try:
        return _File(url).size
    except InputError:
        return 0


@contextmanager
def write_atomic(url: str) -> Iterator[IO[bytes]]:
    """A file that stands at `url` only once it is whole; its folder is made. Raises StoppedError."""
    with spooled() as file:
        yield file
        try:
            _put(url, file)
        except InputError as error:
            raise StoppedError(f"{url}: cannot be written: {error.reason}; {error.hint}") from None


def status(url: str) -> Entry | None:
    """What is at `url`; None where nothing is. Raises InputError."""
    client, path = _place(url)
    try:
        return _entry(client.ask(url, "GET", path, "GETFILESTATUS")["FileStatus"])
    except AbsentError:
        return None


def list_folder(url: str) -> dict[str, Entry]:
    """What is in the folder at `url`, by name; nothing where there is none. Raises InputError."""
    client, path = _place(url)
    try:
        found = client.ask(url, "GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
    except AbsentError:
        return {}
    return {one["pathSuffix"]: _entry(one) for one in found if one["pathSuffix"]}


def remove(url: str) -> None:
    """Delete the file at `url` where there is one. Raises StoppedError."""
    client, path = _place(url)
    try:
        client.ask(url, "DELETE", path, "DELETE")
    except InputError as error:
        raise StoppedError(str(error)) from None


def same_place(one: str, other: str) -> bool:
    """Whether two URLs name one file or folder."""
    places = [(client.addresses, path) for client, path in map(_place, (one, other))]
    return places[0] == places[1]


class _Answer(NamedTuple):
    """A body that is read from `pos` on, and ends at `end`."""

    body: BaseHTTPResponse
    pos: int
    end: int


class _File:
    """A file as it is now. Who reads on from where the last read ended gets one answer up to the file's end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client, self._path = _place(url)
        self._status = self._ask()
        if self._status["type"] != "FILE":
            raise InputError(url, "is a folder", "name a file, or a folder with archives")
        self.size: int = self._status["length"]
        self._last = -1
        self._going_on: list[_Answer] = []

    def close(self) -> None:
        """Read no more."""
        while self._going_on:
            self._going_on.pop().body.close()

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
        """HDFS has no versions of a file, but each has an id, and a time."""
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
            with faults(self._url):
                while missing and (piece := answer.body.read(min(missing, _PIECE), decode_content=False)):
                    data += piece
                    missing -= len(piece)
        finally:
            self._last = offset + size - missing
            if missing or self._last == answer.end:
                answer.body.close()
            else:
                self._going_on.append(answer._replace(pos=self._last))
        if missing:
            raise TryAgain("the connection was cut")

    def _answer_at(self, offset: int, size: int) -> _Answer:
        with suppress(IndexError):
            while True:  # threads may share a file: what one has taken no other one has
                answer = self._going_on.pop()
                if answer.pos == offset and offset + size <= answer.end:
                    return answer
                answer.body.close()
        end = self.size if offset == self._last else offset + size
        return _Answer(self._client.open(self._url, self._path, offset, end - offset), offset, end)


def _put(url: str, file: IO[bytes]) -> None:
    """Each attempt writes under a name of its own, so that two at once do not meet."""
    client, path = _place(url)
    folder, name = posixpath.split(path)
    temporary = f"{folder.rstrip('/')}/.{name}.{uuid.uuid4().hex}{TEMPORARY}"
    try:
        persistently(url, lambda: client.create(url, temporary, file))
        _rename(client, url, temporary, path)
    except BaseException:
        with suppress(InputError, TryAgain):
            client.ask_once(url, "DELETE", temporary, "DELETE")
        raise


def _rename(client: WebHdfs, url: str, temporary: str, path: str) -> None:
    try:
        answer = client.ask(url, "PUT", temporary, "RENAME", destination=path, renameoptions="OVERWRITE")
    except AbsentError:  # done by a try whose answer was lost
        answer = {"boolean": status(url) is not None}
    if not answer.get("boolean", True):
        raise InputError(
            url, "the finished file could not be renamed to it", "look at its folder, run it again"
        )


def _entry(told: dict[str, Any]) -> Entry:
    return Entry(told["length"], told["modificationTime"] / 1000, told["type"] == "DIRECTORY")


def _place(url: str) -> tuple[WebHdfs, str]:
    authority, slash, path = url.partition("://")[2].partition("/")
    if not slash:
        raise InputError(url, "names no file", "write hdfs://[HOST[:PORT]]/PATH")
    return _client(os.getpid(), authority), posixpath.normpath("/" + path.lstrip("/"))


@lru_cache(maxsize=8)
def _client(process: int, authority: str) -> WebHdfs:
    return WebHdfs(authority)
