"""A line of an index as a row of a table. `native/capture_row.c` reads the usual lines; this is its reference.

A value that the table cannot have is missing, and the row has the whole line beside it: text that is not UTF-8 or has half
of a surrogate pair, a status, timestamp, offset or length that is not a number, JSON that cannot be parsed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

from cdxmill.formats.lines.capture_fields import ABSENT, Fields, stored_fields
from cdxmill.formats.lines.url_parts import split_filename, split_url
from cdxmill.regex import regex

TEXTS = (
    "url_surtkey",
    "url",
    "host",
    "url_protocol",
    "url_path",
    "url_query",
    "fetch_redirect",
    "content_digest",
    "content_mime_type",
    "content_mime_detected",
    "content_charset",
    "content_languages",
    "content_truncated",
    "warc_filename",
    "crawl",
    "warc_segment",
    "subset",
    "cdx_line",
)
"""The columns with texts, in the order in which capture_row.h has them. `host` is that of the URL in lower case."""
NUMBERS = ("url_port", "fetch_time", "fetch_status", "warc_record_offset", "warc_record_length")
"""The columns with numbers, which follow. `fetch_time` is in milliseconds since 1970."""
COLUMNS = (*TEXTS, *NUMBERS)

_FIELDS = {
    "url_surtkey": "urlkey",
    "url": "url",
    "fetch_redirect": "redirect",
    "content_digest": "digest",
    "content_mime_type": "mime",
    "content_mime_detected": "mime-detected",
    "content_charset": "charset",
    "content_languages": "languages",
    "content_truncated": "truncated",
    "warc_filename": "filename",
}
_DIGITS = {
    "fetch_status": ("status", 4),
    "warc_record_offset": ("offset", 18),
    "warc_record_length": ("length", 18),
}
"""The field of a number, and its most digits."""
_NUMBER = regex(r"\d+", re.ASCII)
_TIME = regex(r"\d{14}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON = "JSON"
_OF_KEY = ("urlkey", "timestamp")

Row = tuple[bytes | int | None, ...]
"""The values of COLUMNS."""


class ReadRow(NamedTuple):
    """A row, and the columns whose values the table cannot have."""

    row: Row
    lost: tuple[str, ...]


def read_row(line: bytes) -> ReadRow:
    """The row of a line, whatever the line is.

    >>> found = read_row(b'com,a)/ 20200101000000 {"url": "http://a.com/", "status": "2xx"}')
    >>> found.lost, found.row[:4]
    (('fetch_status',), (b'com,a)/', b'http://a.com/', b'a.com', b'http'))
    """
    lost: list[str] = []
    fields = _fields_of(line, lost)
    values: dict[str, bytes | int | None] = {}
    for column, name in _FIELDS.items():
        values[column] = _text(fields.get(name), column, lost)
    for column, (name, most) in _DIGITS.items():
        values[column] = _number(fields.get(name), column, most, lost)
    values["fetch_time"] = _milliseconds(fields.get("timestamp"), lost)
    _add_parts(fields, values)
    if lost:
        values["cdx_line"] = line
    return ReadRow(tuple(values.get(column) for column in COLUMNS), tuple(lost))


def _fields_of(line: bytes, lost: list[str]) -> Fields:
    """The fields of a line, without those that are `-`: they are missing."""
    try:
        fields = stored_fields(line)
    except (ValueError, RecursionError):
        lost.append(_JSON)
        key, _, rest = line.decode("utf-8", "surrogateescape").partition(" ")
        return {"urlkey": key, "timestamp": rest.partition(" ")[0]}
    return {name: value for name, value in fields.items() if value != "-" or name in _OF_KEY}


def _text(value: object, column: str, lost: list[str]) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    found = _utf8(value) if isinstance(value, str) else None
    if found is None:
        lost.append(column)
    return found


def _utf8(text: str | None) -> bytes | None:
    """A text in UTF-8; None if it cannot be."""
    try:
        return None if text is None else text.encode()
    except UnicodeEncodeError:
        return None


def _number(value: object, column: str, most: int, lost: list[str]) -> int | None:
    if value in (None, ""):
        return None
    text = str(value) if isinstance(value, str | int) else ""
    if len(text) <= most and _NUMBER.fullmatch(text):
        return int(text)
    lost.append(column)
    return None


def _milliseconds(value: object, lost: list[str]) -> int | None:
    if value == ABSENT:
        return None
    text = str(value) if isinstance(value, str | int) else ""
    try:
        if not _TIME.fullmatch(text):
            raise ValueError
        month, day, hour, minute, second = (int(text[start : start + 2]) for start in range(4, 14, 2))
        found = datetime(int(text[:4]), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        lost.append("fetch_time")
        return None
    return int((found - _EPOCH).total_seconds()) * 1000


def _add_parts(fields: Fields, values: dict[str, bytes | int | None]) -> None:
    """Add the parts of the URL and of the file name."""
    url, filename = fields.get("url"), fields.get("filename")
    if isinstance(url, str):
        parts = split_url(url)
        values["host"], values["url_protocol"] = _utf8(parts.host), _utf8(parts.protocol)
        values["url_path"], values["url_query"] = _utf8(parts.path), _utf8(parts.query)
        values["url_port"] = parts.port
    if isinstance(filename, str):
        crawl = split_filename(filename)
        values["crawl"], values["subset"] = _utf8(crawl.crawl), _utf8(crawl.subset)
        values["warc_segment"] = _utf8(crawl.segment)
