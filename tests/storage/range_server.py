"""A web server on loopback that serves ranges of files in memory, and fails on request."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from cdxmill.storage import hosts
from tests.material.background import in_background


@dataclass
class Served:
    """One file, and how the server treats requests for it."""

    body: bytes
    etag: str | None = '"one"'
    etags: list[str] = field(default_factory=list)
    """ETags of the next answers."""
    headers: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    """Statuses to answer instead of the file, one per request."""
    retry_after: str | None = None
    page: bytes = b""
    """Sent in chunks as the body of such an answer."""
    cuts: list[int] = field(default_factory=list)
    """Bytes of the body after which the connection is closed, one per request."""
    drops: int = 0
    """Number of requests that get no answer: the connection is closed."""
    knows_ranges: bool = True
    tells_length: bool = True
    tells_total: bool = True
    shift: int = 0
    """Bytes by which answered ranges are shifted to the end."""
    wider: int = 0
    """Bytes by which answered ranges are too long."""
    most: int = 1 << 62
    """Bytes of the longest range that is answered. A longer one is answered with its first bytes."""
    surplus: bytes = b""
    """Sent behind every body."""
    stall: float = 0
    """Seconds before an answer."""
    moved_to: str | None = None
    drips_head: float = 0
    drips_body: float = 0
    """Seconds between single bytes of the headers and of the body."""


class QuietServer(ThreadingHTTPServer):
    """Prints nothing when readers hang up, and closes all connections at its end: readers keep theirs open."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class RangeServer(QuietServer):
    """`files` by path; `seen` lists each request's method, path and Range."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, Served] = {}
        self.seen: list[tuple[str, str, str | None]] = []
        self.request_headers: list[dict[str, str]] = []
        """Their names in lower case."""
        self.connections = 0
        """Connections that were ever made."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, path: str, body: bytes) -> Served:
        """Serve `body` at `path`. Set fields of the result to make requests fail."""
        self.files[path] = Served(body)
        return self.files[path]

    def ranges(self, path: str) -> list[str | None]:
        """The Range of each request for `path`."""
        return [wanted for _, seen, wanted in self.seen if seen == path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body comes 40 ms after its headers
    server: RangeServer

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.seen.append((self.command, self.path, self.headers["Range"]))
        self.server.request_headers.append({name.lower(): value for name, value in self.headers.items()})
        file = self.server.files.get(unquote(self.path))
        if file is None:
            return self._refuse(404)
        time.sleep(file.stall)
        if file.drops:
            file.drops -= 1
            self.close_connection = True
            return None
        if file.statuses:
            return self._refuse(file.statuses.pop(0), file.retry_after, file.page, file.headers)
        if file.moved_to is not None:
            return self._redirect(file.moved_to)
        return self._give(file)

    def _refuse(
        self,
        status: int,
        retry_after: str | None = None,
        page: bytes = b"",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.send_header(*(("Transfer-Encoding", "chunked") if page else ("Content-Length", "0")))
        self.end_headers()
        if page:
            self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(page), page))

    def _redirect(self, location: str) -> None:
        self.send_response(302)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _give(self, file: Served) -> None:
        if file.etags:
            file.etag = file.etags.pop(0)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        if not wanted or not file.knows_ranges:
            return self._send(200, file, file.body, None)
        first, total = int(wanted[1]) + file.shift, len(file.body)
        part = file.body[first : int(wanted[2]) + 1 + file.shift + file.wider][: file.most]
        shown = total if file.tells_total else "*"
        if not part:
            return self._send(416, file, b"a page", f"bytes */{shown}")
        return self._send(206, file, part, f"bytes {first}-{first + len(part) - 1}/{shown}")

    def _send(self, status: int, file: Served, body: bytes, content_range: str | None) -> None:
        self.send_response(status)
        for name, value in {"ETag": file.etag, "Content-Range": content_range, **file.headers}.items():
            if value is not None:
                self.send_header(name, value)
        if file.tells_length:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
        if file.drips_head:
            self.flush_headers()
            self._drip(b"X-Long: " + b"x" * 1000, file.drips_head)
        self.end_headers()
        if self.command == "HEAD":
            return
        if file.cuts and len(body) > 1:
            body = body[: file.cuts.pop(0)]
            self.close_connection = True
        if file.drips_body:
            self._drip(body, file.drips_body)
        else:
            self.wfile.write(body + file.surplus)

    def _drip(self, data: bytes, seconds: float) -> None:
        for byte in data:
            self.wfile.write(bytes([byte]))
            time.sleep(seconds)


def serving() -> AbstractContextManager[RangeServer]:
    """A running server, stopped at the end of the `with`."""
    hosts.begin_run()  # another test may have given up a server that had its port
    return in_background(RangeServer)
