"""HTTP/1.1 by uvicorn, which waits for ever for a request that does not come: here, its time and its size are limited.

Connections without a complete request take a third of the memory that they take in uvicorn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cdxmill.regex import regex
from cdxmill.server.old_clients import OLD, send_without_chunks

SECONDS = 20.0
"""The time in which a whole request has to arrive."""
_MOST = 1 << 16
"""Bytes of a request: the server takes no bodies."""
_BEGINNING = regex(rb"[A-Z]*(?:$| )")
"""How a request begins. What does not is refused at once."""


class WaitingProtocol(asyncio.Protocol):
    """A connection whose first request is not complete yet. It takes little memory; uvicorn's protocol follows it.

    Made by uvicorn, with the arguments of its own protocol.
    """

    __slots__ = ("_begun", "_connections", "_make", "_timer", "_transport")

    def __init__(self, **settings: Any) -> None:
        self._make, self._begun = settings, b""
        self._connections: set[Any] = settings["server_state"].connections
        self._transport: Any = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        self._transport = transport
        self._connections.add(self)
        self._timer = asyncio.get_running_loop().call_later(SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        self._leave()

    def shutdown(self) -> None:
        """The server stops."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """A part of the first request."""
        self._begun += data
        if len(self._begun) > _MOST:
            self._transport.abort()
        elif b"\n\r\n" in self._begun or b"\n\n" in self._begun or not _BEGINNING.match(self._begun):
            self._leave()
            protocol = LimitedProtocol(**self._make)
            protocol.connection_made(self._transport)
            self._transport.set_protocol(protocol)
            protocol.data_received(self._begun)

    def _leave(self) -> None:
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if a request does not arrive in time, or is too large."""

    _timer: asyncio.TimerHandle | None = None
    _deadline: float | None = None
    """When the request has to be here, if it has begun. The timer of the request before may end earlier, and then runs again."""
    _size = 0
    _may_answer = False
    """Whether a request may be answered while its bytes are read: the first one, so that others get their turn after it."""

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        self._size += len(data)
        if self._size > _MOST:
            self.transport.abort()
            return
        self._may_answer = True
        super().data_received(data)
        self._may_answer = False

    def on_message_begin(self) -> None:
        """A request begins."""
        self._size = 0
        self._start_timer()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """A request is complete."""
        self._deadline = None
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == OLD:
            send_without_chunks(cycle)
        elif cycle.scope["method"] != "HEAD":
            cycle.transport = _JoiningTransport(cycle.transport)  # type: ignore[assignment]
        if self._may_answer:
            self._may_answer = False
            self._answer_now(cycle, app)
        else:
            super()._start_asgi_task(cycle, app)

    def _answer_now(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Answer without a task, which takes longer than a short answer. If an answer waits, a task completes it."""
        answering = cycle.run_asgi(app)
        try:
            awaited = answering.send(None)
        except StopIteration:
            return
        task = self.loop.create_task(_resumed(answering, awaited))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _start_timer(self) -> None:
        self._deadline = self.loop.time() + SECONDS
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline, self._close_late)

    def _close_late(self) -> None:
        self._timer = None
        if self._deadline is None or self.transport.is_closing():
            return
        if self.loop.time() < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._close_late)
        else:
            self.transport.abort()


async def _resumed(started: Coroutine[Any, Any, None], awaited: Any) -> None:
    """The rest of a coroutine that was started, and waits for something."""
    await _steps(started, awaited)  # since Python 3.12, a generator is no task


@coroutine
def _steps(started: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    while True:
        try:
            found = yield awaited
        except BaseException as error:
            step = partial(started.throw, error)
        else:
            step = partial(started.send, found)
        try:
            awaited = step()
        except StopIteration:
            return


class _JoiningTransport:
    """The connection of an answer with a body. Its head is sent with the first bytes of the body: each write is a system call."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""

    def write(self, data: bytes) -> None:
        """Send bytes. The first ones wait for the next."""
        if self._head is None:
            self._transport.write(data)
        elif self._head:
            self._transport.write(self._head + data)
            self._head = None
        else:
            self._head = data

    def is_closing(self) -> bool:
        """Whether the connection is closed or being closed."""
        return self._transport.is_closing()

    def close(self) -> None:
        """End the connection."""
        self._transport.close()
