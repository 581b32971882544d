"""OpenWayback's XML query, which pywb's `xmlquery+` sends, too: `/NAME?q=type:urlquery url:...`.

Nothing found is a status of 200 with an error in the XML: OpenWayback takes a 404 for a server that does not work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, groupby, islice
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from cdxmill.formats.lines.capture_fields import Fields
from cdxmill.options.queries import Query
from cdxmill.regex import regex
from cdxmill.server.answers import Response, bad_request, started
from cdxmill.server.collections import Inquiry, prepare
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.parameters import Parameters
from cdxmill.stages.lines.choose_lines import seconds

KNOWN = ("q", "count", "start_page", "accesspoint")
_KIND = "application/xml; charset=utf-8"
_TYPES = {"urlquery": "resultstypecapture", "prefixquery": "resultstypeurl"}
_ELEMENTS = {
    "compressedoffset": "offset",
    "compressedendoffset": "length",
    "mimetype": "mime",
    "file": "filename",
    "redirecturl": "redirect",
    "urlkey": "urlkey",
    "digest": "digest",
    "httpresponsecode": "status",
    "robotflags": "robotflags",
    "url": "url",
    "capturedate": "timestamp",
}
_COUNT, _FEW = 10_000, 100
_NOT_XML = regex("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_START = '<?xml version="1.0" encoding="UTF-8"?>\n<wayback>'
_ABSENT = (
    "<error><title>Resource Not In Archive</title>"
    "<message>The Resource you requested is not in this archive.</message></error>"
)


class _Query(NamedTuple):
    """What a client asks."""

    kind: str
    url: str
    date: str
    first: int
    most: int


def answer(request: Request) -> PlannedResponse:
    """The captures of a URL, or the URLs with a prefix, as XML."""
    given = Parameters(request.query, KNOWN)
    query = _parse(given)
    is_prefix = query.kind == "prefixquery"
    question = Query(match_type="prefix" if is_prefix else "exact")
    if query.date and not is_prefix:  # OpenWayback asks for few captures, and replays the nearest of these
        question = replace(question, closest=query.date[:14], limit=query.first + query.most)
    asked = Inquiry(request.collection, query.url, prepare(question), request.watch)
    make = _urls if is_prefix else _captures
    is_quick = asked.is_quick and not is_prefix and (question.limit or 0) <= _FEW
    return PlannedResponse(
        lambda: Response(200, _KIND, started(_document(make(asked, query), query))), is_quick, asked
    )


def _parse(given: Parameters) -> _Query:
    words = (word.partition(":") for word in given.required("q").split(" "))
    asked = {unquote_plus(name): unquote_plus(value) for name, _, value in words}
    kind, url = asked.get("type", "urlquery").lower(), asked.get("url", "")
    if kind not in _TYPES:
        raise bad_request(f"type:{kind[:80]} is not supported; expected one of {', '.join(_TYPES)}")
    if not url:
        raise bad_request("q has no url:")
    count = given.number("count", 1) or _number(asked.get("limit")) or _COUNT
    page = given.number("start_page")
    start = _number(asked.get("offset")) if page is None else max(0, page - 1) * count
    date = asked.get("date", "")
    if date and not (date.isascii() and date.isdigit() and 4 <= len(date) <= 17):
        raise bad_request(f"date:{date[:80]} is not a timestamp")
    return _Query(kind, url, date, start, count)


def _number(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise bad_request(f"{text[:80]!r}: expected a whole number")
    return int(text)


def _document(results: Iterator[str], query: _Query) -> Iterator[bytes]:
    """The document: its results and one request, or an error. Both are needed by OpenWayback."""
    number = 0
    for result in results:
        yield _bytes(
            f"<result>{result}</result>" if number else f"{_START}<results><result>{result}</result>"
        )
        number += 1
    if not number:
        yield _bytes(f"{_START}{_ABSENT}</wayback>")
        return
    now = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    parts = {
        "startdate": "19960101000000",
        "enddate": now,
        "type": query.kind,
        "firstreturned": query.first,
        "url": query.url,
        "resultsrequested": query.most,
        "resultstype": _TYPES[query.kind],
        "numreturned": number,
        "numresults": query.first + number,
    }
    yield _bytes(f"</results><request>{_elements(parts)}</request></wayback>")


def _captures(asked: Inquiry, query: _Query) -> Iterator[str]:
    chosen: Iterator[Fields] = islice(asked.captures(), query.first, query.first + query.most)
    if query.date:  # they come nearest first
        chosen = iter(sorted(chosen, key=lambda fields: str(fields["timestamp"])))
    wanted, before = seconds(query.date) if query.date else None, next(chosen, None)
    for fields in chain(chosen, [None] if before is not None else []):
        assert before is not None
        is_closest = wanted is not None and (
            fields is None or _distance(before, wanted) < _distance(fields, wanted)
        )
        wanted = None if is_closest else wanted
        values = {name: before.get(stored, "-") for name, stored in _ELEMENTS.items()}
        if "length" not in before:
            del values["compressedendoffset"]
        yield _elements(values | ({"closest": "true"} if is_closest else {}))
        before = fields


def _distance(fields: Fields, wanted: float) -> float:
    try:
        return abs(seconds(str(fields["timestamp"])) - wanted)
    except ValueError:
        return float("inf")


def _urls(asked: Inquiry, query: _Query) -> Iterator[str]:
    groups = (_url(list(same)) for _, same in groupby(asked.captures(), lambda fields: fields["urlkey"]))
    return islice(groups, query.first, query.first + query.most)


def _url(captures: list[Fields]) -> str:
    first, last = captures[0], captures[-1]
    digests = [one for one, _ in groupby(captures, lambda fields: fields.get("digest"))]
    values = {
        "urlkey": last["urlkey"],
        "originalurl": last.get("url", "-"),
        "numversions": len(digests),
        "numcaptures": len(captures),
        "firstcapturets": first["timestamp"],
        "lastcapturets": last["timestamp"],
    }
    return _elements(values)


def _elements(values: dict[str, object]) -> str:
    return "".join(f"<{name}>{_text(value)}</{name}>" for name, value in values.items())


def _text(value: object) -> str:
    """The text of an element. What XML cannot have is percent-encoded."""
    return escape(_NOT_XML.sub(lambda bad: "".join(f"%{byte:02X}" for byte in _raw(bad[0])), str(value)))


def _raw(char: str) -> bytes:
    return (
        char.encode("utf-8", "surrogateescape")
        if "\udc80" <= char <= "\udcff"
        else char.encode("utf-8", "replace")
    )


def _bytes(text: str) -> bytes:
    return text.encode()
