"""HTTP/1.1 by uvicorn, which waits for ever for a request that does not come: here, its time and its size are limited."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cdxmill.server.old_clients import OLD, send_without_chunks

SECONDS = 20.0
"""The time in which a whole request has to arrive."""
_MOST = 1 << 16
"""Bytes of a request: the server takes no bodies."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if a request does not arrive in time, or is too large."""

    _timer: asyncio.TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        self._size += len(data)
        if self._size > _MOST:
            self.transport.abort()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._size = 0
        self._start_timer()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """A request is complete."""
        self._stop_timer()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == OLD:
            send_without_chunks(cycle)
        super()._start_asgi_task(cycle, app)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(SECONDS, self._close_late)

    def _close_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
