"""pywb's CDX API, and Common Crawl's: `/NAME/cdx` and `/NAME-index`. They differ where nothing is found.

https://github.com/webrecorder/pywb/wiki/CDX-Server-API
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from cdxmill.options.queries import MATCH_TYPES, PAGE_SIZE, Query
from cdxmill.search.query import PreparedQuery
from cdxmill.server.answers import RequestError, Response, bad_request, json_answer, started
from cdxmill.server.collections import Inquiry, prepare
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.parameters import Parameters, Plans, required
from cdxmill.stages.lines.line_lists import text_of

_NAMES = (
    "url matchType from from_ts to filter limit sort reverse closest collapse collapseTime "
    "resolveRevisits fl fields output page pageSize showNumPages nosource allowFuzzy"
)
KNOWN = tuple(_NAMES.split())
_KINDS = {"cdxj": "text/x-cdxj", "json": "text/x-ndjson", "text": "text/plain", "csv": "text/csv"}
_SORTS = ("default", "reverse", "closest")


def answer(request: Request) -> PlannedResponse:
    """The captures of a URL, as pywb gives them."""
    return _planned(request, is_empty_absent=False)


def index_answer(request: Request) -> PlannedResponse:
    """The captures of a URL, as Common Crawl's server gives them: 404 if there are none."""
    return _planned(request, is_empty_absent=True)


class _PywbPlan(NamedTuple):
    """What is asked about a URL, the output format, and whether only the pages are counted."""

    prepared: PreparedQuery
    output: str
    counts_pages: bool


def _planned(request: Request, is_empty_absent: bool) -> PlannedResponse:
    url, (prepared, output, counts_pages) = _PLANS.of(request.query)
    url = required("url", url)
    asked = Inquiry(request.collection, url, prepared, request.watch)
    if counts_pages:
        return PlannedResponse(lambda: json_answer(asked.pages()._asdict()), False, asked)
    absent = url if is_empty_absent else None
    is_quick = asked.is_quick and (absent is None or asked.is_plain)
    return PlannedResponse(lambda: _answer(asked, output, absent), is_quick, asked)


def _plan(given: Parameters) -> _PywbPlan:
    if given.flag("allowFuzzy"):
        raise bad_request("allowFuzzy is not supported: URLs are found as they are")
    output = given.one_of("output", tuple(_KINDS)) or "cdxj"
    closest, order = given.text("closest"), given.one_of("sort", _SORTS) or "default"
    fields = given.text("fields", "fl")
    limit = given.number("limit", 0)
    query = Query(
        match_type=given.one_of("matchType", MATCH_TYPES),
        from_ts=given.text("from", "from_ts"),
        to=given.text("to"),
        filter=given.all("filter"),
        limit=limit or None,
        sort="default" if order == "closest" else "reverse" if given.flag("reverse") else order,
        closest=closest,
        collapse=given.text("collapseTime", "collapse"),
        resolve_revisits=given.flag("resolveRevisits"),
        page=given.number("page"),
        page_size=given.number("pageSize", 1) or PAGE_SIZE,
        fields=tuple(fields.split(",")) if fields else None,
        output=output,
    )
    return _PywbPlan(prepare(query), output, given.flag("showNumPages"))


_PLANS = Plans(KNOWN, _plan)


def _answer(asked: Inquiry, output: str, absent: str | None) -> Response:
    pieces: Iterator[bytes] = map(text_of, asked.lists())
    if absent is not None:
        pieces = filter(None, pieces)
        first = next(pieces, None)
        if first is None:
            raise RequestError(404, f"No Captures found for: {absent}")
        pieces = chain([first], pieces)
    header = [] if asked.header is None else [asked.header + b"\n"]
    return Response(200, _KINDS[output], chain(header, started(pieces)))
