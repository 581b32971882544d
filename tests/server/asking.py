"""Ask a server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from cdxmill.server.app import Server


class Answered(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes


async def ask(server: Server, path: str, query: str) -> Answered:
    """The answer to a question."""
    return (await exchange(server, path, query))[0]


async def exchange(
    server: Server, path: str, query: str, **headers: str
) -> tuple[Answered, dict[bytes, bytes]]:
    """The answer to a question, and its headers. Names of given headers have `_` for `-`."""
    sent: list[Mapping[str, Any]] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(path, errors="surrogateescape"),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (b"if-none-match", b'W/"0"'),
            *((name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items()),
        ],
        "http_version": "1.1",
        "scheme": "http",
    }

    async def receive() -> Mapping[str, Any]:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await server(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return Answered(sent[0]["status"], body), dict(sent[0]["headers"])
