"""Requests over a connection that is open: any form of an answer is understood, and connections are kept within limits."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from urllib3 import BaseHTTPResponse

from cdxmill.storage.reach import Reach
from cdxmill.storage.web import connections
from cdxmill.storage.web.connections import give_back
from cdxmill.storage.web.http import open_ranges

from .range_server import RangeServer, serving
from .web_file import BODY

PLAIN = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{all}\r\nContent-Length: {size}\r\n\r\n"
CHUNKED = PLAIN.replace("Content-Length: {size}", "Transfer-Encoding: chunked")
HEADS = {
    "plain": PLAIN,
    "no reason": PLAIN.replace(" Partial Content", ""),
    "lower case": PLAIN.lower().replace("http/1.1", "HTTP/1.1"),
    "kept alive": PLAIN.replace("\r\n\r\n", "\r\nConnection: Keep-Alive\r\n\r\n"),
    "closed": PLAIN.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
    "old": PLAIN.replace("1.1", "1.0"),
    "no length": PLAIN.replace("Content-Length: {size}\r\n", "Connection: close\r\n"),
    "folded": PLAIN.replace("\r\n\r\n", "\r\nX-Long: one\r\n two\r\n\r\n"),
    "LF only": PLAIN.replace("\r\n", "\n"),
    "twice": PLAIN.replace("\r\n\r\n", "\r\nVary: a\r\nVary: b\r\n\r\n"),
    "informed": "HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
    "long": PLAIN.replace("\r\n\r\n", f"\r\nX-Long: {'x' * 60_000}\r\n\r\n"),
    "chunked": CHUNKED,
}
WANTED = re.compile(rb"\r\nRange: bytes=(\d+)-(\d+)\r\n")


@contextmanager
def answering(head: str, parts: int) -> Iterator[tuple[str, list[socket.socket]]]:
    """The URL of a server whose answers begin with `head` and are sent in `parts`, and the connections to it.

    The first answer is plain.
    """
    made: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    made.append(server.accept()[0])
                except OSError:
                    return
                Thread(target=serve, args=(made[-1],), daemon=True).start()

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):  # at the end of a test
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                asked = b""
                while piece := connection.recv(1 << 16):
                    asked += piece
                    if asked.endswith(b"\r\n\r\n"):
                        is_first, is_closed = b"bytes=0-0" in asked, "lose" in head or "1.0" in head
                        send(connection, answer(PLAIN if is_first else head, asked))
                        asked = b""
                        if is_closed and not is_first:
                            return

        def send(connection: socket.socket, data: bytes) -> None:
            step = -(-len(data) // parts)
            for start in range(0, len(data), step):
                connection.sendall(data[start : start + step])

        Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/a.warc.gz", made
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for one in made:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


def answer(head: str, asked: bytes) -> bytes:
    wanted = WANTED.search(asked)
    assert wanted is not None
    first, last = int(wanted[1]), int(wanted[2])
    body = BODY[first : last + 1]
    shown = head.format(first=first, last=last, size=len(body), all=len(BODY)).encode()
    if "chunked" in head:
        return shown + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return shown + body


@pytest.mark.parametrize("parts", [1, 2, 9])
@pytest.mark.parametrize("head", HEADS)
def test_answers_over_an_open_connection(head: str, parts: int) -> None:
    with answering(HEADS[head], parts) as (url, made), open_ranges(url) as read_at:
        for first, size in ((5, 1), (70_000, 100_000), (0, 300)):
            assert read_at(first, size) == BODY[first : first + size]
        assert len(made) == 1 or "lose" in HEADS[head] or "1.0" in HEADS[head]


def test_the_next_request_has_the_path_and_the_headers_of_the_first(server: RangeServer) -> None:
    server.add("/a b/\u00fc%.warc.gz", BODY)
    url = f"{server.url}/a b/\u00fc%25.warc.gz#fragment"
    with open_ranges(url) as read_at:
        assert read_at(10, 5) == BODY[10:15]
    assert server.connections == 1
    assert len({path for _, path, _ in server.seen}) == 1
    first, second = server.request_headers
    assert second == {**first, "range": "bytes=10-14"}


def test_more_servers_than_connections_are_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SERVERS", 2)
    with ExitStack() as stack:
        servers = [stack.enter_context(serving()) for _ in range(3)]
        for server in servers:
            server.add("/a.warc", BODY)
        reads = [stack.enter_context(open_ranges(f"{server.url}/a.warc")) for server in servers]
        for first in (0, 500, 900):
            assert {read_at(first, 100) for read_at in reads} == {BODY[first : first + 100]}


def open_to(urls: list[str]) -> list[str]:
    """Those of the URLs to whose servers this process has connections."""
    peers = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if not stat.S_ISSOCK(path.stat().st_mode):  # a copy of another file would stay open
                continue
            with socket.socket(fileno=os.dup(int(path.name))) as copied:
                if isinstance(peer := copied.getpeername(), tuple):  # that of a Unix socket is a path
                    peers.add(peer[1])
    return [url for url in urls if urlsplit(url).port in peers]


def test_connections_to_servers_beyond_the_limit_are_closed() -> None:
    """The least recently used first. An answer that is being read is not disturbed."""
    pools = connections.checked_pools(Reach.ANYWHERE, num_pools=3, maxsize=2)
    with ExitStack() as stack:
        urls = [stack.enter_context(answering(PLAIN, 1))[0] for _ in range(6)]

        def ask(url: str) -> BaseHTTPResponse:
            return connections.send(pools, "GET", url, {"Range": "bytes=10-99"})

        for number, url in enumerate(urls):
            for _ in range(2):
                give_back(ask(url))
            if number == 1:
                begun = ask(url)
            if number > 1:
                give_back(ask(urls[0]))  # a server in use is not forgotten
        assert open_to(urls) == [urls[0], urls[1], *urls[4:]]
        assert begun.read1(99) == BODY[10:100]
        begun.close()
        del begun
        assert open_to(urls) == [urls[0], *urls[4:]]
