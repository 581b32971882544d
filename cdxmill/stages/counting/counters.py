"""What is counted in a record: its tags, its server, its words; or what a user's function finds in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from cdxmill.capture import Headers, Record
from cdxmill.formats.http_head import parse_http_head
from cdxmill.stages.captures.line_text import media_type
from cdxmill.stages.counting.tally import Tally, clean_item
from cdxmill.stages.counting.wat_records import is_wat, server_values
from cdxmill.stages.records.decode_payload import PayloadError, decode_payload
from cdxmill.stages.records.payload_digest import payload_start

MAX_CONTENT = 64 << 20
"""Bytes of a record, and of its decoded payload, that are counted. The rest of a larger one is reported."""

_HTML = frozenset((b"text/html", b"application/xhtml+xml"))
_ENCODED = re.compile(rb"\n(?:content|transfer)-encoding[ \t]*:", re.I)
_SERVER = re.compile(rb"\nserver[ \t]*:([^\n]*(?:\n[ \t][^\n]*)*)", re.I)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BINARY = (b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"Rar!")
_SNIFFED = 512

Item = bytes | str
Items = Callable[[Record], Iterable[Item]]
"""A user's function: a record -> the items to count in it."""


class BadRecord(ValueError):
    """A record that cannot be counted. The text is the reason."""


class NotWanted(Exception):
    """A record that has nothing of the kind that is counted. The text says why, if that is unusual."""


class Counter(NamedTuple):
    """How records are counted. `add` adds the items of a record to a tally. It raises BadRecord, NotWanted.

    Records of the types in `others` have nothing to count. `needs` says which archives have something. `all_fields`:
    the whole WARC header is needed.
    """

    add: Callable[[Record, Tally], None]
    others: frozenset[bytes]
    needs: str
    all_fields: bool = False


def _media(headers: Headers) -> bytes:
    return _media_type(headers.get(b"content-type", b"")[:200])


@cache
def _media_type(content_type: bytes) -> bytes:
    return media_type(content_type) or b""


def count_words(record: Record, tally: Tally) -> None:
    """Count the words of a text, as a WET file has it."""
    if _media(record.headers) != b"text/plain":
        raise NotWanted
    tally.add_words(record.block)


def count_servers(record: Record, tally: Tally) -> None:
    """Count the servers of a response, or of one that a record of a WAT file describes. Each counts once."""
    values = {value for value in map(clean_item, _server_values(record)) if value}
    if not values:
        raise NotWanted("responses without a Server field")
    for value in values:
        tally.add(value, 1)


def _server_values(record: Record) -> Iterable[bytes]:
    if is_wat(record.headers):
        try:
            values = server_values(record.block)
        except ValueError as error:
            raise BadRecord(str(error)) from None
        if values is None:
            raise NotWanted
        return values
    end = payload_start(record.headers, record.block)
    if not end or record.headers.get(b"warc-type") != b"response":
        raise NotWanted
    return _SERVER.findall(record.block, 0, end)


def count_tags(record: Record, tally: Tally) -> None:
    """Count the tags of an HTML page."""
    tally.add_tags(html_of(record))


def html_of(record: Record) -> bytes | memoryview:
    """The HTML of a page, with all encodings undone. Raises BadRecord, NotWanted."""
    if record.headers.get(b"warc-type") not in (b"response", b"resource"):
        raise NotWanted
    end = payload_start(record.headers, record.block)
    if not _is_html(record, end):
        raise NotWanted
    head = bytes(record.block[:end])
    payload: bytes | memoryview = memoryview(record.block)[end:]
    if _ENCODED.search(head):
        payload = _decoded(head, payload)
    start = bytes(payload[:_SNIFFED])
    if start.startswith(_UTF16):
        return bytes(payload).decode("utf-16", "replace").encode()
    if b"\0" in start or start.startswith(_BINARY):
        raise NotWanted("pages skipped: they are binary data")
    return payload


def _is_html(record: Record, end: int) -> bool:
    """Whether a record is a page: by the type that the crawler has identified, or else by the Content-Type."""
    identified = record.headers.get(b"warc-identified-payload-type")
    if identified:
        return _media_type(identified[:200]) in _HTML
    if not end:
        return _media(record.headers) in _HTML
    return _media_type((parse_http_head(record.block).content_type or b"")[:200]) in _HTML


def _decoded(head: bytes, payload: bytes | memoryview) -> bytes:
    decoded = bytearray()
    try:
        for piece in decode_payload(head, iter((bytes(payload),))):
            decoded += piece
            if len(decoded) > MAX_CONTENT:
                raise BadRecord(f"the decoded page has more than {MAX_CONTENT >> 20} MiB; skipped")
    except PayloadError as error:
        raise BadRecord(str(error).removesuffix("; omit --decode")) from None
    return bytes(decoded)


def counter_of(items: Items) -> Counter:
    """A counter with a user's function. What it raises is reported, and the record is skipped."""

    def count(record: Record, tally: Tally) -> None:
        for item in _safe(items, record):
            tally.add(item, 1)

    return Counter(count, frozenset(), "archives with records that the function counts", all_fields=True)


def _safe(items: Items, record: Record) -> list[bytes]:
    """The items of a record; all of them, or BadRecord."""
    try:
        found = [
            item if isinstance(item, bytes) else item.encode("utf-8", "replace") for item in items(record)
        ]
    except Exception as error:
        raise BadRecord(f"{type(error).__name__}: {error}") from None
    return list(filter(None, map(clean_item, found)))


_NO_PAGES = frozenset((b"request", b"metadata", b"warcinfo", b"revisit", b"conversion"))

COUNTERS: Mapping[str, Counter] = {
    "tags": Counter(count_tags, _NO_PAGES, "WARC and ARC files with HTML pages"),
    "servers": Counter(count_servers, frozenset((b"request", b"warcinfo")), "WAT, WARC and ARC files"),
    "words": Counter(
        count_words, frozenset((b"request", b"response", b"metadata", b"warcinfo")), "WET files"
    ),
}
"""What `cdxmill count` can count."""
