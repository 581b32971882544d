"""Files of HDFS through WebHDFS, with Python's standard library alone, because nodes have nothing else.

A `hadoop fs` command starts a JVM, which takes seconds of CPU time. It is used only where WebHDFS cannot
be: on clusters with Kerberos or TLS, and for other file systems.
"""

from __future__ import annotations

import getpass
import json
import os
import posixpath
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import IO, Any, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.storage.hadoop.site import web_addresses, why_no_web_hdfs

TIMEOUT = 60
"""Seconds that an answer may take."""
_BLOCK = 1 << 18
"""Bytes of a file that are sent at once. http.client would send 8 KiB."""
_WAITS = (0.5, 1, 2, 4, 8, 16)
"""Seconds before each further try."""
_NOT_READY = ("StandbyException", "RetriableException", "SafeModeException")
_LOST = (OSError, HTTPException)
_OK, _REDIRECT, _REFUSED = 200, 307, 400

Result = TypeVar("Result")


class NoWebHdfsError(Exception):
    """WebHDFS cannot be used here. The text is the reason."""


class NodeHdfs:
    """A file system as a task uses it. Raises NoWebHdfsError if it does not answer to WebHDFS."""

    def __init__(self, authority: str) -> None:
        try:
            reason = why_no_web_hdfs()
            self._addresses = web_addresses(authority)
        except UsageError as error:
            raise NoWebHdfsError(str(error)) from None
        if reason:
            raise NoWebHdfsError(reason)
        try:
            self.ask("GET", "/", "GETFILESTATUS", tries=1)
        except AbsentError:
            pass
        except InputError as error:
            if not error.reason.startswith("AccessControlException"):
                raise NoWebHdfsError(error.reason) from None

    def ask(self, method: str, path: str, op: str, tries: int = 7, **parameters: str) -> dict[str, Any]:
        """The JSON that a name node answers. Raises AbsentError, InputError."""

        def once() -> dict[str, Any]:
            answer, connection = self._names(method, path, op, **parameters)
            with connection:
                found: dict[str, Any] = json.loads(answer.read() or b"{}")
                return found

        return _persistently(path, once, tries)

    def create(self, path: str, file: IO[bytes], **parameters: str) -> None:
        """Write `file` to `path`. An existing file is replaced, and the folder is created. Raises InputError."""

        def once() -> None:
            file.seek(0)
            answer, connection = self._redirected("PUT", path, "CREATE", file, overwrite="true", **parameters)
            with connection:
                answer.read()

        _persistently(path, once)
        size = file.seek(0, os.SEEK_END)
        if self.ask("GET", path, "GETFILESTATUS")["FileStatus"]["length"] != size:
            raise InputError(path, "was not written completely", "run the job again")

    def open(self, path: str) -> HdfsFile:
        """Open a file. Raises AbsentError, InputError."""
        return HdfsFile(self, path)

    def read_from(self, path: str, offset: int) -> tuple[HTTPResponse, _Connection]:
        """An answer that gives the file from `offset` on. Raises OSError, HTTPException, InputError."""
        return self._redirected("GET", path, "OPEN", None, offset=str(offset))

    def _redirected(
        self, method: str, path: str, op: str, body: IO[bytes] | None, **parameters: str
    ) -> tuple[HTTPResponse, _Connection]:
        answer, connection = self._names(method, path, op, **parameters)
        with connection:
            location = answer.headers.get("Location", "")
        if answer.status != _REDIRECT or not location:
            raise InputError(path, "the answer is not WebHDFS")
        place = urlsplit(location)
        return _send(method, place.netloc, f"{place.path}?{place.query}", path, body)

    def _names(self, method: str, path: str, op: str, **parameters: str) -> tuple[HTTPResponse, _Connection]:
        """The answer of the first name node that is active."""
        query = urlencode({"op": op, "user.name": user_name(), **parameters})
        target = f"/webhdfs/v1{quote(os.fsencode(path))}?{query}"
        for address in self._addresses[:-1]:
            try:
                return _send(method, urlsplit(address).netloc, target, path, None)
            except _LOST:
                continue
        return _send(method, urlsplit(self._addresses[-1]).netloc, target, path, None)


class HdfsFile:
    """A file that is read from start to end. A lost connection is opened again where it ended."""

    def __init__(self, hdfs: NodeHdfs, path: str) -> None:
        found = hdfs.ask("GET", path, "GETFILESTATUS")["FileStatus"]
        if found["type"] != "FILE":
            raise InputError(path, "is a directory")
        self.size: int = found["length"]
        self._hdfs, self._path, self._pos = hdfs, path, 0
        self._answer: tuple[HTTPResponse, _Connection] | None = None

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end of the file. Raises InputError."""
        if self._pos >= self.size:
            self.close()
            return b""
        return _persistently(self._path, lambda: self._read(size))

    def close(self) -> None:
        """Close the connection."""
        if self._answer is not None:
            self._answer[1].close()
            self._answer = None

    def _read(self, size: int) -> bytes:
        if self._answer is None:
            self._answer = self._hdfs.read_from(self._path, self._pos)
        try:
            data = self._answer[0].read(min(size, self.size - self._pos))
            if not data:
                raise ConnectionResetError("connection lost")
        except _LOST:
            self.close()
            raise
        self._pos += len(data)
        return data


def web_hdfs(authority: str, tell: Callable[[str], object] = sys.stderr.write) -> NodeHdfs | None:
    """The file system by WebHDFS; None, after a message, if only `hadoop fs` can be used."""
    try:
        return NodeHdfs(authority)
    except NoWebHdfsError as error:
        tell(f"cdxmill: note: {error}; hadoop fs is used instead of WebHDFS, which takes longer\n")
        return None


def user_name() -> str:
    """The user that asks HDFS: in a task the one who started the job, not the one that the node runs it as."""
    environ = os.environ
    given = environ.get("HADOOP_USER_NAME") or environ.get("mapreduce_job_user_name")
    return given or getpass.getuser()


def hdfs_path(url: str) -> tuple[str, str]:
    """The HOST:PORT of an hdfs URL, and the path in its file system.

    >>> hdfs_path("hdfs://names:8020/a//b"), hdfs_path("hdfs:///a"), hdfs_path("hdfs:/a")  # Hadoop drops an empty host
    (('names:8020', '/a/b'), ('', '/a'), ('', '/a'))
    """
    parts = urlsplit(url.replace("%", "%25").replace("?", "%3F").replace("#", "%23"))
    return parts.netloc, posixpath.normpath("/" + unquote(parts.path).lstrip("/"))


class _Connection(HTTPConnection):
    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _send(
    method: str, host: str, target: str, path: str, body: IO[bytes] | None
) -> tuple[HTTPResponse, _Connection]:
    connection = _Connection(host, timeout=TIMEOUT, blocksize=_BLOCK)
    headers = {"Content-Type": "application/octet-stream"}
    if body is not None:
        headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        if answer.status >= _REFUSED:
            raise _refusal(path, answer)
    except BaseException:
        connection.close()
        raise
    return answer, connection


def _refusal(path: str, answer: HTTPResponse) -> Exception:
    """The error for an answer: an OSError if another try or name node may help."""
    try:
        remote = json.loads(answer.read(1 << 16))["RemoteException"]
        name, message = str(remote["exception"]), str(remote["message"]).partition("\n")[0]
    except (ValueError, LookupError, TypeError):
        return InputError(path, f"the answer is not WebHDFS ({answer.status} {answer.reason})")
    if name in _NOT_READY:
        return ConnectionError(name)
    if name == "FileNotFoundException":
        return AbsentError(path, "cannot be read (no such file)", "check the path")
    return InputError(path, f"{name}: {message}")


def _persistently(path: str, do: Callable[[], Result], tries: int = len(_WAITS) + 1) -> Result:
    """The result of `do`, tried again if the connection is lost. Raises InputError."""
    for wait in _WAITS[: tries - 1]:
        try:
            return do()
        except _LOST:
            time.sleep(wait)
    try:
        return do()
    except _LOST as error:
        raise InputError(path, f"HDFS does not answer ({error})", "run the job again") from None
    except ValueError as error:
        raise InputError(path, f"the answer is not WebHDFS ({error})") from None
