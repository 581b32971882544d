"""One request and its response.

An answer is made in slices. Short ones are made at once, the others in a few threads, a slice at a time: a client that reads
slowly holds no thread, and a long answer does not stop the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from zlib import crc32

from isal import isal_zlib

from cdxmill.errors import CdxmillError, OutageError, UsageError
from cdxmill.messages import say
from cdxmill.server.answers import Headers, RequestError, Response, text_error
from cdxmill.server.collections import Collection
from cdxmill.server.dialects.request import PlannedResponse, Request, Scope
from cdxmill.server.kept_answers import KeptAnswers, key_of
from cdxmill.server.log import AccessLog
from cdxmill.server.metrics import Metrics
from cdxmill.server.routes import Route, ShowError
from cdxmill.server.watch import Ended, Watch

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

Started = tuple[Response, Iterator[bytes], bytes, bool]
"""An answer, the rest of its pieces, the bytes before them, and whether these are all."""

_SLICE, _QUICK_SECONDS, _SECONDS = 1 << 16, 0.005, 0.1
"""Bytes of a slice, and the time that it may take at once and in a thread."""
_SMALL = 1 << 10
"""Bytes that are not worth compressing."""
_LEVEL = 1
_LATER = ((b"retry-after", b"10"),)
_OUTAGE = "the storage of this collection gives no answer; ask again later"
_UNREADABLE = (
    "the index of this collection is corrupt or cannot be read there; the messages of the server say where"
)
_ALWAYS = ((b"access-control-allow-origin", b"*"), (b"x-content-type-options", b"nosniff"))
_AGE = b"public, max-age=60"


class Answering(Protocol):
    """What an exchange needs of the server."""

    metrics: Metrics
    log: AccessLog
    threads: ThreadPoolExecutor
    answers: KeptAnswers | None
    replay: str | None
    report: Callable[[Collection], Response]

    def find(self, scope: Scope) -> Route | Response:
        """The endpoint of a request, or a page that needs no question. Raises RequestError."""


def client_of(scope: Scope) -> str:
    """The address of the client; behind a proxy, the one that the proxy says."""
    return str(scope["client"][0]) if scope.get("client") else "-"


class Exchange:
    """A request, answered by `run`."""

    def __init__(self, server: Answering, scope: Scope, receive: Receive, send: Send) -> None:
        self._server, self._scope, self._receive, self._send = server, scope, receive, send
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._watch, self._begin = Watch(), time.perf_counter()
        self._name, self._status, self._sent = "other", 500, 0
        self._tag: bytes | None = None
        self._key: bytes | None = None

    async def run(self) -> None:
        """Response, and count it. Raises what broke the answer in its middle: then the connection is closed."""
        metrics = self._server.metrics
        metrics.running.inc()
        try:
            await self._answer()
        except (CdxmillError, ValueError, RecursionError) as error:
            metrics.broken.inc()
            if not self._watch.is_gone:
                say(f"cdxmill: {self._target()}: the answer is broken off ({error})")
                raise
        finally:
            metrics.running.dec()
            self._count()

    async def _answer(self) -> None:
        answer, pieces, data, is_done = await self._started()
        self._status = answer.status
        if is_done:
            await self._send_whole(answer, data)
            return
        waiting = asyncio.ensure_future(self._wait_until_gone())
        try:
            await self._send_pieces(answer, pieces, data)
        finally:
            waiting.cancel()

    async def _started(self) -> Started:
        """The answer, and its first slice. Errors so far become an answer of their own."""
        show_error: ShowError = text_error
        try:
            found = self._server.find(self._scope)
            if isinstance(found, Response):
                return found, iter(()), b"".join(found.body), True
            self._name, show_error = found.name, found.show_error
            if (same := self._unchanged(found)) is not None:
                return same, iter(()), b"", True
            return self._kept(found) or await self._made(found)
        except RequestError as error:
            failed = show_error(error)
        except Ended as error:
            failed = show_error(RequestError(503, str(error), _LATER))
        except (OutageError, UsageError) as error:  # what was a cluster is none now
            failed = show_error(self._hidden(503, _OUTAGE, error))
        except (CdxmillError, ValueError, RecursionError) as error:
            failed = show_error(self._hidden(500, _UNREADABLE, error))
        self._tag = None
        return failed, iter(()), b"".join(failed.body), True

    def _hidden(self, status: int, text: str, error: Exception) -> RequestError:
        """The error for a client, who must not see the paths of the server. Its operator sees them."""
        say(f"cdxmill: {self._target()}: {error}")
        return RequestError(status, text, _LATER if status == 503 else ())

    def _kept(self, found: Route) -> Started | None:
        """The answer, if it was kept. Those with the address of the server are not kept: it is another one for other clients."""
        answers = self._server.answers
        if answers is None or found.target or self._scope["method"] != "GET":
            return None
        self._key = key_of(self._scope["raw_path"], self._scope["query_string"])
        kept = answers.get(self._key, found.collection)
        if kept is None:
            return None
        state, answer = kept
        self._tag = self._tag_of(state)
        return answer, iter(()), b"".join(answer.body), True

    async def _made(self, found: Route) -> Started:
        planned = found.endpoint(self._request(found))
        loop, threads = asyncio.get_running_loop(), self._server.threads
        if planned.is_quick:
            answer, pieces, data, is_done = self._first_slice(planned, _QUICK_SECONDS)
        else:
            answer, pieces, data, is_done = await loop.run_in_executor(
                threads, self._first_slice, planned, _SECONDS
            )
        while not (data or is_done):  # errors so far can still get a status of their own
            data, is_done = await loop.run_in_executor(threads, self._slice, pieces, _SECONDS)
        return answer, pieces, data, is_done

    def _request(self, found: Route) -> Request:
        return Request(
            found.collection,
            self._scope["query_string"],
            self._headers,
            self._scope,
            self._server.replay,
            self._watch,
            self._server.report,
            found.target,
        )

    def _first_slice(self, planned: PlannedResponse, seconds: float) -> Started:
        self._watch.begin()
        try:
            answer = planned.make()
        finally:
            self._watch.end()
        pieces = iter(answer.body)
        data, is_done = self._slice(pieces, seconds)
        if planned.question is not None:
            state = planned.question.state
            self._tag = self._tag_of(state)
            if is_done and self._key is not None and state is not None and self._server.answers is not None:
                self._server.answers.add(self._key, state, answer, data)
        return answer, pieces, data, is_done

    def _slice(self, pieces: Iterator[bytes], seconds: float) -> tuple[bytes, bool]:
        """The next bytes, and whether they are the last."""
        if self._scope["method"] == "HEAD":
            return b"", True
        self._watch.begin()
        end, made, size = time.monotonic() + seconds, [], 0
        try:
            for piece in pieces:
                made.append(piece)
                size += len(piece)
                if size >= _SLICE or time.monotonic() > end:
                    return b"".join(made), False
            return b"".join(made), True
        finally:
            self._watch.end()

    def _unchanged(self, found: Route) -> Response | None:
        """The answer to a client that has it already."""
        known = self._headers.get(b"if-none-match")
        if known is None or (tag := self._tag_of(found.collection.state())) is None or tag not in known:
            return None
        self._tag = tag
        return Response(304, "", ())

    def _tag_of(self, state: bytes | None) -> bytes | None:
        """The ETag of an answer from a collection in a state."""
        if state is None:
            return None
        question = b"%b?%b" % (self._scope["raw_path"], self._scope["query_string"])
        return b'W/"%08x%08x"' % (crc32(state), crc32(question))

    def _head(self, answer: Response, more: Headers) -> Mapping[str, Any]:
        headers = [*_ALWAYS, *answer.headers, *more]
        if answer.kind:
            headers.append((b"content-type", answer.kind.encode()))
        if self._tag is not None and answer.status in (200, 304):
            headers += [(b"etag", self._tag), (b"cache-control", _AGE)]
        passed = (time.perf_counter() - self._begin) * 1000
        headers.append((b"server-timing", b"answer;dur=%.3f" % passed))
        return {"type": "http.response.start", "status": answer.status, "headers": headers}

    def _may_compress(self) -> bool:
        return b"gzip" in self._headers.get(b"accept-encoding", b"")

    async def _send_whole(self, answer: Response, data: bytes) -> None:
        more: list[tuple[bytes, bytes]] = []
        self._sent = len(data)
        if len(data) > _SMALL:
            more.append((b"vary", b"accept-encoding"))
            if self._may_compress():
                packer = isal_zlib.compressobj(_LEVEL, wbits=31)
                data = packer.compress(data) + packer.flush()
                more.append((b"content-encoding", b"gzip"))
        if answer.status not in (204, 304) and self._scope["method"] != "HEAD":
            more.append((b"content-length", b"%d" % len(data)))
        await self._send(self._head(answer, more))
        await self._send({"type": "http.response.body", "body": data})

    async def _send_pieces(self, answer: Response, pieces: Iterator[bytes], data: bytes) -> None:
        """Send slices as the client takes them."""
        packer = isal_zlib.compressobj(_LEVEL, wbits=31) if self._may_compress() else None
        more = [(b"vary", b"accept-encoding"), *([(b"content-encoding", b"gzip")] if packer else [])]
        await self._send(self._head(answer, more))
        loop, is_done = asyncio.get_running_loop(), False
        while not is_done and not self._watch.is_gone:
            self._sent += len(data)
            packed = packer.compress(data) if packer else data
            if packed:
                await self._send({"type": "http.response.body", "body": packed, "more_body": True})
            data, is_done = await loop.run_in_executor(self._server.threads, self._slice, pieces, _SECONDS)
        self._sent += len(data)
        last = packer.compress(data) + packer.flush() if packer else data
        await self._send({"type": "http.response.body", "body": last})

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._watch.is_gone = True

    def _target(self) -> str:
        query = self._scope["query_string"]
        target: bytes = self._scope["raw_path"] + (b"?" + query if query else b"")
        return target.decode("utf-8", "surrogateescape")

    def _count(self) -> None:
        seconds, metrics = time.perf_counter() - self._begin, self._server.metrics
        metrics.count(self._name, self._status, seconds, self._sent)
        if not self._server.log.is_open:
            return
        request = f"{self._scope['method']} {self._target()} HTTP/{self._scope['http_version']}"
        self._server.log.write(client_of(self._scope), request, self._status, self._sent, seconds)
