"""The Wayback CDX server's API: `/cdx/search/cdx` and `/NAME/cdx/search/cdx`.

https://github.com/internetarchive/wayback/tree/master/wayback-cdx-server

A resume key is the urlkey and the timestamp of the last line, and how many lines up to it have both: several captures of one
second are neither skipped nor given twice. With `collapse`, a resumed answer is made from its start, because a line may
collapse into one that was given long before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_to_bytes

from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import MATCH_TYPES, PAGE_SIZE, Query
from cdxmill.search.query import PreparedQuery
from cdxmill.server.answers import JSON, TEXT, Response, bad_request, started
from cdxmill.server.collections import Inquiry, prepare
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.dialects.values import fields_of, json_line, json_rows, pattern_filter, text_rows
from cdxmill.server.parameters import Parameters, Plans, required

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
_NAMES = (
    "url matchType from to filter limit offset sort closest collapse collapseTime fl output "
    "page pageSize showNumPages showResumeKey resumeKey resolveRevisits fastLatest gzip"
)
KNOWN = tuple(_NAMES.split())
_SORTS = ("regular", "default", "reverse", "closest")
_MOST_LAST = 100_000
"""Lines that are held in memory for a negative limit."""
_BATCH = 1000


class _LinePlace(NamedTuple):
    """The place of a line: urlkey and timestamp, and how many given lines up to it have both."""

    start: bytes
    given: int


class _WaybackPlan(NamedTuple):
    """What is asked about a URL, which lines of the answer are given, and how; or whether only the pages are counted."""

    prepared: PreparedQuery
    paging: _Paging
    names: tuple[str, ...]
    is_json: bool
    counts_pages: bool


def answer(request: Request) -> PlannedResponse:
    """The captures of a URL, as the Wayback Machine's server gives them."""
    url, (prepared, paging, names, is_json, counts_pages) = _PLANS.of(request.query)
    paging = copy(paging)
    asked = _asked(request, required("url", url), prepared, paging)
    if counts_pages:
        return PlannedResponse(lambda: Response(200, TEXT, (b"%d\n" % asked.pages().pages,)), False, asked)
    write = _as_json if is_json else _as_text
    kind, is_quick = JSON if is_json else TEXT, asked.is_quick and paging.resumed is None
    return PlannedResponse(lambda: Response(200, kind, started(write(asked, paging, names))), is_quick, asked)


class _Paging:
    """Which lines of an answer are given, and the key for the next ones."""

    def __init__(self, given: Parameters) -> None:
        self.limit, self.offset = given.number("limit", -_MOST_LAST) or 0, given.number("offset") or 0
        self.shows_key, self.is_collapsed = (
            given.flag("showResumeKey"),
            "collapse" in given or "collapseTime" in given,
        )
        key = given.text("resumeKey")
        self.resumed = None if key is None else _parse_key(key)
        self.key: bytes | None = None
        others = ("page", "resolveRevisits", "offset", "closest")
        if (key is not None or self.shows_key) and (self.limit < 0 or any(name in given for name in others)):
            raise bad_request(f"resume keys do not go with a negative limit, nor with {', '.join(others)}")

    @property
    def bound(self) -> int | None:
        """The number of lines that are needed."""
        if not self.limit or self.resumed is not None or self.shows_key:
            return None
        return abs(self.limit) + self.offset

    def lists(self, lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        """The lines that are given, in their order."""
        if self.limit < 0:
            last = list(chain.from_iterable(lists))[self.offset :]
            yield last[::-1]
            return
        lists = _after(lists, self.resumed) if self.resumed is not None else lists
        if not (self.limit or self.offset):
            yield from lists
            return
        lines = chain.from_iterable(lists)
        wanted = islice(lines, self.offset, self.offset + self.limit if self.limit else None)
        place = self.resumed or _LinePlace(b"", 0)
        while some := list(islice(wanted, _BATCH)):
            for line in some if self.shows_key else ():
                place = _LinePlace(_start(line), place.given + 1 if _start(line) == place.start else 1)
            yield some
        if self.shows_key and place.given and next(lines, None) is not None:
            self.key = quote_plus(place.start).encode() + b"+%d" % place.given


def _plan(given: Parameters) -> _WaybackPlan:
    names = fields_of(given.text("fl"), FIELDS)
    is_json = given.one_of("output", ("json", "text")) == "json"
    paging, order = _Paging(given), given.one_of("sort", _SORTS)
    query = Query(
        match_type=given.one_of("matchType", MATCH_TYPES),
        from_ts=given.text("from"),
        to=given.text("to"),
        filter=tuple(map(pattern_filter, given.all("filter"))),
        limit=paging.bound,
        sort="reverse" if paging.limit < 0 or order == "reverse" else "default",
        closest=given.text("closest"),
        collapse=given.text("collapse", "collapseTime"),
        resolve_revisits=given.flag("resolveRevisits"),
        page=given.number("page"),
        page_size=given.number("pageSize", 1) or PAGE_SIZE,
    )
    return _WaybackPlan(prepare(query), paging, names, is_json, given.flag("showNumPages"))


_PLANS = Plans(KNOWN, _plan)


def _asked(request: Request, url: str, prepared: PreparedQuery, paging: _Paging) -> Inquiry:
    asked = Inquiry(request.collection, url, prepared, request.watch)
    if paging.resumed is None or paging.is_collapsed:
        return asked
    low, high = asked.keys.low, asked.keys.high
    rest = KeyRange(min(max(low, paging.resumed.start), high), high)
    return Inquiry(request.collection, rest, prepared, request.watch)


def _start(line: bytes) -> bytes:
    """The urlkey and the timestamp of a line."""
    return line[: line.find(b" ", line.find(b" ") + 1)]


def _parse_key(text: str) -> _LinePlace:
    """A resume key. Clients send it as it was given, which the query string decodes, or encode it once more."""
    data = text.encode("utf-8", "surrogateescape")
    data = data if b" " in data else unquote_to_bytes(data.replace(b"+", b" "))
    start, _, number = data.rpartition(b" ")
    if b" " not in start or not number.isdigit() or len(number) > 9:
        raise bad_request(f"invalid resumeKey {text[:80]!r}: give the last line of the answer before")
    return _LinePlace(start, int(number))


def _after(lists: Iterable[list[bytes]], place: _LinePlace) -> Iterator[list[bytes]]:
    """The lines after a place."""
    left = place.given
    for lines in lists:
        kept = []
        for line in lines:
            if (start := _start(line)) == place.start and left:
                left -= 1
            elif start >= place.start:
                kept.append(line)
        yield kept


def _as_text(asked: Inquiry, paging: _Paging, names: tuple[str, ...]) -> Iterator[bytes]:
    yield from text_rows(names, paging.lists(asked.lists()))
    if paging.key is not None:
        yield b"\n" + paging.key + b"\n"


def _as_json(asked: Inquiry, paging: _Paging, names: tuple[str, ...]) -> Iterator[bytes]:
    last = b""
    for piece in json_rows(names, paging.lists(asked.lists())):
        yield last
        last = piece
    if paging.key is not None:
        last = b",\n[],\n" + json_line([paging.key.decode()]) + last
    yield last
