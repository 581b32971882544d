"""Files of HDFS, through WebHDFS: a client that asks the active name node, and moves bytes to and from data nodes.

It uses urllib3 and no client library: so it has the same waits and checks for truncated answers as HTTP files,
it can switch from one name node to another, and Hadoop tasks need no further package.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

from urllib3 import BaseHTTPResponse

from cdxmill.errors import AbsentError, InputError
from cdxmill.storage.hadoop.site import STAMP, parts_of
from cdxmill.storage.hadoop.web_hdfs import WebHdfs
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import spooled, temporary_name
from cdxmill.storage.patience import Pace, TryAgain, persistently, read_range, stops
from cdxmill.storage.web.connections import piece_of


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open a file (see `Location.open_ranges`). Raises UsageError if the address of the name node is unknown."""
    with closing(_File(url)) as file:
        yield file.read_at
        file.check_unchanged()


@contextmanager
def write_atomic(url: str, stamp: Callable[[], str] | None = None) -> Iterator[IO[bytes]]:
    """Write a file that gets its name only when it is complete. Its directory is created. Raises StoppedError.

    Its stamp is an extended attribute, which it has before it gets its name. HDFS may be set up without them.
    """
    with spooled() as file:
        yield file
        put(file, url, stamp() if stamp else "")


def put(
    file: IO[bytes], url: str, stamp: str = "", *, is_private: bool = False, replace: bool = True
) -> bool:
    """Write the content of an open file, as `write_atomic` does. A private file may be read by its owner only.

    Without `replace`, False if the file exists already.
    """
    permission = {"permission": "600"} if is_private else {}
    with stops(url, "written"):
        directory, name = posixpath.split(url)
        temporary = f"{directory}/{temporary_name(name)}"
        try:
            persistently(url, lambda: _create(temporary, file, **permission))
            if stamp:
                given = {"xattr.name": STAMP, "xattr.value": f'"{stamp}"', "flag": "CREATE"}
                _attributes(temporary, "PUT", "SETXATTR", **given)
            if _rename(temporary, url, replace=replace):
                return True
        except BaseException:
            _drop(temporary)
            raise
    _drop(temporary)
    return False


def _drop(temporary: str) -> None:
    with suppress(InputError, TryAgain):
        _client_of(temporary).ask_once(temporary, "DELETE", "DELETE")


def swap(url: str, known: bytes | None, data: bytes) -> bool:
    """Write a small file (see `Location.swap`). A file with a known content is read, compared and replaced, in two steps."""
    if known is not None and _content(url, len(known) + 1) != known:
        return False
    return put(BytesIO(data), url, replace=known is not None)


def _content(url: str, size: int) -> bytes | None:
    try:
        with open_ranges(url) as read_at:
            return read_at(0, size)
    except AbsentError:
        return None


def upload(paths: Sequence[Path], url: str) -> None:
    """Copy files of this machine into a directory, each as `put` does. Raises StoppedError, OSError."""
    for path in paths:
        with path.open("rb") as file:
            put(file, f"{url.rstrip('/')}/{path.name}")


def make(url: str) -> None:
    """Create a directory and those above it, unless it exists. Raises StoppedError."""
    with stops(url, "created"):
        _client_of(url).ask(url, "PUT", "MKDIRS")


def status(url: str) -> Entry | None:
    """The size and time of a file or directory. None if it does not exist. Raises InputError."""
    try:
        return _entry(_status(url))
    except AbsentError:
        return None


def stamped(url: str) -> tuple[Entry | None, str]:
    """The size and time of a file, None if it does not exist, and its stamp. Raises InputError."""
    entry = status(url)
    if entry is None:
        return None, ""
    found = _attributes(url, "GET", "GETXATTRS", encoding="text").get("XAttrs", ())
    return entry, next((one["value"].strip('"') for one in found if one["name"] == STAMP), "")


def list_directory(url: str) -> dict[str, Entry]:
    """The entries of a directory by name. Empty if it does not exist. Raises InputError."""
    try:
        found = _client_of(url).ask(url, "GET", "LISTSTATUS")["FileStatuses"]["FileStatus"]
    except AbsentError:
        return {}
    return {one["pathSuffix"]: _entry(one) for one in found if one["pathSuffix"]}


def remove(url: str, **parameters: str) -> None:
    """Delete a file, or an empty directory, if it exists. Raises StoppedError."""
    with stops(url, "deleted"):
        _client_of(url).ask(url, "DELETE", "DELETE", **parameters)


def remove_tree(url: str) -> None:
    """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError."""
    remove(url, recursive="true")


def move(url: str, target: str) -> None:
    """Rename a file or directory; it replaces a file or an empty directory at `target`. Raises StoppedError."""
    with stops(url, "renamed"):
        _rename(url, target, replace=True)


def copy_mode(url: str, target: str) -> None:
    """Give a directory the access rights of another one, if that exists. Raises StoppedError."""
    with stops(target, "given access rights"):
        try:
            permission = _status(url)["permission"]
        except AbsentError:
            return
        _client_of(target).ask(target, "PUT", "SETPERMISSION", permission=permission)


def check(url: str) -> None:
    """Ask once, whatever the rights. Raises InputError if WebHDFS does not answer, UsageError if its address is unknown."""
    try:
        _client_of(url).ask_once(url, "GET", "GETHOMEDIRECTORY")
    except TryAgain as failure:
        raise InputError(url, failure.reason) from None


class _FileBody(NamedTuple):
    """A body whose next byte is the file's byte `pos`, and which ends before byte `end`."""

    body: BaseHTTPResponse
    pos: int
    end: int


class _File:
    """A file in its present version. Reads in sequence share one answer, which lasts up to the end of the file."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._status = _status(url)
        if self._status["type"] != "FILE":
            raise InputError(url, "is a directory", "name a file, or a directory with archives")
        self._size: int = self._status["length"]
        self._last = -1
        self._unread: list[_FileBody] = []

    def close(self) -> None:
        while self._unread:
            self._unread.pop().body.close()

    def read_at(self, offset: int, size: int) -> bytes:
        end = min(offset + size, self._size)
        return read_range(self._url, offset, end, lambda first, data: self._read(first, end - first, data))

    def check_unchanged(self) -> None:
        """Raise InputError if the file has another id, time or size than before; HDFS has no versions."""
        now = _status(self._url)
        if any(now[name] != self._status[name] for name in ("fileId", "modificationTime", "length")):
            raise InputError(self._url, "has changed while it was read", "run it again")

    def _read(self, offset: int, size: int, data: bytearray) -> bool:
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
        return True

    def _answer_at(self, offset: int, size: int) -> _FileBody:
        with suppress(IndexError):
            while True:  # threads may share a file: each answer is taken by one of them
                answer = self._unread.pop()
                if answer.pos == offset:
                    return answer
                answer.body.close()
        end = self._size if offset == self._last else offset + size
        return _FileBody(_client_of(self._url).open(self._url, offset, end - offset), offset, end)


def _create(url: str, file: IO[bytes], **permission: str) -> None:
    _client_of(url).create(url, file, **permission)
    if _status(url)["length"] != file.seek(0, os.SEEK_END):
        raise TryAgain("the file was not written completely")


def _attributes(url: str, method: str, op: str, **parameters: str) -> dict[str, Any]:
    """The answer to an operation on extended attributes; {} if it is refused: HDFS may be set up without them.

    It is refused, too, to set one again after a try whose answer was lost. Raises InputError if no name node answers.
    """

    def once() -> dict[str, Any]:
        try:
            return _client_of(url).ask_once(url, method, op, **parameters)
        except InputError:
            return {}

    return persistently(url, once)


def _rename(url: str, target: str, *, replace: bool) -> bool:
    """Rename a file or directory. False if the target exists, without `replace`. Raises InputError, which names the target."""
    tries = 0

    def once() -> bool:
        nonlocal tries
        tries += 1
        place = parts_of(target)[1]
        try:
            parameters = {"destination": place, **({"renameoptions": "OVERWRITE"} if replace else {})}
            answer = _client_of(url).ask_once(url, "PUT", "RENAME", **parameters)
        except AbsentError:
            if tries > 1 and status(target) is not None:  # a try whose answer was lost has done it
                return True
            raise
        return bool(answer.get("boolean", True))

    is_done = persistently(target, once)
    if not is_done and replace:
        hint = "check the directory, then run it again"
        raise InputError(target, "HDFS does not rename to this name", hint)
    return is_done


def _status(url: str) -> dict[str, Any]:
    found: dict[str, Any] = _client_of(url).ask(url, "GET", "GETFILESTATUS")["FileStatus"]
    return found


def _entry(found: dict[str, Any]) -> Entry:
    time = found["modificationTime"]
    return Entry(found["length"], time / 1000, found["type"] == "DIRECTORY", str(time))


def _client_of(url: str) -> WebHdfs:
    return _client(os.getpid(), parts_of(url)[0])


@lru_cache(maxsize=8)
def _client(process: int, authority: str) -> WebHdfs:
    """The client of one process: a forked process must not use the connections of its parent."""
    return WebHdfs(authority)
