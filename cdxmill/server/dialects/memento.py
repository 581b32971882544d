"""Memento (RFC 7089): timemaps as links and as JSON, and a timegate; and the Wayback Machine's availability API.

They name pages, so they need the address of a replay server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from itertools import chain

from cdxmill.formats.lines.capture_fields import Fields
from cdxmill.options.queries import Query
from cdxmill.server.answers import TEXT, RequestError, Response, bad_request, json_answer, started
from cdxmill.server.collections import Inquiry, prepare
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.parameters import Parameters
from cdxmill.stages.lines.choose_lines import seconds

_LINKS = "application/link-format"
_ABSENT = "there is no capture of this URL"


def available(request: Request) -> PlannedResponse:
    """The capture nearest to a time: `?url=...&timestamp=...`. https://archive.org/help/wayback_api.php"""
    given = Parameters(request.query, ("url", "timestamp"), ())
    url, moment = given.required("url"), given.text("timestamp")
    sort = "reverse" if moment is None else "default"
    order = Query(match_type="exact", filter=("~status:2..$",), limit=1, sort=sort, closest=moment)
    asked = Inquiry(request.collection, url, prepare(order), request.watch)

    def make() -> Response:
        found = next(asked.captures(), None)
        if found is None:
            return json_answer({"url": url, "archived_snapshots": {}})
        closest = {"status": str(found.get("status", "-")), "available": True}
        if request.replay is not None:
            closest["url"] = _memento(request.replay, found)
        closest["timestamp"] = str(found["timestamp"])
        return json_answer({"url": url, "archived_snapshots": {"closest": closest}})

    return PlannedResponse(make, asked.is_quick, asked)


def link_timemap(request: Request) -> PlannedResponse:
    """All captures of a URL as links."""
    replay, asked = _needed(request), _all(request)
    return PlannedResponse(
        lambda: Response(200, _LINKS, started(_links(request, asked, replay))), False, asked
    )


def json_timemap(request: Request) -> PlannedResponse:
    """All captures of a URL as JSON."""
    replay, asked = _needed(request), _all(request)
    return PlannedResponse(
        lambda: Response(200, "application/json", started(_json(request, asked, replay))), False, asked
    )


def timegate(request: Request) -> PlannedResponse:
    """A redirect to the capture nearest to the time in the header Accept-Datetime; without one, to the newest."""
    replay, moment = _needed(request), _accepted(request)
    query = Query(match_type="exact", limit=1, sort="reverse")
    if moment is not None:
        query = Query(match_type="exact", limit=1, closest=moment)
    asked = Inquiry(request.collection, request.target, prepare(query), request.watch)

    def make() -> Response:
        found = next(asked.captures(), None)
        if found is None:
            raise RequestError(404, _ABSENT, ((b"vary", b"accept-datetime"),))
        links = ", ".join(_beside(request, "timemap"))
        headers = {"location": _memento(replay, found), "vary": "accept-datetime", "link": links}
        return Response(302, TEXT, (), [(name.encode(), _header(value)) for name, value in headers.items()])

    return PlannedResponse(make, asked.is_quick, asked)


def _header(value: str) -> bytes:
    """The bytes of a header. Characters that could end it are percent-encoded."""
    return "".join(
        char
        if " " <= char < "\x7f"
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in value
    ).encode()


def _needed(request: Request) -> str:
    if request.replay is None:
        raise RequestError(404, "this server knows no replay server; it needs the option --replay")
    return request.replay


def _all(request: Request) -> Inquiry:
    return Inquiry(request.collection, request.target, prepare(Query(match_type="exact")), request.watch)


def _memento(replay: str, fields: Fields) -> str:
    return f"{replay}{fields['timestamp']}/{fields.get('url', '')}"


def _accepted(request: Request) -> str | None:
    wanted = request.headers.get(b"accept-datetime")
    if wanted is None:
        return None
    try:
        date = parsedate_to_datetime(wanted.decode("ascii"))
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        raise bad_request(
            "invalid Accept-Datetime; expected a date such as Thu, 31 May 2007 20:35:00 GMT"
        ) from None
    return date.strftime("%Y%m%d%H%M%S")


def _beside(request: Request, *kinds: str) -> Iterator[str]:
    """The links to the URL itself, and to the timemap or timegate."""
    place = f"{request.site}/{request.collection.name}"
    yield f'<{request.target}>; rel="original"'
    if "timemap" in kinds:
        yield f'<{place}/timemap/link/{request.target}>; rel="timemap"; type="{_LINKS}"'
    if "self" in kinds:
        yield f'<{place}/timemap/link/{request.target}>; rel="self"; type="{_LINKS}"'
        yield f'<{place}/timegate/{request.target}>; rel="timegate"'


def _date(fields: Fields) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds(str(fields["timestamp"])), UTC)
    except ValueError:
        return None


def _mementos(asked: Inquiry, replay: str) -> Iterator[tuple[datetime, str]]:
    """The captures that have a date, with the addresses of their pages; without one, a capture is no memento.

    Raises RequestError if there is none.
    """
    found = ((date, fields) for fields in asked.captures() if (date := _date(fields)) is not None)
    first = next(found, None)
    if first is None:
        raise RequestError(404, _ABSENT)
    return ((date, _memento(replay, fields)) for date, fields in chain([first], found))


def _links(request: Request, asked: Inquiry, replay: str) -> Iterator[bytes]:
    mementos = _mementos(asked, replay)
    yield ",\n".join(_beside(request, "self")).encode("utf-8", "surrogateescape")
    for date, page in mementos:
        link = f',\n<{page}>; rel="memento"; datetime="{format_datetime(date, usegmt=True)}"'
        yield link.encode("utf-8", "surrogateescape")
    yield b"\n"


def _json(request: Request, asked: Inquiry, replay: str) -> Iterator[bytes]:
    mementos = _mementos(asked, replay)
    place = f"{request.site}/{request.collection.name}"
    start = {
        "original_uri": request.target,
        "timegate_uri": f"{place}/timegate/{request.target}",
        "timemap_uri": {"link_format": f"{place}/timemap/link/{request.target}"},
    }
    yield json.dumps(start).encode()[:-1] + b', "mementos": {"list": ['
    before = b"\n"
    for date, page in mementos:
        memento = {"datetime": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "uri": page}
        yield before + json.dumps(memento).encode()
        before = b",\n"
    yield b"\n]}}\n"
