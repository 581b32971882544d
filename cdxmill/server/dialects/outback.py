"""OutbackCDX's query API: `/NAME?url=...`. https://github.com/nla/outbackcdx"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import MATCH_TYPES, Query
from cdxmill.search.query import PreparedQuery
from cdxmill.server.answers import JSON, TEXT, Response, bad_request, started
from cdxmill.server.collections import Inquiry, prepare
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.dialects.values import (
    fields_of,
    json_line,
    json_rows,
    pattern_filter,
    rows_of,
    text_row,
    text_rows,
)
from cdxmill.server.parameters import Parameters, Plans, required

FIELDS = (
    *(
        "urlkey",
        "timestamp",
        "url",
        "mime",
        "status",
        "digest",
        "redirecturl",
        "robotflags",
        "length",
        "offset",
    ),
    "filename",
)
_NAMES = (
    "url urlkey matchType from to filter limit sort closest collapse collapseToFirst fl "
    "output omitSelfRedirects"
)
KNOWN = tuple(_NAMES.split())
_START = ("urlkey", "timestamp")
_NUMBERS = frozenset(("timestamp", "status", "length", "offset"))
Write = Callable[[tuple[str, ...], Iterable[list[bytes]]], Iterator[bytes]]


class _OutbackPlan(NamedTuple):
    """What is asked about a URL or about a `key`, the output format, and the fields."""

    prepared: PreparedQuery
    output: str
    names: tuple[str, ...]
    key: str | None


def answer(request: Request) -> PlannedResponse:
    """The captures of a URL, as OutbackCDX gives them."""
    url, (prepared, output, names, key) = _PLANS.of(request.query)
    asked = Inquiry(request.collection, _wanted(url, key), prepared, request.watch)
    kind, write = _WRITERS[output]
    return PlannedResponse(
        lambda: Response(200, kind, started(write(names, asked.lists()))), asked.is_quick, asked
    )


def _plan(given: Parameters) -> _OutbackPlan:
    if given.flag("omitSelfRedirects"):
        raise bad_request("omitSelfRedirects is not supported")
    order = given.one_of("sort", ("default", "reverse", "closest"))
    query = Query(
        match_type=given.one_of("matchType", MATCH_TYPES),
        from_ts=given.text("from"),
        to=given.text("to"),
        filter=tuple(map(pattern_filter, given.all("filter"))),
        limit=given.number("limit") or None,
        sort="reverse" if order == "reverse" else "default",
        closest=given.text("closest") if order == "closest" else None,
        collapse=given.text("collapseToFirst", "collapse"),
    )
    output = given.one_of("output", tuple(_WRITERS)) or "cdx"
    return _OutbackPlan(prepare(query), output, fields_of(given.text("fl"), FIELDS), given.text("urlkey"))


_PLANS = Plans(KNOWN, _plan)


def _wanted(url: str | None, key: str | None) -> str | KeyRange:
    if (key is None) == (url is None):
        raise bad_request("give either url or urlkey")
    if key is None:
        return required("url", url)
    low = key.encode("utf-8", "surrogateescape")
    return KeyRange(low, low + b"!", is_one_url=True)


def _as_arrays(names: tuple[str, ...], lists: Iterable[list[bytes]]) -> Iterator[bytes]:
    return json_rows(names, lists, _value)


def _as_objects(names: tuple[str, ...], lists: Iterable[list[bytes]]) -> Iterator[bytes]:
    before = b"["
    for lines in lists:
        found = [
            json_line(
                {name: _value(name, text) for name, text in zip(names, row, strict=True) if text != "-"}
            )
            for row in rows_of(lines, names)
        ]
        yield before + b",\n".join(found) if found else b""
        before = b",\n" if found else before
    yield b"[]\n" if before == b"[" else b"]\n"


def _as_cdxj(names: tuple[str, ...], lists: Iterable[list[bytes]]) -> Iterator[bytes]:
    own = [name for name in names if name not in _START]
    for lines in lists:
        yield b"".join(_cdxj(row, own) for row in rows_of(lines, (*_START, *own)))


def _cdxj(row: list[str], names: list[str]) -> bytes:
    """A line of CDXJ from a row whose first fields are those of `_START`."""
    size = len(_START)
    kept = {name: text for name, text in zip(names, row[size:], strict=True) if text != "-"}
    return text_row(row[:size]) + b" " + json_line(kept) + b"\n"


def _value(name: str, text: str) -> Any:
    """Numbers are numbers, as in OutbackCDX."""
    is_number = name in _NUMBERS and text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if is_number else text


_WRITERS: dict[str, tuple[str, Write]] = {
    "cdx": (TEXT, text_rows),
    "json": (JSON, _as_arrays),
    "jsondict": (JSON, _as_objects),
    "cdxj": ("text/x-cdxj", _as_cdxj),
}
