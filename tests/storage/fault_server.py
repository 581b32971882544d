"""A web server whose answers are wrong in one of many ways: at one request, or at all from one on."""

from __future__ import annotations

import gzip
import re
import socket
import struct
import time
import zlib
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from ..material.background import in_background
from .range_server import QuietServer

PAST = "Wed, 01 Jan 2020 00:00:00 GMT"
STALL = 0.6
"""Seconds. Longer than the timeout of the tests."""

REFUSALS: dict[str, tuple[int, dict[str, str]]] = {
    "503": (503, {}),
    "500": (500, {}),
    "429": (429, {"Retry-After": "0"}),
    "429-date": (429, {"Retry-After": PAST}),
    "429-garbage": (429, {"Retry-After": "soon"}),
    "429-huge": (429, {"Retry-After": "9" * 30}),
    "404": (404, {}),
    "403": (403, {}),
    "204": (204, {}),
    "304": (304, {}),
    "416": (416, {}),
    "redirect-loop": (302, {"Location": "?again"}),
    "redirect-file": (302, {"Location": "file:///etc/passwd"}),
    "redirect-host": (302, {"Location": "http://127.0.0.1:1/x"}),
    "redirect-metadata": (302, {"Location": "http://169.254.169.254/x"}),
    "redirect-empty": (302, {"Location": ""}),
    "headers-huge": (
        200,
        {"X-Long": "x" * 200_000},
    ),  # pywb, once imported, raises the limit of the process to 131072
}
CHANGED = ("etag", "etag-content", "modified", "size-content")
RANGES = (
    *("range-shorter", "range-start", "range-total", "range-missing", "range-star", "range-garbage"),
    *("one-byte", "206-empty", "416-star", "multipart", "encoded"),
)
WHOLE = ("whole", "whole-close", "whole-chunked")
BODIES = (
    *("short-body", "short-length", "long-body", "reset-body", "stall", "drip", "chunk-cut", "chunk-garbage"),
)
BEFORE = ("reset-before", "stall-before", "not-http")
FAULTS = (*REFUSALS, *CHANGED, *RANGES, *WHOLE, *BODIES, *BEFORE)


class Reply(NamedTuple):
    """An answer with its own length, unless `how` says otherwise."""

    status: int
    headers: dict[str, str]
    body: bytes
    how: str = ""


class FaultServer(QuietServer):
    """`files` by path. From request `at` on, or only at this one, answers have the fault."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.plan("", 0, once=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def plan(self, fault: str, at: int, *, once: bool) -> None:
        """Start to count requests again, from 1."""
        self.fault, self.at, self.once, self.count = fault, at, once, 0

    def next_fault(self) -> str:
        self.count += 1
        hit = self.count == self.at if self.once else self.count >= self.at
        return self.fault if hit else ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body comes 40 ms after its headers
    server: FaultServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        data = self.server.files.get(self.path.split("?")[0])
        if data is None:
            self._send(Reply(404, {}, b"absent"))
            return
        fault = self.server.next_fault()
        if fault in BEFORE:
            self._break_off(fault)
        elif fault in REFUSALS:
            status, headers = REFUSALS[fault]
            self._send(Reply(status, headers, b"" if status in (200, 204, 304) else b"no"))
        else:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            span = (int(asked[1]), int(asked[2])) if asked and fault not in WHOLE else None
            self._send(reply_with(fault, data, span))

    def _break_off(self, fault: str) -> None:
        self.close_connection = True
        if fault == "not-http":
            self.wfile.write(b"SSH-2.0-OpenSSH\r\n" * 10)
            return
        if fault == "stall-before":
            time.sleep(STALL)
        self._reset()

    def _send(self, reply: Reply) -> None:
        half, how = len(reply.body) // 2, reply.how
        framing = {"Content-Length": str(half if how == "short-length" else len(reply.body))}
        if how.startswith(("chunk", "whole-chunked")):
            framing = {"Transfer-Encoding": "chunked"}
        elif how == "whole-close":
            framing = {"Connection": "close"}
        self.send_response(reply.status)
        for name, value in {**reply.headers, **framing}.items():
            self.send_header(name, value)
        self.end_headers()
        if "Transfer-Encoding" in framing:
            self._chunks(reply.body, half, how)
        elif how in ("short-body", "reset-body", "stall"):
            self.wfile.write(reply.body[:half])
            time.sleep(STALL if how == "stall" else 0)
            self.close_connection = True
            if how == "reset-body":
                self._reset()
        elif how == "drip":
            for byte in reply.body[:20]:
                self.wfile.write(bytes([byte]))
            self.wfile.write(reply.body[20:])
        else:
            self.wfile.write(reply.body[:half] if how == "short-length" else reply.body)
            if how in ("long-body", "whole-close"):
                self.wfile.write(b"more than was promised" if how == "long-body" else b"")
                self.close_connection = True

    def _chunks(self, body: bytes, half: int, how: str) -> None:
        for start in range(0, len(body), 60_000):
            piece = body[start : start + 60_000]
            if how != "whole-chunked" and start + len(piece) > half:
                self.wfile.write(b"zzz\r\n" + piece if how == "chunk-garbage" else b"")
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def reply_with(fault: str, data: bytes, span: tuple[int, int] | None) -> Reply:
    """The answer to a request for the bytes of `span`, or for all."""
    headers = {"ETag": f'"{zlib.crc32(data):x}"', "Last-Modified": PAST}
    if fault in ("etag", "etag-content"):
        headers["ETag"] = '"other"'
    if fault == "modified":
        headers["Last-Modified"] = PAST.replace("01", "02")
    if fault.endswith("-content"):
        data = data[: len(data) // 2] + b"x" + data[len(data) // 2 :]
    if fault in ("modified", "size-content"):
        del headers["ETag"]
    if span is None:
        return Reply(200, headers, data, fault)
    first, last = span[0], min(span[1], len(data) - 1)
    if first >= len(data) or fault == "416-star":
        return Reply(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
    return _range(fault, data, (first, last), headers)


def _range(fault: str, data: bytes, span: tuple[int, int], headers: dict[str, str]) -> Reply:
    first, last = span
    if fault == "range-shorter":
        last = first + (last - first) // 2
    if fault == "one-byte":
        last = first
    shift = fault == "range-start"
    body = data[first + shift : last + 1 + shift]
    total = {"range-total": str(len(data) + 5), "range-star": "*"}.get(fault, str(len(data)))
    content_range = f"bytes {first + shift}-{last + shift}/{total}"
    headers["Content-Range"] = "bytes of the file" if fault == "range-garbage" else content_range
    if fault in ("range-missing", "multipart"):
        del headers["Content-Range"]
    if fault == "multipart":
        headers["Content-Type"] = "multipart/byteranges; boundary=b"
        body = b"--b\r\nContent-Range: " + content_range.encode() + b"\r\n\r\n" + body + b"\r\n--b--\r\n"
    if fault == "encoded":
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body)
    return Reply(206, headers, b"" if fault == "206-empty" else body, fault)


def failing() -> AbstractContextManager[FaultServer]:
    """A running server, stopped at the end of the `with`."""
    return in_background(FaultServer)
