"""A collection that takes long to open stops no other question."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdxmill.search.sources import find_sources
from cdxmill.server.app import Server, Settings
from cdxmill.server.collections import Collection

QUERY = "url=slow.com"
LINE = b'com,slow)/ 20200101000000 {"url": "http://slow.com/"}\n'
PATIENCE = 10
"""Seconds after which the slow collection opens in any case, so that the test ends."""


async def ask(server: Server, path: str, query: str) -> bytes:
    """The body of an answer."""
    sent: list[Mapping[str, Any]] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"if-none-match", b'W/"0"')],
        "http_version": "1.1",
        "scheme": "http",
    }

    async def receive() -> Mapping[str, Any]:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await server(scope, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize("path", ["/slow/cdx", "/slow", "/slow/cdx/search/cdx", "/slow/available"])
def test_other_questions_are_answered_while_a_collection_is_opened(path: str, tmp_path: Path) -> None:
    pipe = tmp_path / "slow.cdxj"
    os.mkfifo(pipe)
    answered = threading.Event()

    def write() -> None:
        answered.wait(PATIENCE)
        pipe.write_bytes(LINE)

    async def both(server: Server) -> list[bytes]:
        found: list[bytes] = []

        async def take(answer: Awaitable[bytes], then: Callable[[], object]) -> None:
            found.append(await answer)
            then()

        slow = asyncio.ensure_future(
            take(ask(server, path, QUERY + "&timestamp=2020" * path.endswith("available")), bool)
        )
        await asyncio.sleep(0)
        await take(ask(server, "/health", ""), answered.set)
        await slow
        return found

    collections = {"slow": Collection("slow", find_sources(str(pipe), None), None)}
    writer = threading.Thread(target=write)
    writer.start()
    found = asyncio.run(both(Server(collections, Settings(tmp_path))))
    writer.join()
    assert b"ok" in found[0]
    assert b"slow.com" in found[1]
