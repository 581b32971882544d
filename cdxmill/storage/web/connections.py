"""Connections to web servers, kept open and shared by all files that a process reads; the bodies and errors of their answers.

A connection to an address that its reach does not allow (reach.py) is closed before anything is sent. The address
is that of the open connection: a name that resolves to another address each time gains nothing.
"""

from __future__ import annotations

import io
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from http.client import HTTPResponse
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3 import BaseHTTPResponse, exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    HTTPError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    SSLError,
)

from cdxmill.errors import InputError
from cdxmill.storage.hosts import user_agent
from cdxmill.storage.patience import Pace, TryAgain, patience, timeouts
from cdxmill.storage.reach import Reach, is_internal, is_refused, literal_address, resolves_inside

_SERVERS = 16
"""Servers to which connections are kept: those asked last. Others are closed, but no request under way."""
_PER_SERVER = 16
"""Connections kept to one server, as `location.ask_all` sends 16 requests at a time. Further ones are closed after use."""
_LATER = 1.0
"""Seconds after patience at which headers are given up: an earlier timeout says what happened."""
_HEADERS = {
    "Accept-Encoding": "identity",  # offsets are those of the stored file
}
_PROXY_VARIABLES = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUEST_METHOD"
)  # fmt: skip
_inside: dict[str, bool] = {}
"""Hosts by name: whether all connections to them went to internal addresses."""
_BODY_PIECE = 1 << 16
"""Bytes that are read from a body at once. At most this much is lost and requested again."""
_SHORT = 1 << 14
"""Bytes. An unwanted body up to this size is read, which takes less time than a new connection."""
_SOON = 1.0
"""Seconds. An unwanted body that takes longer is not read to its end."""
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (NameResolutionError, "the host name cannot be resolved"),
    (ProxyError, "no connection through the proxy"),
    (NewConnectionError, "no connection"),
    (exceptions.TimeoutError, "timed out"),
    (TimeoutError, "timed out"),
    (SSLError, "no TLS connection"),
)

_UNREACHABLE = (NameResolutionError, ProxyError, NewConnectionError, exceptions.ConnectTimeoutError)


class RefusedPlace(Exception):
    """The address of a host is not one to which content may lead."""


def connections(url: str, reach: Reach) -> urllib3.PoolManager:
    """The connections to use for `url`, through a proxy if the environment says so (HTTP_PROXY, NO_PROXY).

    Raises RefusedPlace if `url` has an address that `reach` does not allow.
    """
    literal = literal_address(url)
    if literal is not None and is_refused(literal, reach):
        raise RefusedPlace(literal)
    parts = urlsplit(url)
    proxy = _proxy(parts.scheme, parts.netloc, *map(os.environ.get, _PROXY_VARIABLES))
    return _manager(os.getpid(), proxy, reach)


def send(
    pools: urllib3.PoolManager, method: str, url: str, headers: dict[str, str], body: IO[bytes] | None = None
) -> urllib3.BaseHTTPResponse:
    """Send one request: no redirect is followed, and no try repeated. The body of the answer is unread.

    Raises RefusedPlace, and the errors of urllib3.
    """
    connect, read = timeouts()
    return pools.request(
        method,
        url,
        headers={**_HEADERS, "User-Agent": user_agent(), **headers},
        body=body,
        preload_content=False,
        decode_content=False,
        timeout=urllib3.Timeout(connect=connect, read=read),
        redirect=False,
        retries=False,
    )


@lru_cache(maxsize=64)
def _proxy(scheme: str, host: str, *environment: str | None) -> str | None:
    """The proxy to use. To ask for it takes as long as a request on this machine; the environment hardly changes."""
    proxy = getproxies().get(scheme)
    return proxy if proxy and not proxy_bypass(host) else None


def is_own(url: str) -> bool:
    """Whether connections to the host of `url` went to internal addresses. False before the first, and through a proxy."""
    literal = literal_address(url)
    return _is_internal(literal) if literal is not None else _inside.get(urlsplit(url).hostname or "", False)


_is_internal = lru_cache(maxsize=64)(is_internal)


def is_inside(url: str) -> bool:
    """Whether the host of `url` has an internal address: that of its connections, if there were any."""
    literal = literal_address(url)
    if literal is not None:
        return is_internal(literal)
    host = urlsplit(url).hostname or ""
    known = _inside.get(host)
    return resolves_inside(host) if known is None else known


@lru_cache(maxsize=8)
def _manager(process: int, proxy: str | None, reach: Reach) -> urllib3.PoolManager:
    """The connections of one process: a forked process must not use those of its parent."""
    options: dict[str, Any] = {"num_pools": _SERVERS, "maxsize": _PER_SERVER}
    if proxy is None:
        return checked_pools(reach, **options)
    secret = urllib3.util.parse_url(proxy).auth
    headers = urllib3.make_headers(proxy_basic_auth=secret) if secret else None
    return urllib3.ProxyManager(proxy, proxy_headers=headers, **options)


def checked_pools(reach: Reach, **options: Any) -> urllib3.PoolManager:
    """A pool manager whose connections go only to addresses that `reach` allows, and answer within patience."""
    plain = type("_Http", (_Checked,), {"reach": reach})
    tls = type("_Https", (_Checked, HTTPSConnection), {"reach": reach})
    pools = urllib3.PoolManager(**options)
    pools.pool_classes_by_scheme = {
        "http": type("_Pool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("_PoolTls", (HTTPSConnectionPool,), {"ConnectionCls": tls}),
    }
    return pools


class _Reads(io.RawIOBase):
    """The reads of a socket until a time, if there is one. No thread watches them: forks and threads do not mix."""

    def __init__(self, sock: socket.socket, reads: io.RawIOBase) -> None:
        self._sock, self._reads = sock, reads
        self.end: float | None = time.monotonic() + patience() + _LATER

    def readinto(self, buffer: Any) -> int | None:
        if self.end is None:
            return self._reads.readinto(buffer)
        timeout, left = self._sock.gettimeout(), self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left if timeout is None else min(left, timeout))
        try:
            return self._reads.readinto(buffer)
        finally:
            self._sock.settimeout(timeout)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._reads.fileno()

    def close(self) -> None:
        self._reads.close()
        super().close()


class _Answer(HTTPResponse):
    """An answer whose headers must arrive within patience: the timeout is for each byte of them."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self._reads = _Reads(sock, self.fp.detach())
        self.fp = io.BufferedReader(self._reads)

    def begin(self) -> None:
        super().begin()
        self._reads.end = None


class _Checked(HTTPConnection):
    """A connection to an address that its reach allows. Others raise RefusedPlace before anything is sent."""

    reach = Reach.ANYWHERE
    response_class = _Answer

    def _new_conn(self) -> socket.socket:
        opened = super()._new_conn()
        address = str(opened.getpeername()[0])
        _inside[self.host] = _inside.get(self.host, True) and is_internal(address)
        if is_refused(address, self.reach):
            opened.close()
            raise RefusedPlace(address)
        return opened


class faults:  # noqa: N801 - used as a function
    """Turn errors of urllib3 into TryAgain if another try may help, else into InputError. `host` gets the connection.

    A class, as a generator would take longer: it is used for each piece of a file.
    """

    def __init__(self, url: str, host: str = "") -> None:
        self._url, self._host = url, host

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *trace: object) -> None:
        if not isinstance(error, (HTTPError, OSError, ValueError)):
            return
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        final = _final_reason(cause)
        if final is not None:
            raise InputError(self._url, *final) from None
        trouble = next((text for kind, text in _REASONS if isinstance(cause, kind)), "connection lost")
        raise TryAgain(trouble, host=self._host if isinstance(cause, _UNREACHABLE) else "") from None


def pieces_of(url: str, answer: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the body as it is stored: servers set Content-Encoding for .gz files, so it must not be decoded.

    Raises TryAgain if the connection breaks or the body arrives too slowly.
    """
    pace = Pace()
    while piece := piece_of(url, answer, _BODY_PIECE):
        pace.arrived(len(piece))
        yield piece


def piece_of(url: str, answer: BaseHTTPResponse, size: int) -> bytes:
    """The bytes of the body that have arrived, at most `size`; b"" at its end. Raises TryAgain."""
    with faults(url):
        return answer.read1(min(size, _BODY_PIECE), decode_content=False)


def small_body(url: str, answer: BaseHTTPResponse, most: int) -> bytes:
    """The whole body. Raises InputError if it has more than `most` bytes, TryAgain as `pieces_of`."""
    data = bytearray()
    for piece in pieces_of(url, answer):
        data += piece
        if len(data) > most:
            answer.close()
            raise InputError(url, f"the answer has more than {most} bytes")
    return bytes(data)


def give_back(answer: BaseHTTPResponse) -> None:
    """End an answer whose body is not wanted. The connection is kept if the rest of the body is short."""
    left, end = _SHORT, time.monotonic() + _SOON
    with suppress(HTTPError, OSError):
        while left > 0 and time.monotonic() < end and (piece := answer.read1(left, decode_content=False)):
            left -= len(piece)
    answer.close()


def _final_reason(error: Exception) -> tuple[str, str] | None:
    """The reason and hint of an error that no other try can mend; None for all others."""
    if isinstance(error, NameResolutionError) and _is_unknown(error.__cause__ or error.__context__):
        return "unknown host", "check the URL"
    if isinstance(error, SSLError) and isinstance(error.args[0], ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid ({error.args[0].verify_message})", ""
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return f"is not a valid URL ({' '.join(str(error).split())})", "check the URL"
    return None


def _is_unknown(reason: BaseException | None) -> bool:
    return isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
