"""WebHDFS: asks a name node, of several the one that is active, and moves bytes to and from data nodes.

Own requests over urllib3, and not a client library: waits, the change from one name node to the other,
and the check for cut answers are those of http, and tasks of Hadoop need nothing else installed.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlencode

import urllib3
from urllib3 import BaseHTTPResponse

from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.storage.hdfs_site import web_addresses
from cdxmill.storage.http_faults import faults
from cdxmill.storage.http_file import TIMEOUT
from cdxmill.storage.patience import Tries, TryAgain
from cdxmill.storage.statuses import BUSY, error_type

Result = TypeVar("Result")

_WAITING = frozenset(("StandbyException", "RetriableException", "SafeModeException"))
"""What a name node says that is not, or not yet, the one to ask."""
_HINTS = {401: "check its rights", 403: "check its rights", 404: "check the path"}
_ADDRESS_HINT = "set HADOOP_CONF_DIR, or CDXMILL_WEBHDFS=http://HOST:PORT"
_HEADERS = {
    "Accept-Encoding": "identity",
    "Content-Type": "application/octet-stream",
    "User-Agent": "cdxmill",
}


class WebHdfs:
    """The name nodes of one file system, asked as one user. A process has its own: forks must not share it."""

    def __init__(self, authority: str) -> None:
        self.addresses = web_addresses(authority)
        self._active = 0
        self._user = os.environ.get("HADOOP_USER_NAME") or _login_name()
        self._pool = urllib3.PoolManager(num_pools=8, maxsize=16, timeout=TIMEOUT)

    def ask(self, url: str, method: str, path: str, op: str, **parameters: str) -> dict[str, Any]:
        """What a name node answers to `op`, as JSON. Raises InputError after all tries."""
        return persistently(url, lambda: self.ask_once(url, method, path, op, **parameters))

    def ask_once(self, url: str, method: str, path: str, op: str, **parameters: str) -> dict[str, Any]:
        """As `ask`, in one try. Raises TryAgain where no name node answers, InputError."""
        answer = self._ask_names(url, method, path, op, parameters)
        with faults(url):
            data = answer.data
        try:
            return json.loads(data) if data else {}
        except ValueError:
            raise InputError(url, "what answers is no WebHDFS", _ADDRESS_HINT) from None

    def open(self, url: str, path: str, offset: int, length: int) -> BaseHTTPResponse:
        """An answer whose body, still to read, is this range. Raises TryAgain, InputError."""
        answer = self._ask_names(url, "GET", path, "OPEN", {"offset": str(offset), "length": str(length)})
        return answer if answer.status == 200 else self._redirected(url, "GET", answer, None)

    def create(self, url: str, path: str, file: IO[bytes]) -> None:
        """Write `file` to `path`, over what is there. Raises TryAgain, InputError."""
        size = str(file.seek(0, os.SEEK_END))
        answer = self._ask_names(url, "PUT", path, "CREATE", {"overwrite": "true"})
        file.seek(0)
        self._redirected(url, "PUT", answer, file, {"Content-Length": size}).drain_conn()

    def _ask_names(
        self, url: str, method: str, path: str, op: str, parameters: dict[str, str]
    ) -> BaseHTTPResponse:
        """The answer of the name node that answered last, else of the next that does."""
        query = urlencode({"op": op, "user.name": self._user, **parameters})
        place = f"/webhdfs/v1{quote(os.fsencode(path))}?{query}"
        for left in range(len(self.addresses) - 1, -1, -1):
            address = self.addresses[self._active]
            try:
                return self._send(url, method, address + place, address, None)
            except TryAgain:
                self._active = (self._active + 1) % len(self.addresses)
                if not left:
                    raise
        raise AssertionError("there is a name node")

    def _redirected(
        self,
        url: str,
        method: str,
        answer: BaseHTTPResponse,
        body: IO[bytes] | None,
        headers: dict[str, str] | None = None,
    ) -> BaseHTTPResponse:
        """The answer of the data node that the name node's `answer` points to."""
        answer.drain_conn()
        place = answer.headers.get("Location")
        if place is None:
            raise InputError(url, "what answers is no WebHDFS", _ADDRESS_HINT)
        return self._send(url, method, place, "/".join(place.split("/")[:3]), body, headers)

    def _send(
        self,
        url: str,
        method: str,
        place: str,
        address: str,
        body: IO[bytes] | None,
        headers: dict[str, str] | None = None,
    ) -> BaseHTTPResponse:
        try:
            with faults(url):
                answer = self._pool.request(
                    method,
                    place,
                    body=body,
                    headers={**_HEADERS, **(headers or {})},
                    preload_content=False,
                    decode_content=False,
                    redirect=False,
                    retries=False,
                )
        except TryAgain as failure:
            raise TryAgain(f"{failure.reason}: {address}") from None
        except InputError as error:  # a host that is not known: it may be one of two
            if len(self.addresses) > 1:
                raise TryAgain(f"{error.reason}: {address}") from None
            raise InputError(url, f"{error.reason}: {address}", _ADDRESS_HINT) from None
        if answer.status >= 400:
            raise _refusal(url, answer, address)
        return answer


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have it
        raise UsageError("HDFS needs a user: set HADOOP_USER_NAME") from None


def persistently(url: str, attempt: Callable[[], Result]) -> Result:
    """The result of `attempt`, made again where it raises TryAgain. Raises InputError after all tries."""
    tries = Tries(url)
    while True:
        try:
            return attempt()
        except TryAgain as failure:
            tries.failed(failure, 0)


def _refusal(url: str, answer: BaseHTTPResponse, address: str) -> Exception:
    """TryAgain where another try, or another name node, may help; else what the user is told."""
    with faults(url):
        data = answer.data
    try:
        told = json.loads(data)["RemoteException"]
        name, message = str(told["exception"]), str(told["message"]).partition("\n")[0][:200]
    except (ValueError, LookupError, TypeError):
        name, message = "", ""
    if name in _WAITING or answer.status in BUSY:
        return TryAgain(f"{name or answer.status}: {address}")
    if not name:
        reason = f"{address} is no WebHDFS ({answer.status} {answer.reason or ''})".replace(" )", ")")
        return InputError(url, reason, _ADDRESS_HINT)
    if name == "FileNotFoundException":
        return AbsentError(url, "cannot be read (no such file)", _HINTS[404])
    reason = f"is refused ({answer.status} {name}: {message})"
    return error_type(answer.status)(url, reason, _HINTS.get(answer.status, ""))
