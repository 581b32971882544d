"""Requests for byte ranges over connections that are open: without most of what urllib3 does for each request.

    one write -> one read -> the head of a plain 206 -> the rest of its body

urllib3 opens each connection and sends the first request over it. Each answer that is not a plain 206 is left to urllib3,
with the bytes that were read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from http.client import HTTPException
from typing import Any

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPHeaderDict, HTTPResponse, PoolManager
from urllib3.connection import port_by_scheme
from urllib3.exceptions import LocationValueError, ProtocolError
from urllib3.poolmanager import PoolKey
from urllib3.util import parse_url

HEADERS = {
    "Accept-Encoding": "identity",  # offsets are those of the stored file
    "User-Agent": "cdxmill",
}
_PIECE = 1 << 16
_HEAD = re.compile(rb"HTTP/1\.1 206[^\r\n]*\r\n((?:[!-9;-~]+:[^\r\n]*\r\n)+)\r\n")
"""A complete head of the usual form."""
_LENGTH = re.compile(r"[0-9]{1,18}")


class RangeAnswer:
    """A plain 206. It has what `HttpFile` and its callers use of a response of urllib3; names of headers in lower case."""

    status, reason = 206, "Partial Content"

    def __init__(
        self, pool: HTTPConnectionPool, connection: Any, headers: dict[str, str], begun: bytes
    ) -> None:
        self.headers = headers
        self._pool, self._connection, self._begun = pool, connection, begun
        self._left = int(headers["content-length"])

    def get_redirect_location(self) -> None:
        """It leads nowhere else."""

    def read1(self, size: int, decode_content: bool = False) -> bytes:
        """The bytes of the body that have arrived, at most `size`; b"" at its end. Raises OSError."""
        size = min(size, self._left)
        if not size:
            return b""
        if self._begun:
            data, self._begun = self._begun[:size], self._begun[size:]
        elif not (data := self._connection.sock.recv(size)):
            raise ConnectionResetError("the body is truncated")
        self._left -= len(data)
        return data

    def close(self) -> None:
        """Give the connection back. If the body was not read to its end, the connection is closed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._left or self._begun:
                connection.close()
            self._pool._put_conn(connection)


Answer = BaseHTTPResponse | RangeAnswer


def exchange(pools: PoolManager, url: str, first: int, last: int, seconds: float) -> Answer | None:
    """Ask for the bytes from `first` to `last` over an open connection; None if there is none, or a proxy.

    `seconds` is the timeout of a read. Raises OSError, HTTPError.
    """
    if pools.proxy is not None:
        return None
    key, head = _place(pools, url)
    pool = pools.pools.get(key)
    if pool is None:
        return None
    connection: Any = pool._get_conn()
    try:
        if connection.sock is None:
            pool._put_conn(connection)
            return None
        if connection.sock.gettimeout() != seconds:
            connection.sock.settimeout(seconds)
        connection.sock.sendall(b"%bRange: bytes=%d-%d\r\n\r\n" % (head, first, last))
        begun = connection.sock.recv(_PIECE)
        headers, start = _plain_head(begun)
        if headers:
            return RangeAnswer(pool, connection, headers, begun[start:])
        return _other_answer(pool, connection, begun)
    except BaseException:
        connection.close()
        pool._put_conn(connection)
        raise


@lru_cache(maxsize=256)
def _place(pools: PoolManager, url: str) -> tuple[PoolKey, bytes]:
    """The key of the connections to the server of a URL, and the head of a request for the URL without its end.

    Not the connections: urllib3 closes those of the server that was not asked for longest, once nothing refers to them.
    """
    parts = parse_url(url)
    if parts.host is None:
        raise LocationValueError("No host specified.")  # as urllib3
    scheme = parts.scheme or "http"
    default = port_by_scheme[scheme]
    named = {"scheme": scheme, "host": parts.host, "port": parts.port or default}
    key = pools.key_fn_by_scheme[scheme](pools.connection_pool_kw | named)
    host = parts.host if parts.port in (None, default) else f"{parts.host}:{parts.port}"
    fields = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    return key, f"GET {parts.request_uri} HTTP/1.1\r\nHost: {host}\r\n{fields}".encode("ascii")


def _plain_head(begun: bytes) -> tuple[dict[str, str], int]:
    """The headers of a plain 206 and the start of its body; no headers if it is another answer, or its head has not all arrived."""
    found = _HEAD.match(begun)
    headers: dict[str, str] = {}
    if found is None:
        return headers, 0
    for line in found[1].decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    length = headers.get("content-length", "")
    stays_open = headers.get("connection", "keep-alive").lower() == "keep-alive"
    is_plain = stays_open and "transfer-encoding" not in headers and _LENGTH.fullmatch(length)
    return (headers if is_plain else {}), found.end()


def _other_answer(pool: HTTPConnectionPool, connection: Any, begun: bytes) -> BaseHTTPResponse:
    """The answer that begins with these bytes, as urllib3 makes it."""
    try:
        read = connection.response_class(connection.sock, method="GET", begun=begun)
        read.begin()
    except HTTPException as error:
        raise ProtocolError("Connection aborted.", error) from None
    if read.will_close:
        connection.close()
    return HTTPResponse(
        read,
        headers=HTTPHeaderDict(read.msg.items()),
        status=read.status,
        version=read.version,
        reason=read.reason,
        preload_content=False,
        decode_content=False,
        original_response=read,
        pool=pool,
        connection=connection,
        request_method="GET",
    )
