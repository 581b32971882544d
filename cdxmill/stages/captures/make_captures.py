"""Records -> captures: which records get an index line, and what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urljoin

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Headers, Note, Record
from cdxmill.formats.cdxj import with_notes
from cdxmill.formats.http_head import HttpHead, parse_http_head
from cdxmill.formats.surt import surt, unsurt
from cdxmill.formats.timestamp import timestamp_of
from cdxmill.stages.records.join_records import Asked, Notes, asked_by, belongs_to, crawl_notes
from cdxmill.stages.records.take_record import base32, is_http, sha1, wants_digest

RECORD_TYPES = frozenset(
    (
        b"response",
        b"revisit",
        b"resource",
        b"metadata",
        b"conversion",
        b"request",
        b"warcinfo",
        b"continuation",
    )
)
DEFAULT_RECORDS = frozenset((b"response", b"revisit", b"resource", b"metadata", b"conversion"))

NO_TYPE = "what it is cannot be told; repair it if you need it"
NO_URL = "the record cannot be found by URL; repair it if you need it"

_WITHOUT_URL = frozenset((b"metadata", b"warcinfo"))
_WITHOUT_HEAD = frozenset((b"metadata", b"resource"))
_MIME_END = re.compile(rb"[;\s]")
_SPACE = re.compile(rb"[\x00-\x20\x7f]")
_URL_SPACE = re.compile(rb"[ \x0b\x0c\0]")
_PLAIN = bytes(byte for byte in range(0x21, 0x7F) if byte != ord("<"))
"""What a URL and its key mostly consist of: there is nothing to be escaped."""
_SHORT = 200
"""Bytes of a Content-Type that is remembered: who writes one of megabytes writes another one next."""
_NO_NOTES: Notes = (None, None)
_NO_HEAD = HttpHead(None, None, None, 0)


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """What is indexed and how; `records` of None means every record that has a URL."""

    records: frozenset[bytes] | None = DEFAULT_RECORDS
    post_append: bool = False
    minimal: bool = False
    unsurt: bool = False
    keep_www: bool = False

    @property
    def lineless(self) -> frozenset[bytes]:
        """Record types that give no line, whatever is in them; they may come as CrawlNotes."""
        if self.records is None or self.post_append or b"request" in self.records:
            return frozenset()
        return frozenset((b"request", b"metadata"))

    def urlkey(self, url: bytes) -> bytes:
        """The sort key of `url`; a URL that has no SURT is its own key, made safe."""
        try:
            key = surt(url, self.keep_www)
        except ValueError:
            return _escape_space(url)
        return _escape_space(unsurt(key) if self.unsurt else key)


class _Dated(NamedTuple):
    """A record that gets a line, with its URL and timestamp."""

    record: Record
    url: bytes
    timestamp: bytes


def make_captures(
    found: Iterator[Record | CommonLine | CrawlNotes | Damage | Note],
    filename: bytes,
    options: CaptureOptions,
) -> Iterator[Capture | bytes | Damage | Note]:
    """A capture for each record that gets a line, a whole line for a CommonLine; Damage and Note pass through.

    A crawl's metadata record behind its response gives charset and languages; with
    `post_append` a request beside its response gives the query that its key ends in.
    `filename` stands in every line. Lines come in the order of records.
    """
    latest = _Latest(filename, options)
    for item in found:
        if isinstance(item, CrawlNotes):
            latest.add_notes(item)
            continue
        if isinstance(item, CommonLine):
            finished = latest.replace_by(item, item.record_id)
        elif isinstance(item, Record):
            latest.hear(item)
            dated = _dated(item, options)
            if not isinstance(dated, _Dated):
                if dated is not None:
                    yield dated
                continue
            if dated.timestamp == b"-":
                yield Note(item.offset, "the record has no date that can be read: timestamp is -")
            finished = latest.replace_by(dated, item.headers.get(b"warc-record-id"))
        else:
            yield item
            continue
        if finished is not None:
            yield finished
    if (finished := latest.finished()) is not None:
        yield finished


class _Latest:
    """The latest record that gets a line, and what the records beside it add to that."""

    def __init__(self, filename: bytes, options: CaptureOptions) -> None:
        self._filename, self._options = filename, options
        self._made: CommonLine | _Dated | None = None
        self._record_id: bytes | None = None
        self._notes = _NO_NOTES
        self._request: Record | None = None
        self._asked: Asked | None = None

    def finished(self) -> Capture | bytes | None:
        """Its capture or line; None where there was none."""
        made = self._made
        if made is None:
            return None
        if isinstance(made, CommonLine):
            return with_notes(made.start, *self._notes, made.end)
        return _capture_of(*made, self._notes, self._asked, self._filename, self._options)

    def replace_by(self, made: CommonLine | _Dated, record_id: bytes | None) -> Capture | bytes | None:
        """As `finished`, for the one before."""
        finished = self.finished()
        self._made, self._record_id, self._notes, self._asked = made, record_id, _NO_NOTES, None
        if self._request is not None and isinstance(made, _Dated) and belongs_to(self._request, made.record):
            self._asked = asked_by(self._request, made.url, self._options.urlkey)
        return finished

    def add_notes(self, notes: CrawlNotes) -> None:
        """Those that say nothing leave earlier ones alone."""
        if notes.concurrent_to == self._record_id and notes[1:] != _NO_NOTES:
            self._notes = notes[1:]

    def hear(self, record: Record) -> None:
        """Take in what a request or a metadata record tells."""
        kind, made = record.headers.get(b"warc-type"), self._made
        about = record.headers.get(b"warc-concurrent-to")
        if kind == b"metadata" and about is not None:
            self.add_notes(CrawlNotes(about, *crawl_notes(record.block)))
        elif kind == b"request" and self._options.post_append:
            self._request = record
            if isinstance(made, _Dated) and belongs_to(record, made.record):
                self._asked = asked_by(record, made.url, self._options.urlkey) or self._asked


def _dated(record: Record, options: CaptureOptions) -> _Dated | Damage | None:
    """The record, if it gets a line; None where that is as it should be."""
    url = _url_to_index(record, options)
    if not isinstance(url, bytes):
        return url
    return _Dated(record, url, timestamp_of(record.headers.get(b"warc-date", b"")) or b"-")


def _url_to_index(record: Record, options: CaptureOptions) -> bytes | Damage | None:
    """The URL of a record that gets a line; None for one that gets none."""
    headers = record.headers
    kind = headers.get(b"warc-type", b"").lower()
    if not kind:
        return Damage(record.offset, "the record has no WARC-Type", NO_TYPE)
    wanted = options.records
    if wanted is not None and (
        kind not in wanted or (kind in _WITHOUT_HEAD and _is_crawl_note(kind, headers))
    ):
        return None
    url = _url_of(headers)
    if url and not (record.is_arc and kind == b"warcinfo"):
        return url
    if kind in _WITHOUT_URL:
        return None
    return Damage(record.offset, f"a {kind.decode('latin-1')} record has no WARC-Target-URI", NO_URL)


def _capture_of(
    record: Record,
    url: bytes,
    timestamp: bytes,
    notes: Notes,
    asked: Asked | None,
    filename: bytes,
    options: CaptureOptions,
) -> Capture:
    ask = record.headers.get
    given = record.headers[b"warc-type"]
    kind = given.lower()
    http = record.size > 0 and is_http(given, url)
    status, content_type, location, end = parse_http_head(record.block) if http else _NO_HEAD
    if not http:
        content_type = ask(b"content-type")
    is_revisit = kind == b"revisit"
    key, method, body = asked or (options.urlkey(url), None, None)
    return Capture(
        key,
        timestamp,
        url,
        b"warc/revisit" if is_revisit else None if options.minimal else _mime(record, content_type),
        None if is_revisit else _text(ask(b"warc-identified-payload-type")),
        _text(status) if kind != b"request" and not options.minimal else None,
        _digest(record, end),
        record.length,
        record.offset,
        filename,
        *notes,
        _text(ask(b"warc-truncated")),
        _redirect(url, status, location) if location is not None and not options.minimal else None,
        method,
        body,
    )


def _is_crawl_note(kind: bytes, headers: Headers) -> bool:
    """A crawler's own notes, which belong to a capture and are none."""
    content_type = headers.get(b"content-type", b"")
    return content_type == b"application/warc-fields" or (
        kind == b"metadata" and _MIME_END.split(content_type, maxsplit=1)[0] == b"text/anvl"
    )


def _url_of(headers: Headers) -> bytes | None:
    url = headers.get(b"warc-target-uri")
    if url and not url.translate(None, _PLAIN):
        return url
    url = _text(url)
    if url is None:
        return None
    if url[:1] == b"<" and url[-1:] == b">":  # wget 1.19 wrote them so
        url = url[1:-1]
    return _URL_SPACE.sub(_percent, url)


def _escape_space(key: bytes) -> bytes:
    return _SPACE.sub(_percent, key) if key.translate(None, _PLAIN) else key


def _percent(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match.group()[0]


def _mime(record: Record, content_type: bytes | None) -> bytes | None:
    """The HTTP head's type; without a head the record's; an ARC header line's where a head has none."""
    if content_type is None and record.is_arc:
        content_type = record.headers.get(b"content-type", b"")
        if b"/" not in content_type:  # `no-type` and the like
            return None
    if not content_type:
        return None
    return _known_type(content_type) if len(content_type) < _SHORT else _media_type(content_type)


def _media_type(content_type: bytes) -> bytes | None:
    return _text(_MIME_END.split(content_type, maxsplit=1)[0])


_known_type = lru_cache(maxsize=4096)(_media_type)


def _digest(record: Record, payload_start: int) -> bytes | None:
    """The payload's digest: the header's, or SHA-1 of the payload. A revisit has the header's or none."""
    headers = record.headers
    given = headers.get(b"warc-payload-digest")
    if given:
        return _text(given.removeprefix(b"sha1:"))
    if record.payload_digest is not None or not wants_digest(headers):
        return record.payload_digest
    return base32(sha1(memoryview(record.block)[payload_start:]))


def _redirect(url: bytes, status: bytes | None, location: bytes) -> bytes | None:
    if status is None or status[:1] != b"3" or status == b"304":
        return None
    location = _text(location) or b""
    if location.startswith((b"http://", b"https://")):
        return location
    try:
        target = urljoin(url.decode(), location.decode())
    except ValueError:
        return None
    return target.encode("utf-8", "replace")


def _text(value: bytes | None) -> bytes | None:
    """A header's value as UTF-8; what is not UTF-8 is Latin-1. None where it is empty."""
    if not value:
        return None
    if value.isascii():
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1").encode()
    return value
