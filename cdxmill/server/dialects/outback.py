"""OutbackCDX's query API: `/NAME?url=...`. https://github.com/nla/outbackcdx"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import MATCH_TYPES, Query
from cdxmill.server.answers import JSON, TEXT, Response, bad_request, started
from cdxmill.server.collections import Inquiry
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.dialects.values import fields_of, json_line, json_rows, pattern_filter, rows_of, text_row
from cdxmill.server.parameters import Parameters

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
_NUMBERS = frozenset(("timestamp", "status", "length", "offset"))
Write = Callable[[Iterable[list[bytes]], tuple[str, ...]], Iterator[bytes]]


def answer(request: Request) -> PlannedResponse:
    """The captures of a URL, as OutbackCDX gives them."""
    given = Parameters(request.query, KNOWN)
    if given.flag("omitSelfRedirects"):
        raise bad_request("omitSelfRedirects is not supported")
    closest = (
        given.text("closest")
        if given.one_of("sort", ("default", "reverse", "closest")) == "closest"
        else None
    )
    query = Query(
        match_type=given.one_of("matchType", MATCH_TYPES),
        from_ts=given.text("from"),
        to=given.text("to"),
        filter=tuple(map(pattern_filter, given.all("filter"))),
        limit=given.number("limit") or None,
        sort="reverse" if given.text("sort") == "reverse" else "default",
        closest=closest,
        collapse=given.text("collapseToFirst", "collapse"),
    )
    asked = Inquiry(request.collection, _wanted(given), query, request.watch)
    output = given.one_of("output", tuple(_WRITERS)) or "cdx"
    kind, write = _WRITERS[output]
    names = fields_of(given.text("fl"), FIELDS)
    return PlannedResponse(
        lambda: Response(200, kind, started(write(asked.lists(), names))), asked.is_quick, asked
    )


def _wanted(given: Parameters) -> str | KeyRange:
    key = given.text("urlkey")
    if (key is None) == (given.text("url") is None):
        raise bad_request("give either url or urlkey")
    if key is None:
        return given.required("url")
    low = key.encode("utf-8", "surrogateescape")
    return KeyRange(low, low + b"!", is_one_url=True)


def _as_text(lists: Iterable[list[bytes]], names: tuple[str, ...]) -> Iterator[bytes]:
    for lines in lists:
        yield b"".join(text_row(row) + b"\n" for row in rows_of(lines, names))


def _as_arrays(lists: Iterable[list[bytes]], names: tuple[str, ...]) -> Iterator[bytes]:
    return json_rows(names, lists, _value)


def _as_objects(lists: Iterable[list[bytes]], names: tuple[str, ...]) -> Iterator[bytes]:
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


def _as_cdxj(lists: Iterable[list[bytes]], names: tuple[str, ...]) -> Iterator[bytes]:
    for lines in lists:
        yield b"".join(_cdxj(line, names) for line in lines)


def _cdxj(line: bytes, names: tuple[str, ...]) -> bytes:
    fields = parse_fields(line)
    (row,) = rows_of([line], names)
    kept = {
        name: text
        for name, text in zip(names, row, strict=True)
        if text != "-" and name not in ("urlkey", "timestamp")
    }
    return (
        text_row([str(fields["urlkey"]), str(fields["timestamp"])]) + b" " + json.dumps(kept).encode() + b"\n"
    )


def _value(name: str, text: str) -> Any:
    """Numbers are numbers, as in OutbackCDX."""
    is_number = name in _NUMBERS and text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if is_number else text


_WRITERS: dict[str, tuple[str, Write]] = {
    "cdx": (TEXT, _as_text),
    "json": (JSON, _as_arrays),
    "jsondict": (JSON, _as_objects),
    "cdxj": ("text/x-cdxj", _as_cdxj),
}
