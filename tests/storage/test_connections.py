"""Files of one server share connections: a server counts how many were ever made."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError
from cdxmill.running.failures import Failures
from cdxmill.search.lookup import lookup_many
from cdxmill.storage.location import ask_all, locate
from cdxmill.storage.reach import Reach
from cdxmill.storage.web.connections import _Reads, connections, give_back, is_inside, is_own, small_body
from cdxmill.storage.web.http import look
from cdxmill.storage.web.http_file import HttpFile, NoRanges

from ..conftest import RunCdxmill
from ..material.cdx_files import write_plain
from .range_server import RangeServer, Served
from .web_file import BODY, A

THREADS = 8
SPARE = 2
"""Connections beyond one per reader, as when a reader asks while another still holds all that are open."""


def read(url: str, offset: int = 0, size: int = 100) -> bytes:
    with locate(url).open_ranges() as read_at:
        return read_at(offset, size)


def test_files_of_one_server_are_read_over_one_connection(server: RangeServer) -> None:
    for number in range(20):
        server.add(f"/{number}", b"%d" % number * 10)
    for number in range(20):
        assert read(f"{server.url}/{number}", 0, 4) == (b"%d" % number * 10)[:4]
        assert locate(f"{server.url}/{number}").size() > 0
        assert locate(f"{server.url}/{number}").exists()
    assert server.connections == 1


@pytest.mark.parametrize("page", [b"", b"<Error>Denied</Error>" * 50])
@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_keeps_the_connection(server: RangeServer, file: Served, status: int, page: bytes) -> None:
    file.statuses, file.page = [status] * 5, page
    for _ in range(5):
        with pytest.raises(InputError):
            read(server.url + A)
    assert read(server.url + A) == BODY[:100]
    assert server.connections == 1


def test_a_long_page_of_a_refusal_is_not_read_to_its_end(server: RangeServer, file: Served) -> None:
    file.statuses, file.page = [404] * 3, BODY
    for _ in range(3):
        with pytest.raises(InputError):
            read(server.url + A)
    assert read(server.url + A) == BODY[:100]
    assert server.connections == 4


def test_reads_behind_the_end_keep_the_connection(server: RangeServer, file: Served) -> None:
    file.tells_total = False
    with locate(server.url + A).open_ranges() as read_at:
        for _ in range(5):
            assert read_at(len(BODY) + 1, 10) == b""
    assert server.connections == 2, "one more to ask for the size"


def test_closing_a_file_leaves_the_connections_of_others(server: RangeServer, file: Served) -> None:
    server.add("/other", b"0123456789")
    with locate(server.url + A).open_ranges() as read_at:
        read_at(0, 10)
        with locate(f"{server.url}/other").open_ranges() as other:
            assert other(1, 2) == b"12"
        assert read_at(10, 10) == BODY[10:20]
    assert server.connections == 1


def kept() -> int:
    """The open connections to a server that are kept for the next request."""
    pools = connections("http://127.0.0.1/", Reach.ANYWHERE).pools
    queues = [pools[key].pool for key in pools.keys()]  # noqa: SIM118
    held = [one for queue in queues if queue is not None for one in list(queue.queue)]
    return sum(one is not None and one.sock is not None for one in held)


def test_a_connection_with_an_unread_body_is_not_used_again(server: RangeServer, file: Served) -> None:
    server.add("/other", b"0123456789")
    file.knows_ranges = False
    for _ in range(3):
        assert read(server.url + A) == BODY[:100], "the rest of a mebibyte is not read"
        assert kept() == 0
        assert locate(server.url + A).size() == len(BODY)
        assert kept() == 0
        assert look(server.url + A, 100)[1] == BODY[:100]
        assert kept() == 0
        with pytest.raises(NoRanges):
            HttpFile(server.url + A).read_at(0, 100)
        assert kept() == 0
        assert read(f"{server.url}/other", 2, 5) == b"23456"
        assert kept() == 1
    file.knows_ranges, file.cuts = True, [1000]
    assert read(server.url + A, 0, 5000) == BODY[:5000]
    assert read(f"{server.url}/other", 2, 5) == b"23456"
    file.statuses, file.page = [404], BODY
    with pytest.raises(InputError):
        read(server.url + A)
    assert kept() == 0
    file.headers["Content-Encoding"] = "br"
    assert read(f"{server.url}/other", 2, 5) == b"23456"
    with pytest.raises(InputError, match="compresses"), locate(server.url + A).open_ranges() as read_at:
        read_at(0, len(BODY))
    assert kept() == 0


def test_a_connection_that_the_server_closed_is_made_again(server: RangeServer, file: Served) -> None:
    file.headers["Connection"] = "close"
    for _ in range(3):
        assert read(server.url + A) == BODY[:100]
    assert server.connections == 6, "two requests per file"


def test_as_many_connections_as_reads_at_once(server: RangeServer) -> None:
    files = [server.add(f"/{number}", BODY[number * 1000 :]) for number in range(4)]
    for file in files:
        file.stall = 0.002
    with ExitStack() as stack, ThreadPoolExecutor(THREADS) as threads:
        reads = [stack.enter_context(locate(f"{server.url}/{number}").open_ranges()) for number in range(4)]
        tasks = [(number % 4, number * 500) for number in range(200)]
        got = list(threads.map(lambda task: reads[task[0]](task[1], 300), tasks))
    assert got == [BODY[number * 1000 + at :][:300] for number, at in tasks]
    assert len(server.seen) > 200
    assert server.connections <= THREADS + SPARE


def test_a_forked_process_has_connections_of_its_own(server: RangeServer, file: Served) -> None:
    assert read(server.url + A) == BODY[:100]
    with ProcessPoolExecutor(1, get_context("fork")) as workers:
        for at in (5, 10):
            assert workers.submit(read, server.url + A, at).result() == BODY[at : at + 100]
            assert read(server.url + A, at) == BODY[at : at + 100]
    assert read(server.url + A) == BODY[:100]
    assert server.connections == 2


def test_requests_leave_no_thread_in_a_process_that_may_fork(server: RangeServer, file: Served) -> None:
    before = set(threading.enumerate())
    urls = [server.url + A] * 20
    assert ask_all(read, urls) == [BODY[:100]] * 20
    theirs = {thread for thread in threading.enumerate() if "process_request_thread" in thread.name}
    assert set(threading.enumerate()) - theirs == before


@pytest.fixture
def cluster(server: RangeServer, tmp_path: Path) -> str:
    """The URL of a cluster with 800 blocks in 4 shards."""
    lines = [b"com,a)/%04d 20200101000000 {}" % page for page in range(4000)]
    path = write_plain(tmp_path / "a.cdxj", lines)
    build_cluster([str(path)], tmp_path / "C", ZipnumOptions(shards=4, block_lines=5, quiet=True), Failures())
    for path in (tmp_path / "C").iterdir():
        if path.is_file():
            server.add(f"/c/{path.name}", path.read_bytes())
    return f"{server.url}/c"


def test_a_lookup_of_many_urls_needs_few_connections(server: RangeServer, cluster: str) -> None:
    """310 requests were 207 connections when each file kept one for itself."""
    for file in server.files.values():
        file.stall = 0.002
    urls = [f"http://a.com/{page:04d}" for page in range(0, 4000, 25)]
    found = [list(answer.lists) for answer in lookup_many(cluster, urls)]
    assert sum(len(lines) for lists in found for lines in lists) == len(urls)
    assert len(server.seen) > 150
    assert server.connections <= THREADS + SPARE


def test_an_index_of_many_archives_needs_a_connection_per_process(
    server: RangeServer, pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    body = (pywb_warcs / "iana.warc.gz").read_bytes()
    urls = [f"{server.url}/{number}.warc.gz" for number in range(12)]
    for number in range(12):
        server.add(f"/{number}.warc.gz", body)
    manifest = tmp_path / "manifest"
    manifest.write_text("\n".join(urls))
    done = run_cdxmill("index", "-q", "-p", "2", "--manifest", manifest, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(server.seen) >= 24
    assert server.connections <= 2 + SPARE


def test_a_host_is_ones_own_if_its_connections_went_inside(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.storage.web.connections._inside", {})
    named = server.url.replace("127.0.0.1", "own.example")
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest: resolve("127.0.0.1", *rest))
    assert not is_own(named)
    assert read(named + A) == BODY[:100]
    assert is_own(named)
    assert is_inside(named)
    assert not is_own("http://other.example/")
    monkeypatch.setattr("cdxmill.storage.web.connections._inside", {"mixed.example": False})
    mixed = named.replace("own", "mixed")
    assert read(mixed + A) == BODY[:100]
    assert not is_own(mixed), "another of its addresses is not inside"
    assert [is_own(f"http://{host}/") for host in ("127.0.0.1", "8.8.8.8")] == [True, False]


@contextmanager
def headers(timeout: float | None, left: float | None) -> Iterator[tuple[_Reads, socket.socket]]:
    """The reads of a socket with this timeout, until that number of seconds has passed; and the other end, which has sent 3 bytes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(timeout)
        raw = ours.makefile("rb", buffering=0)
        reads = _Reads(ours, raw)
        reads.end = None if left is None else time.monotonic() + left
        theirs.send(b"123")
        yield reads, ours
        assert ours.gettimeout() == timeout
        reads.close()
        assert reads.closed
        assert raw.closed


@pytest.mark.parametrize("timeout", [None, 100.0])
def test_headers_have_to_arrive_until_a_time(timeout: float | None) -> None:
    for left in (0.9, None):
        with headers(timeout, left) as (reads, _):
            buffer = bytearray(9)
            assert reads.readinto(buffer) == 3
            assert bytes(buffer[:3]) == b"123"
    with headers(timeout, -1.0) as (reads, _), pytest.raises(TimeoutError, match="timed out"):
        reads.readinto(bytearray(9))
    with headers(timeout, 0.1) as (reads, ours):
        ours.recv(3)
        with pytest.raises(TimeoutError):
            reads.readinto(bytearray(9))


def test_a_read_is_no_longer_than_its_own_timeout() -> None:
    with headers(0.01, 1000.0) as (reads, ours):
        ours.recv(3)
        with pytest.raises(TimeoutError):
            reads.readinto(bytearray(9))


def test_a_small_body_is_whole_or_an_error(server: RangeServer, file: Served) -> None:
    for most in (len(BODY), len(BODY) + 1):
        assert small_body("a", HttpFile(server.url + A).ask(), most) == BODY
    for most in (len(BODY) - 1, 10):
        answer = HttpFile(server.url + A).ask()
        with pytest.raises(InputError, match=f"a: the answer has more than {most} bytes"):
            small_body("a", answer, most)
        assert answer.closed
    answer = HttpFile(server.url + A).ask()
    give_back(answer)
    assert answer.closed
