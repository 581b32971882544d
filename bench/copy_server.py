"""A web server on loopback for `bench/copying.py`: ranges of files, and a CDX API. It costs little time per request.

It can wait before each answer, as a server far away does.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_RANGE = re.compile(rb"\r\nrange: bytes=(\d+)-(\d+)", re.I)


class _Connection(asyncio.Protocol):
    """One connection: requests come one after the other."""

    def __init__(self, files: dict[str, bytes], lines: bytes, delay: float) -> None:
        self._files, self._lines, self._delay, self._begun = files, lines, delay, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._out = transport

    def data_received(self, data: bytes) -> None:
        self._begun += data
        while (end := self._begun.find(b"\r\n\r\n")) >= 0:
            head, self._begun = self._begun[: end + 2], self._begun[end + 4 :]
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, self._answer, head)
            else:
                self._answer(head)

    def _answer(self, head: bytes) -> None:
        url = urlsplit(head.split(b" ", 2)[1].decode())
        if url.path == "/cdx":
            query = parse_qs(url.query)
            self._send(b"200 OK", b"" if query.get("page", ["0"]) != ["0"] else self._lines)
            return
        data = self._files.get(url.path)
        wanted = _RANGE.search(head)
        if data is None:
            self._send(b"404 Not Found", b"")
        elif wanted is None:
            self._send(b"200 OK", data)
        else:
            first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
            more = b"Content-Range: bytes %d-%d/%d\r\n" % (first, last, len(data))
            self._send(b"206 Partial Content", data[first : last + 1], more)

    def _send(self, status: bytes, body: bytes, more: bytes = b"") -> None:
        self._out.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n" % (status, len(body), more))
        self._out.write(body)


def serve(directory: Path, lines: bytes, port_file: Path, delay: float = 0.0) -> None:
    """Serve the files below a directory, and `lines` at /cdx, until the process is killed. Each answer comes after `delay` seconds."""
    files = {
        f"/{path.relative_to(directory)}": path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(files, lines, delay), "127.0.0.1", 0)
        port_file.write_text(str(server.sockets[0].getsockname()[1]))
        await server.serve_forever()

    asyncio.run(run())
