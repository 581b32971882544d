"""Requests leave nothing in memory. `CDXMILL_EXAMPLES` is the number of requests of each kind, 200 by default."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdxmill.search.sources import find_sources
from cdxmill.server.app import Server, Settings
from cdxmill.server.collections import Collection
from cdxmill.stages.zipnum.kept_texts import BlockMemory, KeptTexts

from ..material.cdx_server import CdxServer
from .conftest import MANY

REQUESTS = int(os.environ.get("CDXMILL_EXAMPLES", "200"))
WARM = 300
"""Requests until all caches are full."""
FEW = 100 + REQUESTS // 50
"""Blocks of Python's memory by which the rest may differ."""
CACHE = 1 << 17
"""Bytes of a cache that is full after a few texts."""
KINDS = [
    ("/many/cdx?url={many}&limit=9", 200),
    ("/many/cdx?url={many}absent{n}", 200),
    ("/many/cdx?url={many}s*&from=1{n:03}", 200),
    ("/many/cdx?url={many}&limit=2&closest=20200101&from=1{n:03}", 200),
    ("/many/cdx?url={many}same&filter=~digest:.*{n}", 200),
    ("/many/cdx?url={many}&showNumPages=true&pageSize=1{n}", 200),
    ("/many-index?url={many}absent{n}", 404),
    ("/cdx/search/cdx?url={many}&limit=5&showResumeKey=true&offset=0&resumeKey=x+{n}", 400),
    ("/cdx/search/cdx?url={many}&limit=-5&output=json", 200),
    ("/many?url={many}&limit=2&output=json", 200),
    ("/many?q=type:urlquery+url:{many}absent{n}", 200),
    ("/many/available?url={many}same&timestamp=1{n:03}", 200),
    ("/many/timemap/link/{many}same", 200),
    ("/many/cdx?url={many}&unknown{n}=1", 400),
    ("/unknown{n}", 404),
    ("/metrics", 200),
]


class Asked:
    """A server in this process."""

    def __init__(self, cluster: Path, directory: Path) -> None:
        [source] = find_sources(str(cluster), None)
        collections = {"many": Collection("many", [source], None, BlockMemory(CACHE))}
        limits = directory / "clients"
        settings = Settings(directory, "http://replay.example/", 1e6, limits, str(directory / "log"))
        self.server = Server(collections, settings)

    async def status(self, path: str, number: int) -> int:
        """The status of an answer, which is read whole."""
        place, _, query = path.partition("?")
        found: list[int] = []

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        async def receive() -> Mapping[str, Any]:
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "http_version": "1.1",
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"a.example"), (b"if-none-match", b"W/%d" % number)],
            "client": (f"10.0.{number // 256}.{number % 256}", 9),
        }
        await self.server(scope, receive, send)
        return found[0]

    async def ask(self, template: str, numbers: range) -> set[int]:
        """The statuses of requests of one kind."""
        return {await self.status(template.format(many=MANY, n=n % WARM), n) for n in numbers}


@pytest.fixture(scope="module")
def asked(many_cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    made = Asked(many_cluster, tmp_path_factory.mktemp("memory"))
    gc.freeze()  # each collection looks only at what is made later
    yield made
    gc.unfreeze()


@pytest.mark.parametrize(("template", "status"), KINDS)
def test_requests_leave_no_objects(asked: Asked, template: str, status: int) -> None:
    """What is filled once, such as a cache, shows in the first round only; what a request leaves shows in each."""

    async def grown() -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        await asked.ask(template, range(WARM, WARM + REQUESTS))
        gc.collect()
        return sys.getallocatedblocks() - before

    async def least() -> int:
        assert await asked.ask(template, range(WARM)) == {status}
        first = await grown()
        return first if first < FEW else await grown()

    assert asyncio.run(least()) < FEW


def test_what_is_known_of_many_questions_is_bounded() -> None:
    texts = KeptTexts(1 << 20, counted=1000)
    before = sys.getallocatedblocks()
    for number in range(50_000):
        texts.get(b"%d" % number)
    assert sys.getallocatedblocks() - before < 2 * 1000 + FEW


def test_freed_texts_go_back_to_the_system(server: CdxServer) -> None:
    server.get("/health")
    process = server.process.pid
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    environments = [Path(f"/proc/{child}/environ").read_bytes() for child in children]
    assert environments
    assert all(b"MALLOC_MMAP_THRESHOLD_=131072" in one for one in environments)
