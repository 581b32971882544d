"""The server as an ASGI application (https://asgi.readthedocs.io): what all requests share, and what is found at a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cdxmill.server.answers import JSON, RequestError, Response
from cdxmill.server.collections import Collection
from cdxmill.server.dialects.request import Scope, site_of
from cdxmill.server.exchange import Exchange, Receive, Send, client_of
from cdxmill.server.kept_answers import KeptAnswers
from cdxmill.server.limits import ClientLimits
from cdxmill.server.log import AccessLog
from cdxmill.server.metrics import KIND, Metrics
from cdxmill.server.pages import collection_list, page
from cdxmill.server.report import Reports
from cdxmill.server.routes import Route, route

_THREADS = 4


@dataclass(frozen=True)
class Settings:
    """What the server was started with, beside its collections."""

    shared: Path
    """A directory for what all workers share."""
    replay: str | None = None
    rate: float = 0.0
    clients: Path | None = None
    """The file in which workers count the requests of each client, if there is a rate."""
    log: str | None = None
    cache: int = 0
    """Bytes of texts that are kept. An eighth of them may be answers."""


class Server:
    """The application. Each worker has one."""

    def __init__(self, collections: Mapping[str, Collection], settings: Settings) -> None:
        self._collections = collections
        self.metrics, self.log, self.replay = Metrics(), AccessLog(settings.log), settings.replay
        self._limit = ClientLimits(settings.rate, settings.clients) if settings.clients else None
        self.report: Callable[[Collection], Response] = Reports(settings.shared).page
        self.answers = KeptAnswers(settings.cache) if settings.cache else None
        self.threads = ThreadPoolExecutor(_THREADS, "answers")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Response a request, or start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await Exchange(self, scope, receive, send).run()
        else:
            raise RuntimeError(f"{scope['type']} is not supported")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
                continue
            self.threads.shutdown(cancel_futures=True)
            for one in self._collections.values():
                one.close()
            self.log.close()
            if self._limit is not None:
                self._limit.close()
            await send({"type": "lifespan.shutdown.complete"})
            return

    def find(self, scope: Scope) -> Route | Response:
        """The endpoint of a request, or a page that needs no question. Raises RequestError."""
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            raise RequestError(
                405, "only GET, HEAD and OPTIONS are allowed", ((b"allow", b"GET, HEAD, OPTIONS"),)
            )
        if scope["method"] == "OPTIONS":
            return Response(
                204,
                "text/plain",
                (),
                ((b"access-control-allow-headers", b"*"), (b"allow", b"GET, HEAD, OPTIONS")),
            )
        path = scope["path"]
        if path == "/health":
            return Response(200, JSON, (b'{"status": "ok"}\n',))
        if path == "/metrics":
            return Response(200, KIND, (self.metrics.text(),))
        if path == "/collinfo.json":
            return collection_list(self._collections.values(), site_of(scope), self.replay)
        if (found := page(path)) is not None:
            return found
        self._check_rate(scope)
        return route(path, scope["raw_path"], scope["query_string"], self._collections)

    def _check_rate(self, scope: Scope) -> None:
        if self._limit is None:
            return
        wait = self._limit.wait(client_of(scope))
        if wait:
            seconds = b"%d" % max(1, round(wait + 0.5))
            raise RequestError(
                429, "too many requests; wait, then go on more slowly", ((b"retry-after", seconds),)
            )
