"""A request as the dialects see it, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection, Inquiry
from cdxmill.server.watch import Watch


@dataclass(frozen=True)
class Request:
    """A request to an endpoint of `collection`. `site` is the address of the server as the client knows it, without a `/` at its end.

    `target` is the URL that follows in the path of a timemap or timegate.
    """

    collection: Collection
    query: bytes
    headers: Mapping[bytes, bytes]
    site: str
    replay: str | None
    watch: Watch
    target: str = ""


@dataclass(frozen=True)
class PlannedResponse:
    """An answer that is not made yet. One that is not `quick` is made in a thread."""

    make: Callable[[], Response]
    is_quick: bool = True
    question: Inquiry | None = None
