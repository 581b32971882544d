"""What the server asks of the event loop holds for all versions of Python. Requests that do not arrive in time are ended."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from cdxmill.server.protocol import SECONDS, WaitingProtocol

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PATIENCE = 30
BEGIN, END = b"GET / HTTP/1.1\r\nHost", b": a\r\n\r\n"


async def answer_later(scope: Any, receive: Any, send: Any) -> None:
    """An answer that waits, as the first question to a collection does."""
    await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"late"})


def only_coroutines(
    loop: asyncio.AbstractEventLoop, given: Coroutine[Any, Any, Any], **settings: Any
) -> asyncio.Task[Any]:
    """A task as Python makes it since 3.12: of nothing but a coroutine."""
    assert inspect.iscoroutine(given), "a coroutine was expected"
    return asyncio.Task(given, loop=loop, **settings)


@asynccontextmanager
async def connected(app: Any = answer_later) -> AsyncIterator[Connection]:
    """A connection to a server that uses the protocol."""
    config = uvicorn.Config(
        app, http=WaitingProtocol, lifespan="off", log_config=None, timeout_keep_alive=999
    )
    config.load()
    make = partial(WaitingProtocol, config=config, server_state=ServerState(), app_state={})
    async with await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        yield reader, writer
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def asked_once() -> bytes:
    asyncio.get_running_loop().set_task_factory(only_coroutines)  # type: ignore[arg-type]
    async with connected() as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return await asyncio.wait_for(reader.read(), PATIENCE)


def test_an_answer_that_waits_is_completed_by_a_coroutine() -> None:
    found = asyncio.run(asked_once())
    assert found.startswith(b"HTTP/1.1 200 OK"), found
    assert found.endswith(b"late")


class _Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def run_on_clock(story: Coroutine[Any, Any, None]) -> None:
    """Run the story; no error of the server may be left to the loop, which reports it with a traceback."""
    errors: list[object] = []
    with asyncio.Runner(loop_factory=_Clock) as runner:
        runner.get_loop().set_exception_handler(lambda _, error: errors.append(error))
        runner.run(story)
    assert errors == []


async def pass_time(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _Clock)
    for _ in range(20):  # what was sent arrives first
        await asyncio.sleep(0)
    loop.ahead += seconds
    await asyncio.sleep(0)


async def answer(connection: Connection, data: bytes) -> bytes:
    """What the server sends after `data`: an answer, or nothing if it has closed the connection."""
    reader, writer = connection
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.readuntil(b"late"), PATIENCE)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""


@pytest.mark.parametrize("before", [0, 1, 3], ids=["first", "second", "fourth"])
@pytest.mark.parametrize("passed", [0.9, 1.1])
def test_a_request_has_to_arrive_in_time(before: int, passed: float) -> None:
    """The time begins with each request, whenever those before it on the same connection came."""

    async def story() -> None:
        async with connected() as connection:
            for _ in range(before):
                await pass_time(0.7 * SECONDS)
                assert await answer(connection, BEGIN + END)
            await pass_time(0.7 * SECONDS if before else 0)
            connection[1].write(BEGIN)
            await pass_time(0.8 * SECONDS)
            await pass_time((passed - 0.8) * SECONDS)
            assert bool(await answer(connection, END)) == (passed < 1)

    run_on_clock(story())


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n"], ids=["nothing", "empty lines"])
def test_a_connection_without_a_request_is_ended(sent: bytes) -> None:
    async def story() -> None:
        async with connected() as connection:
            connection[1].write(sent)
            await pass_time(1.1 * SECONDS)
            assert not await answer(connection, BEGIN + END)

    run_on_clock(story())


def test_a_connection_between_two_requests_is_not_ended() -> None:
    async def story() -> None:
        async with connected() as connection:
            assert await answer(connection, BEGIN + END)
            await pass_time(3 * SECONDS)
            assert await answer(connection, BEGIN + END)

    run_on_clock(story())


def test_an_answer_is_not_cut_if_it_is_read_slowly_and_what_follows_is_no_request() -> None:
    large = bytes(1 << 24)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": large})

    async def story() -> None:
        async with connected(app) as (reader, writer):
            writer.write(BEGIN + END + b"hello")
            await pass_time(1.1 * SECONDS)
            assert len(await reader.read()) > len(large)

    run_on_clock(story())
