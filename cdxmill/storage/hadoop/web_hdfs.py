"""The client of WebHDFS: it asks the active name node, and moves bytes to and from data nodes."""

from __future__ import annotations

import getpass
import json
import os
from typing import IO, Any
from urllib.parse import quote, urlencode

from urllib3 import BaseHTTPResponse

from cdxmill.errors import InputError, OutageError, RefusedError, UsageError, absent
from cdxmill.storage import hosts
from cdxmill.storage.hadoop.site import parts_of, web_addresses
from cdxmill.storage.patience import BUSY, TryAgain, persistently, refusal
from cdxmill.storage.reach import Reach
from cdxmill.storage.web.connections import RefusedPlace, checked_pools, faults, give_back, send, small_body

_LARGEST, _LARGEST_ERROR = 256 << 20, 1 << 20
"""Bytes of the largest answer of a name node: the list of a directory with a million files; and of an error."""
_WAITING = frozenset(("StandbyException", "RetriableException", "SafeModeException"))
"""Exceptions of a name node that is in standby or not ready."""
_NO_NODE = ("Failed to find datanode", "Could not obtain block", "could only be written to 0 of")
"""In answers, which are 403, if no data node that has a copy, or that has space for one, runs."""
_ADDRESS_HINT = "set HADOOP_CONF_DIR, or CDXMILL_WEBHDFS=http://HOST:PORT"
_SECURED_HINT = "set HADOOP_CONF_DIR, so that hadoop fs is used"
_UNAUTHORIZED = 401


class WebHdfs:
    """The name nodes of one file system, asked as one user. Forked processes must not share it."""

    def __init__(self, authority: str) -> None:
        self._addresses = web_addresses(authority)
        self._host = f"hdfs://{authority}"
        self._active = 0
        self._user = _user_name()
        self._pool = checked_pools(Reach.NETWORK, num_pools=8, maxsize=16)

    def ask(self, url: str, method: str, op: str, **parameters: str) -> dict[str, Any]:
        """The JSON that a name node answers to `op` for the file at `url`. Raises InputError after all tries."""
        return persistently(url, lambda: self.ask_once(url, method, op, **parameters))

    def ask_once(self, url: str, method: str, op: str, **parameters: str) -> dict[str, Any]:
        """As `ask`, with one try. Raises TryAgain if no name node answers, InputError."""
        answer = self._ask_names(url, method, op, **parameters)
        data = small_body(url, answer, _LARGEST)
        try:
            found = json.loads(data) if data else {}
            if isinstance(found, dict):
                return found
            raise ValueError
        except (ValueError, RecursionError):
            raise InputError(url, "the answer is not WebHDFS", _ADDRESS_HINT) from None

    def open(self, url: str, offset: int, length: int) -> BaseHTTPResponse:
        """An answer with this range as its unread body. Raises TryAgain, InputError."""
        answer = self._ask_names(url, "GET", "OPEN", offset=str(offset), length=str(length))
        return answer if answer.status == 200 else self._redirected(url, "GET", answer)

    def create(self, url: str, file: IO[bytes], **parameters: str) -> None:
        """Write `file` to `url`; an existing file is replaced. Raises TryAgain, InputError."""
        answer = self._ask_names(url, "PUT", "CREATE", overwrite="true", **parameters)
        give_back(self._redirected(url, "PUT", answer, file))

    def _ask_names(self, url: str, method: str, op: str, **parameters: str) -> BaseHTTPResponse:
        """The answer of the name node that answered last time, or of the next one that answers."""
        query = urlencode({"op": op, "user.name": self._user, **parameters}, errors="surrogateescape")
        target = f"/webhdfs/v1{quote(os.fsencode(parts_of(url)[1]))}?{query}"
        for left in reversed(range(len(self._addresses))):
            try:
                return self._send(url, method, self._addresses[self._active] + target)
            except TryAgain:
                self._active = (self._active + 1) % len(self._addresses)
                if not left:
                    raise
        raise AssertionError("a file system has at least one name node")

    def _redirected(
        self, url: str, method: str, answer: BaseHTTPResponse, file: IO[bytes] | None = None
    ) -> BaseHTTPResponse:
        """The answer of the data node that the name node's `answer` points to."""
        give_back(answer)
        location = answer.headers.get("Location")
        if location is None:
            raise InputError(url, "the answer is not WebHDFS", _ADDRESS_HINT)
        return self._send(url, method, location, file)

    def _send(self, url: str, method: str, location: str, file: IO[bytes] | None = None) -> BaseHTTPResponse:
        address = "/".join(location.split("/")[:3])
        headers = {"Content-Type": "application/octet-stream"}
        if file is not None:
            headers["Content-Length"] = str(file.seek(0, os.SEEK_END))
            file.seek(0)
        try:
            with faults(url):
                answer = send(self._pool, method, location, headers, file)
        except RefusedPlace as place:
            reason = f"{address} has the link-local address {place}, which is not allowed"
            raise InputError(url, reason) from None
        except TryAgain as failure:
            raise TryAgain(f"{failure.reason}: {address}", host=self._host) from None
        except InputError as error:  # an unknown host may be one of two name nodes
            if len(self._addresses) > 1:
                raise TryAgain(f"{error.reason}: {address}") from None
            raise OutageError(url, f"{error.reason}: {address}", _ADDRESS_HINT) from None
        if answer.status >= 400:
            raise _refusal(url, answer, address, self._host)
        hosts.answered(self._host)  # a data node that is away is waited for as long as the file system works
        return answer


def _user_name() -> str:
    """The user that asks HDFS: in a task the one who started the job, not the one that the node runs it as."""
    given = os.environ.get("HADOOP_USER_NAME") or os.environ.get("mapreduce_job_user_name")  # noqa: SIM112
    try:
        return given or getpass.getuser()
    except (KeyError, OSError):  # in containers a user may have no name
        raise UsageError("HDFS needs a user: set HADOOP_USER_NAME") from None


def _refusal(url: str, answer: BaseHTTPResponse, address: str, host: str) -> Exception:
    """The error for an answer: TryAgain if another try or name node may help, else an InputError."""
    try:
        data = small_body(url, answer, _LARGEST_ERROR)
        remote = json.loads(data)["RemoteException"]
        name, message = str(remote["exception"]), str(remote["message"]).partition("\n")[0][:200]
    except (ValueError, LookupError, TypeError, RecursionError, InputError):
        name, message = "", ""
    if name in _WAITING or answer.status in BUSY or any(text in message for text in _NO_NODE):
        return TryAgain(f"{name or answer.status}: {address}", host=host)
    if answer.status == _UNAUTHORIZED and not name:  # a page of Hadoop's login filter
        return RefusedError(url, f"{address} wants a login, as with Kerberos (401)", _SECURED_HINT)
    if not name:
        text = f"{answer.status} {answer.reason or ''}".strip()
        return OutageError(url, f"{address} is not a WebHDFS server ({text})", _ADDRESS_HINT)
    if name == "FileNotFoundException":
        return absent(url)
    reason = f"refused ({answer.status} {name}: {message})"
    if name.endswith("QuotaExceededException"):
        return RefusedError(url, reason, "free space there, or raise the quota")
    return refusal(url, answer.status, reason, "check the path")
