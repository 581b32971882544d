"""The fields of a CDX or CDXJ line, with the names of pywb's CDX server.

CDXJ   <urlkey> <timestamp> {"url": ..., "mime": ..., ...}
CDX    <urlkey> <timestamp> <url> ...                        7, 9, 10 or 11 fields; the last three also with ORIGINAL
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

import orjson

Fields = dict[str, Any]

_START = ("urlkey", "timestamp", "url", "mime", "status", "digest")
_CDX9 = (*_START, "redirect", "offset", "filename")
_CDX10 = (*_START, "redirect", "robotflags", "offset", "filename")
CDX11 = (*_START, "redirect", "robotflags", "length", "offset", "filename")
ORIGINAL = ("orig.length", "orig.offset", "orig.filename")
_COLUMNS = {
    len(names): names
    for names in (
        (*_START, "length"),
        _CDX9,
        _CDX10,
        CDX11,
        (*_CDX9, *ORIGINAL),
        (*_CDX10, *ORIGINAL),
        (*CDX11, *ORIGINAL),
    )
}
ALSO = {
    "u": "url",
    "original": "url",
    "statuscode": "status",
    "mimetype": "mime",
    "m": "mime",
    "l": "length",
    "s": "length",
    "o": "offset",
    "d": "digest",
    "t": "timestamp",
    "k": "urlkey",
    "f": "filename",
}
"""Other names of fields, in filters and as JSON keys."""

_EXACT = frozenset((str, int, bool, type(None)))
"""Types of values that orjson always reads like `json`."""


def parse_fields(line: bytes) -> Fields:
    """All fields of a line, in their order. A CDXJ line's URL is quoted as pywb does. Raises ValueError.

    >>> parse_fields(b'com,a)/ 2020 {"url": "http://a.com/", "statuscode": 200}')
    {'urlkey': 'com,a)/', 'timestamp': '2020', 'url': 'http://a.com/', 'status': 200}
    """
    fields = unquoted_fields(line)
    url = fields.get("url")
    if isinstance(url, str) and not url.isascii() and _is_cdxj(line):
        fields["url"] = quote(url.encode("utf-8", "surrogateescape"), safe=":/")
    return fields


def _is_cdxj(line: bytes) -> bool:
    return line.split(b" ", 2)[-1].startswith(b"{")


def unquoted_fields(line: bytes) -> Fields:
    """As `parse_fields`, with the URL as it is in the line.

    The quoted URL has another key: `?`, `&` and `#` are quoted, too.
    """
    line = line.rstrip()
    parts = line.split(b" ", 2)
    if len(parts) == 3 and parts[2].startswith(b"{"):
        found = parse_object(parts[2])
        fields: Fields = {"urlkey": _text(parts[0]), "timestamp": _text(parts[1])}
        fields.update(found if ALSO.keys().isdisjoint(found) else _renamed(found))
        return fields
    values = _text(line).split(" ")
    if len(values) not in _COLUMNS:
        raise ValueError(
            f"invalid line, neither CDXJ nor CDX, with {len(values)} fields: {_text(line)[:80]!r}"
        )
    return dict(zip(_COLUMNS[len(values)], values, strict=True))


def _renamed(found: Fields) -> Fields:
    return {ALSO.get(name, name): value for name, value in found.items()}


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def parse_object(data: bytes) -> Fields:
    """The JSON object of a line, always with the result of `json`. Raises ValueError.

    orjson is three times as fast. `json` reads what orjson refuses (lone surrogates, invalid UTF-8, NaN) and what
    orjson may read differently: an integer of more than 64 bits would become a float, also in nested values.

    >>> parse_object(b'{"status": "200", "length": 18446744073709551616}')
    {'status': '200', 'length': 18446744073709551616}
    """
    try:
        found = orjson.loads(data)
        if _EXACT.issuperset(map(type, found.values())):
            return cast("Fields", found)
    except (orjson.JSONDecodeError, AttributeError):  # AttributeError: not an object
        pass
    return _parse_any_object(_text(data))


def _parse_any_object(text: str) -> Fields:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"invalid JSON in a line ({error}): {text[:80]!r}") from None
    if not isinstance(found, dict):
        raise ValueError(f"the JSON of a line is not an object: {text[:80]!r}")
    return found


def field_reader(name: str) -> Callable[[bytes], str]:
    """A function from a line to one of its fields, "" if it is missing. It parses the JSON only if needed.

    The function raises ValueError for an invalid line.

    >>> read = field_reader("statuscode")
    >>> read(b'com,a)/ 2020 {"status": "200"}'), read(b"com,a)/ 2020 http://a.com/ text/html 404 X 12")
    ('200', '404')
    """
    name = ALSO.get(name, name)
    if name == "urlkey":
        return lambda line: line[: line.find(b" ")].decode("utf-8", "surrogateescape")
    if name == "timestamp":
        return lambda line: timestamp_of_line(line).decode("utf-8", "surrogateescape")
    start = b'"%b": "' % name.encode("utf-8", "surrogateescape")
    size = len(start)

    def read(line: bytes) -> str:
        found = line.rfind(start)
        if found >= 0 and b"\\" not in line and line.count(b"{") == 1 and line.isascii():
            found += size
            return line[found : line.index(b'"', found)].decode()
        return str(parse_fields(line).get(name, ""))

    return read


def timestamp_of_line(line: bytes) -> bytes:
    """The second field.

    >>> timestamp_of_line(b"com,a)/ 2020 {}")
    b'2020'
    """
    start = line.find(b" ") + 1
    end = line.find(b" ", start)
    return line[start:] if end < 0 else line[start:end]
