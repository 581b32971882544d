"""A request as the dialects see it, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection, Inquiry
from cdxmill.server.watch import Watch

Scope = Mapping[str, Any]
"""What ASGI says about a request."""


def site_of(scope: Scope) -> str:
    """The address of the server as the client knows it, without a `/` at its end."""
    host = dict(scope["headers"]).get(b"host", b"localhost").decode("latin-1")
    return f"{scope['scheme']}://{host}{scope.get('root_path', '')}"


@dataclass(frozen=True)
class Request:
    """A request to an endpoint of `collection`.

    `target` is the URL that follows in the path of a timemap or timegate.
    """

    collection: Collection
    query: bytes
    headers: Mapping[bytes, bytes]
    scope: Scope
    replay: str | None
    watch: Watch
    report: Callable[[Collection], Response]
    """Shows the report of a collection."""
    target: str = ""

    @property
    def site(self) -> str:
        """The address of the server; few dialects need it."""
        return site_of(self.scope)


@dataclass(frozen=True)
class PlannedResponse:
    """An answer that is not made yet. One that is not `quick` is made in a thread."""

    make: Callable[[], Response]
    is_quick: bool = True
    question: Inquiry | None = None
