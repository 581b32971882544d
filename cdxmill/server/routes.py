"""Paths -> endpoints.

/                                        the page for people
/NAME/cdx, /NAME-index                   pywb, Common Crawl
/cdx/search/cdx, /NAME/cdx/search/cdx    the Wayback CDX server; the first one asks the first collection
/NAME?url=, /NAME?q=                     OutbackCDX, OpenWayback
/wayback/available, /NAME/available      the availability API
/NAME/report                             what is in the collection, for people
/NAME/timemap/link/URL, /NAME/timemap/json/URL, /NAME/timegate/URL
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from cdxmill.server.answers import RequestError, Response, json_error, text_error
from cdxmill.server.collections import Collection
from cdxmill.server.dialects import memento, outback, pywb, wayback, xml_query
from cdxmill.server.dialects.request import PlannedResponse, Request

Endpoint = Callable[[Request], PlannedResponse]
ShowError = Callable[[RequestError], Response]


class Route(NamedTuple):
    """An endpoint with its name in the metrics, how it shows errors, and what the path names."""

    name: str
    endpoint: Endpoint
    collection: Collection
    target: str = ""
    show_error: ShowError = text_error


def _report(request: Request) -> PlannedResponse:
    return PlannedResponse(lambda: request.report(request.collection), is_quick=False)


_OF_COLLECTION: dict[str, tuple[str, Endpoint, ShowError]] = {
    "cdx": ("pywb", pywb.answer, json_error),
    "index": ("pywb", pywb.answer, json_error),
    "cdx/search/cdx": ("wayback", wayback.answer, text_error),
    "available": ("available", memento.available, json_error),
    "report": ("report", _report, text_error),
}
_OF_URL: dict[str, tuple[str, Endpoint]] = {
    "timemap/link/": ("timemap", memento.link_timemap),
    "timemap/json/": ("timemap", memento.json_timemap),
    "timegate/": ("timegate", memento.timegate),
}
_OF_FIRST = {"/cdx/search/cdx": "cdx/search/cdx", "/wayback/available": "available"}
_INDEX = "-index"


def route(path: str, raw_path: bytes, query: bytes, collections: Mapping[str, Collection]) -> Route:
    """The endpoint of a path. Raises RequestError."""
    if path in _OF_FIRST:
        return _of_collection(_OF_FIRST[path], next(iter(collections.values())))
    name, slash, rest = path.removeprefix("/").partition("/")
    if not slash and name.endswith(_INDEX) and (found := collections.get(name.removesuffix(_INDEX))):
        return Route("index", pywb.index_answer, found, show_error=json_error)
    found = collections.get(name)
    if found is None:
        raise RequestError(
            404, "unknown page; /collinfo.json lists the collections, and / explains their endpoints"
        )
    if not rest:
        return _of_query(query, found)
    if rest in _OF_COLLECTION:
        return _of_collection(rest, found)
    for start, (kind, endpoint) in _OF_URL.items():
        if rest.startswith(start):
            return Route(kind, endpoint, found, _target(raw_path, start, query))
    raise RequestError(404, f"unknown endpoint of the collection {name}; the page / lists all endpoints")


def _of_collection(rest: str, collection: Collection) -> Route:
    name, endpoint, show_error = _OF_COLLECTION[rest]
    return Route(name, endpoint, collection, show_error=show_error)


def _of_query(query: bytes, collection: Collection) -> Route:
    if query.startswith(b"q=") or b"&q=" in query:
        return Route("xml", xml_query.answer, collection)
    return Route("outback", outback.answer, collection)


def _target(raw_path: bytes, start: str, query: bytes) -> str:
    """The URL in a path, with its query."""
    text = raw_path.decode("utf-8", "surrogateescape")
    found = text[text.index(start) + len(start) :]
    if "://" not in found[:20] and "%3a" in found[:20].lower():
        found = unquote(found, errors="surrogateescape")
    return found + ("?" + query.decode("utf-8", "surrogateescape") if query else "")
