"""Connections over loopback: what a client may send, how long it may take, and what is left of it in the server."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from cdxmill.server import protocol
from cdxmill.server.protocol import LimitedProtocol, WaitingProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
PATIENCE = 30
Client = Callable[["Connected"], Awaitable[None]]


@pytest.fixture(autouse=True)
def _much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection ends here because its time is over."""
    monkeypatch.setattr(protocol, "SECONDS", 10 * PATIENCE)


class Connected:
    """A connection of a client, and the state of its server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: ServerState
    ) -> None:
        self.reader, self.writer, self.state = reader, writer, state

    async def ask(self, request: bytes = REQUEST) -> bytes:
        """The body of an answer; the connection stays open."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK"), head
        return await self.reader.readexactly(4)

    async def rest(self) -> bytes:
        """What comes until the server ends the connection; b"" if it breaks it."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def until_none_is_left(self) -> None:
        """Wait until the server has forgotten all connections."""
        while self.state.connections or self.state.tasks:
            await asyncio.sleep(0)


async def answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"body"})


def served(client: Client, app: Any = answer) -> None:
    """Run a client of a server with this application. The server has to forget it."""

    async def run() -> None:
        config = uvicorn.Config(app, http=WaitingProtocol, lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        make = partial(WaitingProtocol, config=config, server_state=state, app_state={})
        async with await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0) as server:
            connected = Connected(*await asyncio.open_connection(*server.sockets[0].getsockname()), state)
            await client(connected)
            connected.writer.close()
            await connected.until_none_is_left()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_a_connection_that_is_answered_leaves_nothing() -> None:
    async def client(connected: Connected) -> None:
        connected.writer.write(LAST)
        assert (await connected.rest()).endswith(b"\r\n\r\nbody")
        await connected.until_none_is_left()

    served(client)


def test_a_connection_that_has_ended_takes_no_memory() -> None:
    async def client(connected: Connected) -> None:
        assert await connected.ask() == b"body"
        found = weakref.ref(next(iter(connected.state.connections)))
        connected.writer.close()
        await connected.until_none_is_left()
        await asyncio.sleep(0)
        gc.collect()
        assert found() is None

    served(client)


def test_many_requests_of_one_connection_are_answered() -> None:
    async def client(connected: Connected) -> None:
        long = REQUEST[:-2] + b"X-Long: " + b"x" * 2000 + b"\r\n\r\n"
        for _ in range(40):  # together, they are larger than one request may be
            assert await connected.ask(long) == b"body"
        (one,) = connected.state.connections
        assert isinstance(one, LimitedProtocol)

    served(client)


def test_an_answer_without_a_body_is_sent_at_once() -> None:
    async def client(connected: Connected) -> None:
        for _ in range(2):
            connected.writer.write(REQUEST.replace(b"GET", b"HEAD"))
            assert (await connected.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
        assert await connected.ask() == b"body"

    served(client)


def test_a_request_is_whole_when_it_is_answered_later() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0)
        assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
        await answer(scope, receive, send)

    async def client(connected: Connected) -> None:
        assert await connected.ask() == b"body"

    served(client, app)


def test_a_client_that_sends_many_requests_at_once_leaves_others_their_turn() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asyncio.get_running_loop().call_soon(seen.append, "turn")
        seen.append("answer")
        await answer(scope, receive, send)

    async def client(connected: Connected) -> None:
        connected.writer.write(2 * REQUEST + LAST)
        assert (await connected.rest()).count(b"body") == 3

    served(client, app)
    assert seen == 3 * ["answer", "turn"]


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST[:-2]])
def test_a_client_that_leaves_before_its_request_leaves_nothing(sent: bytes) -> None:
    async def client(connected: Connected) -> None:
        connected.writer.write(sent)
        while not connected.state.connections:
            await asyncio.sleep(0)

    served(client)


def test_an_answer_may_take_longer_than_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.05)
        await answer(scope, receive, send)

    async def client(connected: Connected) -> None:
        for _ in range(2):
            assert await connected.ask() == b"body"

    monkeypatch.setattr(protocol, "SECONDS", 0.01)
    served(client, slow)


@pytest.mark.parametrize("answered", [0, 1])
def test_a_request_that_is_too_large_ends_its_connection(answered: int) -> None:
    async def client(connected: Connected) -> None:
        for _ in range(answered):
            await connected.ask()
        connected.writer.write(REQUEST[:-2] + b"X-Long: ")
        for _ in range(80):
            connected.writer.write(b"x" * 1000)
            await asyncio.sleep(0)
        assert await connected.rest() == b""

    served(client)


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\0", b"hello\r\n", b"get / HTTP/1.1\r\n", b"GET / HTTP/1.1\n\n"]
)
def test_what_is_no_request_is_refused_at_once(sent: bytes) -> None:
    async def client(connected: Connected) -> None:
        connected.writer.write(sent)
        assert b"400 Bad Request" in await connected.rest()

    served(client)


@pytest.mark.parametrize("answered", [0, 1])
def test_a_server_that_stops_ends_connections_that_wait(answered: int) -> None:
    async def client(connected: Connected) -> None:
        for _ in range(answered):
            await connected.ask()
        while not connected.state.connections:
            await asyncio.sleep(0)
        for one in list(connected.state.connections):
            one.shutdown()
        assert await connected.rest() == b""
        await connected.until_none_is_left()

    served(client)


def test_an_answer_may_wait_for_what_fails() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for error in (ValueError, OSError):
            waited = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(waited.set_exception, error())
            with pytest.raises(error):
                await waited
        await asyncio.sleep(0)
        await answer(scope, receive, send)

    async def client(connected: Connected) -> None:
        assert await connected.ask() == b"body"

    served(client, app)


def test_an_answer_that_waits_can_be_cancelled() -> None:
    cancelled: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def client(connected: Connected) -> None:
        connected.writer.write(LAST)
        while not connected.state.tasks:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # the task begins
        for task in list(connected.state.tasks):
            task.cancel()
        assert b"500 Internal Server Error" in await connected.rest()

    served(client, app)
    assert cancelled == [True]


async def broken(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    raise ValueError


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_answer_that_breaks_off_never_looks_whole(version: bytes) -> None:
    async def client(connected: Connected) -> None:
        connected.writer.write(REQUEST.replace(b"1.1", version))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await connected.reader.readuntil(b"\r\n0\r\n\r\n")  # the end of chunks
        if version == b"1.0":
            assert isinstance(connected.reader.exception(), ConnectionError)

    served(client, broken)


async def in_pieces(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in (b"one ", b"", b"two "):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"end"})


def test_old_clients_get_the_length_that_is_known() -> None:
    async def client(connected: Connected) -> None:
        connected.writer.write(REQUEST.replace(b"1.1", b"1.0"))
        head, _, body = (await connected.rest()).partition(b"\r\n\r\n")
        assert b"content-length: 4" in head.lower()
        assert body == b"body"

    served(client)


def test_old_clients_get_an_answer_without_chunks() -> None:
    async def client(connected: Connected) -> None:
        connected.writer.write(REQUEST.replace(b"1.1", b"1.0"))
        head, _, body = (await connected.rest()).partition(b"\r\n\r\n")
        assert b"chunked" not in head.lower()
        assert body == b"one two end"

    served(client, in_pieces)


def test_others_get_chunks_and_may_ask_again() -> None:
    async def client(connected: Connected) -> None:
        for _ in range(2):
            connected.writer.write(REQUEST)
            found = await connected.reader.readuntil(b"\r\n0\r\n\r\n")
            head, _, body = found.partition(b"\r\n\r\n")
            assert b"transfer-encoding: chunked" in head.lower()
            assert body == b"4\r\none \r\n4\r\ntwo \r\n3\r\nend\r\n0\r\n\r\n"

    served(client, in_pieces)
