"""The application in this process: what it holds until it stops, and how often a client may ask it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdxmill.search.sources import find_sources
from cdxmill.server.app import Server, Settings
from cdxmill.server.collections import Collection
from cdxmill.server.dialects.request import Scope

from .asking import ask, exchange
from .conftest import line


def serving(directory: Path, rate: float = 1e6) -> Server:
    places = [directory / "a.cdxj", directory / "b.cdxj"]
    for place in places:
        place.write_text(line("example,many)/", "2020"))
    collections = {
        place.stem: Collection(place.stem, find_sources(str(place), None), None) for place in places
    }
    settings = Settings(directory, None, rate, directory / "clients", str(directory / "log"), 1 << 20)
    return Server(collections, settings)


def held_in(directory: Path) -> set[str]:
    """The files that this process has open in a directory."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = link.readlink()
        except OSError:  # that of the listing
            continue
        if target.is_relative_to(directory):
            found.add(target.name)
    return found


async def lived(server: Server, *messages: str) -> list[str]:
    """What the server says to these messages of uvicorn."""
    said, left = list[str](), iter(messages)

    async def receive() -> Mapping[str, Any]:
        return {"type": f"lifespan.{next(left)}"}

    async def send(message: Mapping[str, Any]) -> None:
        said.append(message["type"])

    scope: Scope = {"type": "lifespan"}
    await server(scope, receive, send)
    return said


def test_a_server_that_stops_holds_nothing(tmp_path: Path) -> None:
    server = serving(tmp_path)

    async def run() -> list[str]:
        for name in ("a", "b"):
            assert (await ask(server, f"/{name}/cdx", "url=many.example")).status == 200
        assert held_in(tmp_path) == {"a.cdxj", "b.cdxj", "log", "clients"}
        assert any(one.name.startswith("answers") for one in threading.enumerate())
        return await lived(server, "startup", "shutdown")

    assert asyncio.run(run()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert held_in(tmp_path) == set()
    assert not any(one.name.startswith("answers") for one in threading.enumerate())
    assert (tmp_path / "log").read_text().count("\n") == 2


def test_a_client_that_asks_too_often_gets_the_time_to_wait(tmp_path: Path) -> None:
    """What needs no cluster is not counted."""
    server = serving(tmp_path, rate=0.01)

    async def run() -> None:
        begin = time.monotonic()
        for path in ("/health", "/metrics", "/a/cdx", "/collinfo.json", "/"):
            assert (await ask(server, path, "url=many.example" * path.endswith("cdx"))).status == 200
        for name in ("a", "b"):
            refused, headers = await exchange(server, f"/{name}/cdx", "url=many.example")
            assert refused.status == 429
            assert 100 - (time.monotonic() - begin) <= int(headers[b"retry-after"]) <= 100
        await lived(server, "shutdown")

    asyncio.run(run())
