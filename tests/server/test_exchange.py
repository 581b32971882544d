"""What a server counts of a request, also of one whose answer breaks off."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cdxmill.errors import OutageError, StoppedError
from cdxmill.server.answers import RequestError, Response
from cdxmill.server.collections import Collection
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.exchange import Exchange
from cdxmill.server.metrics import Metrics
from cdxmill.server.routes import Route

from ..material.clock import Clock

SCOPE = {
    "method": "GET",
    "raw_path": b"/x",
    "query_string": b"",
    "headers": [],
    "http_version": "1.1",
    "client": ("1.2.3.4", 5),
}


def broken() -> Iterator[bytes]:
    """An answer that breaks off in its middle."""
    yield bytes(1 << 17)
    raise StoppedError("the disk is full")


class Server:
    """A server with one page; without it, no answer can be made."""

    answers = replay = report = None
    is_open = True

    def __init__(self, page: Response | Route | None) -> None:
        self.metrics, self.log, self._page = Metrics(), self, page
        self.threads = ThreadPoolExecutor(1)
        self.logged: list[tuple[Any, ...]] = []

    def write(self, *logged: Any) -> None:
        """As the log does."""
        self.logged.append(logged)

    def find(self, scope: object) -> Response | Route:
        """As the routes do."""
        if self._page is None:
            raise StoppedError("the disk is full")
        return self._page


def run(server: Server, leaves_after: int = 1 << 30, method: str = "GET") -> list[Mapping[str, Any]]:
    """What is sent to a client of the server, which leaves after some messages."""
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> Mapping[str, Any]:
        while len(sent) < leaves_after:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    asyncio.run(Exchange(server, {**SCOPE, "method": method}, receive, send).run())  # type: ignore[arg-type]
    return sent


def number(server: Server, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", server.metrics.text().decode(), re.M)
    assert found is not None, name
    return float(found[1])


def test_an_answer_is_counted_with_its_time_and_size() -> None:
    server, begin = Server(Response(200, "text/plain", (b"some ", b"text"))), time.perf_counter()
    head, body = run(server)
    passed = time.perf_counter() - begin
    assert (head["status"], body["body"]) == (200, b"some text")
    assert number(server, 'cdxmill_requests_total{endpoint="other",status="200"}') == 1
    assert 0 < number(server, 'cdxmill_request_seconds_sum{endpoint="other"}') <= passed
    assert number(server, "cdxmill_sent_bytes_total") == 9
    assert number(server, "cdxmill_broken_answers_total") == number(server, "cdxmill_running_requests") == 0
    ((client, request, status, sent, seconds),) = server.logged
    assert (client, request, status, sent) == ("1.2.3.4", "GET /x HTTP/1.1", 200, 9)
    assert 0 < seconds <= passed
    timing = dict(head["headers"])[b"server-timing"].decode()
    assert 0 < float(timing.removeprefix("answer;dur=")) <= passed * 1000


@pytest.mark.parametrize(
    ("status", "method", "has_length"),
    [(200, "GET", True), (404, "GET", True), (204, "GET", False), (304, "GET", False), (200, "HEAD", False)],
)
def test_only_an_answer_with_a_body_has_a_length(status: int, method: str, has_length: bool) -> None:
    """RFC 9110, 8.6: others would have to have that of the body that they leave out."""
    head, _ = run(Server(Response(status, "text/plain", ())), method=method)
    assert head["status"] == status
    assert (b"content-length" in dict(head["headers"])) == has_length


def test_an_answer_that_breaks_off_is_counted_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    planned = PlannedResponse(lambda: Response(200, "text/plain", broken()))
    server = Server(Route("some", lambda _: planned, Collection("some", [], None)))
    with pytest.raises(StoppedError):
        run(server)
    assert capsys.readouterr().err == "cdxmill: /x: the answer is broken off (the disk is full)\n"
    assert number(server, 'cdxmill_requests_total{endpoint="some",status="200"}') == 1
    assert number(server, "cdxmill_broken_answers_total") == 1
    assert number(server, "cdxmill_running_requests") == 0
    assert [one[2:4] for one in server.logged] == [(200, 1 << 17)]


def test_an_answer_ends_when_its_client_has_gone(capsys: pytest.CaptureFixture[str]) -> None:
    """Each piece reads a block, as long as somebody waits for it."""

    def endless(request: Request) -> PlannedResponse:
        def pieces() -> Iterator[bytes]:
            while True:
                request.watch.check()
                yield bytes(1 << 17)

        return PlannedResponse(lambda: Response(200, "text/plain", pieces()))

    server = Server(Route("some", endless, Collection("some", [], None)))
    sent = run(server, leaves_after=3)
    assert 3 <= len(sent) < 50
    assert capsys.readouterr().err == ""
    assert number(server, "cdxmill_running_requests") == 0
    assert [one[2] for one in server.logged] == [200]


@pytest.mark.parametrize(("seconds", "pieces"), [(50, 3), (130, 1)])
def test_the_time_of_an_answer_is_that_of_all_its_slices(
    seconds: int, pieces: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each piece is a slice. The time in which the client takes it is not counted."""
    clock = Clock()
    monkeypatch.setattr("cdxmill.server.watch.time", clock)
    made = []

    def slow(request: Request) -> PlannedResponse:
        def parts() -> Iterator[bytes]:
            for _ in range(9):
                yield bytes(1 << 17)
                clock.now += seconds
                made.append(seconds)
                request.watch.check()

        return PlannedResponse(lambda: Response(200, "text/plain", parts()))

    server = Server(Route("some", slow, Collection("some", [], None)))
    with pytest.raises(StoppedError):
        run(server)
    assert len(made) == pieces
    assert "the answer took more than 120 s; ask for less" in capsys.readouterr().err


def test_an_answer_that_cannot_be_begun_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(None)
    head, body = run(server)
    assert head["status"] == 500
    assert b"the disk" not in body["body"]
    assert capsys.readouterr().err == "cdxmill: /x: the disk is full\n"
    assert number(server, 'cdxmill_requests_total{endpoint="other",status="500"}') == 1
    assert number(server, "cdxmill_broken_answers_total") == 0


def test_an_unexpected_error_is_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(None)
    monkeypatch.setattr(server, "find", {}.__getitem__)
    with pytest.raises(TypeError):
        run(server)
    assert number(server, 'cdxmill_requests_total{endpoint="other",status="500"}') == 1
    assert [one[2:4] for one in server.logged] == [(500, 0)]


def test_a_slow_answer_is_sent_in_slices_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pieces do not wait for the last; many quick pieces are one slice."""

    class Counted(Clock):
        def perf_counter(self) -> float:
            """The same time."""
            return self.now

    clock = Counted()
    monkeypatch.setattr("cdxmill.server.exchange.time", clock)

    def sent(seconds: float, size: int) -> list[int]:
        def pieces() -> Iterator[bytes]:
            for _ in range(6):
                clock.now += seconds
                yield bytes(size)

        planned = PlannedResponse(lambda: Response(200, "text/plain", pieces()), is_quick=False)
        route = Route("some", lambda _: planned, Collection("some", [], None))
        return [len(message["body"]) for message in run(Server(route))[1:]]

    assert sent(0.11, 1) == [1] * 6 + [0]
    assert sent(0.04, 1) == [3, 3, 0]
    assert sent(0.0, 1) == [6]
    assert sent(0.0, 1 << 15) == [1 << 16] * 3 + [0]


@pytest.mark.parametrize(
    ("size", "accepted", "is_packed", "varies"),
    [
        (1024, "gzip", False, False),
        (1025, "gzip", True, True),
        (1025, "br, gzip;q=0.5", True, True),
        (1025, "br", False, True),
        (1025, "", False, True),
    ],
)
def test_an_answer_is_compressed_if_that_is_worth_it(
    size: int, accepted: str, is_packed: bool, varies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCOPE, "headers", [(b"accept-encoding", accepted.encode())])
    server = Server(Response(200, "text/plain", (bytes(size),)))
    head, body = run(server)
    headers = dict(head["headers"])
    assert (b"content-encoding" in headers, b"vary" in headers) == (is_packed, varies)
    assert int(headers[b"content-length"]) == len(body["body"])
    assert (gzip.decompress(body["body"]) if is_packed else body["body"]) == bytes(size)
    assert [one[3] for one in server.logged] == [size], "as it was before"


@pytest.mark.parametrize("accepted", [b"gzip", b"identity"])
def test_slices_are_compressed_as_one_stream(accepted: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [*(bytes([number]) * (1 << 16) for number in range(5)), b"the last one is short"]
    planned = PlannedResponse(lambda: Response(200, "text/plain", iter(pieces)))
    monkeypatch.setitem(SCOPE, "headers", [(b"accept-encoding", accepted)])
    server = Server(Route("some", lambda _: planned, Collection("some", [], None)))
    head, *bodies = run(server)
    data = b"".join(message["body"] for message in bodies)
    headers = dict(head["headers"])
    assert headers[b"vary"] == b"accept-encoding"
    assert headers.get(b"content-encoding") == (b"gzip" if accepted == b"gzip" else None)
    assert (gzip.decompress(data) if accepted == b"gzip" else data) == b"".join(pieces)
    assert [message.get("more_body", False) for message in bodies][-1] is False
    assert number(server, "cdxmill_sent_bytes_total") == sum(map(len, pieces))
    assert all(message["body"] for message in bodies[:-1])


def test_an_error_before_the_first_byte_has_a_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Also if nothing was found for some slices."""
    errors = (
        (RequestError(404, "there is none"), 404),
        (StoppedError("disk"), 500),
        (OutageError("s3://b", "no"), 503),
    )
    for error, status in errors:

        def pieces(error: Exception = error) -> Iterator[bytes]:
            yield b""
            raise error

        planned = PlannedResponse(lambda: Response(200, "text/plain", pieces()), is_quick=False)
        head, body = run(Server(Route("some", lambda _: planned, Collection("some", [], None))))  # noqa: B023
        assert head["status"] == status
        assert (b"retry-after" in dict(head["headers"])) == (status == 503)
        assert body["body"].count(b"\n") == 1
    assert capsys.readouterr().err.splitlines() == ["cdxmill: /x: disk", "cdxmill: /x: s3://b: no"]
