"""What the server asks of the event loop holds for all versions of Python."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from functools import partial
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from cdxmill.server.protocol import WaitingProtocol


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


async def asked_once() -> bytes:
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(answer_later, http=WaitingProtocol, lifespan="off", log_config=None)
    config.load()
    loop.set_task_factory(only_coroutines)  # type: ignore[arg-type]
    make = partial(WaitingProtocol, config=config, server_state=ServerState(), app_state={})
    async with await loop.create_server(make, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        found = await reader.read()
        writer.close()
        await writer.wait_closed()
    return found


def test_an_answer_that_waits_is_completed_by_a_coroutine() -> None:
    found = asyncio.run(asked_once())
    assert found.startswith(b"HTTP/1.1 200 OK"), found
    assert found.endswith(b"late")
