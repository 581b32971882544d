"""What an endpoint answers: a status, a content type, and the body in pieces that are made while it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from cdxmill.errors import CdxmillError
from cdxmill.messages import printable

TEXT, JSON = "text/plain; charset=utf-8", "application/json; charset=utf-8"
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Response:
    """A response. Errors while `body` is made break the connection, so that no client takes a part for the whole."""

    status: int
    kind: str
    body: Iterable[bytes]
    headers: Headers = ()


class RequestError(CdxmillError):
    """A request that gets a status of its own, with one line of text."""

    def __init__(self, status: int, text: str, headers: Headers = ()) -> None:
        super().__init__(text)
        self.code, self.headers = status, headers


def bad_request(text: str) -> RequestError:
    """The error for wrong parameters."""
    return RequestError(400, text)


def text_error(error: RequestError) -> Response:
    """An error as a line of text."""
    return Response(
        error.code, TEXT, (printable(str(error)).encode("utf-8", "replace") + b"\n",), error.headers
    )


def json_error(error: RequestError) -> Response:
    """An error as pywb gives it."""
    return json_answer({"message": printable(str(error))}, error.code, error.headers)


def json_answer(value: object, status: int = 200, headers: Headers = ()) -> Response:
    """A value as JSON."""
    return Response(status, JSON, (json.dumps(value).encode(), b"\n"), headers)


def started(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, of which the first one is made now: its errors come before the header is sent."""
    rest = iter(pieces)
    first = next(rest, None)
    return iter(()) if first is None else chain([first], rest)
