"""Clients with HTTP/1.0 know no chunks: an answer without a length ends with its connection (RFC 9112, 6.3).

So an answer that broke off would look like a whole one. Its connection is reset.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

OLD = "1.0"
_RESET = struct.pack("ii", 1, 0)
"""The option SO_LINGER, on with 0 seconds: what is not sent is dropped, and the client gets an error."""


def send_without_chunks(cycle: RequestResponseCycle) -> None:
    """Let uvicorn send an answer without chunks. uvicorn closes the connection at its end."""
    send, has_length = cycle.send, True

    async def send_plain(message: Any) -> None:
        nonlocal has_length
        if message["type"] == "http.response.start":
            has_length = any(name == b"content-length" for name, _ in message.get("headers", ()))
            cycle.chunked_encoding = None if has_length else False
        elif not has_length:
            # uvicorn compares them
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    cycle.send = send_plain  # type: ignore[method-assign]
    cycle.transport = _ResetTransport(cycle)  # type: ignore[assignment]


class _ResetTransport:
    """The connection of an answer: if it is closed before the answer is complete, it is reset."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle, self._transport = cycle, cycle.transport

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._transport.write(data)

    def is_closing(self) -> bool:
        """Whether the connection is closed or being closed."""
        return self._transport.is_closing()

    def close(self) -> None:
        """End the connection."""
        if self._cycle.response_complete:
            self._transport.close()
            return
        _reset(self._transport)


def _reset(transport: asyncio.Transport) -> None:
    """Break a connection so that the client gets an error."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()
