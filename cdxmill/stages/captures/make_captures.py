"""Records -> captures: which records get an index line, its values, and what related records add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urljoin

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Headers, Note, Record
from cdxmill.formats.archives.arc_header import odd_field
from cdxmill.formats.archives.http_head import NO_HEAD, parse_http_head
from cdxmill.formats.lines.cdx_lines import with_notes
from cdxmill.stages.captures.capture_options import (
    RECORD_TYPES,
    CaptureOptions,
    clean_url,
    media_type,
    text_of,
)
from cdxmill.stages.records.record_parts import digest_of, is_http, record_timestamp, wants_digest
from cdxmill.stages.records.take_record import Notes, crawl_notes

Asked = tuple[bytes, "bytes | None", "bytes | None"]
"""A capture's key, method and request body, if the request adds something to the URL."""

_REPAIR = "repair the record if you need its line"
_WITHOUT_URL = frozenset((b"metadata", b"warcinfo"))
_WITHOUT_HEAD = frozenset((b"metadata", b"resource"))
_SHORT = 200
"""Bytes of a Content-Type that is cached. Longer ones seldom repeat, and would take memory."""
_NO_NOTES: Notes = (None, None)


class Dated(NamedTuple):
    """A record that gets a line, with its URL and timestamp."""

    record: Record
    url: bytes
    timestamp: bytes


def select(record: Record, options: CaptureOptions) -> Dated | Damage | Note | None:
    """The record if it gets a line, None if it gets none by the rules, Damage if it lacks what a line needs.

    A Note reports a record type that no standard knows: it may be corrupt.
    The timestamp is `-` if the date is missing or invalid.
    """
    headers = record.headers
    kind = headers.get(b"warc-type", b"")
    if not kind:
        return Damage(record.offset, "missing WARC-Type", _REPAIR)
    wanted = options.records
    if wanted is not None and (
        kind not in wanted or (kind in _WITHOUT_HEAD and _is_crawl_note(kind, headers))
    ):
        return None if kind in RECORD_TYPES else _unknown(record.offset, kind)
    url = clean_url(headers.get(b"warc-target-uri"))
    if url and not (record.is_arc and kind == b"warcinfo"):
        return Dated(record, url, record_timestamp(headers, record.is_arc) or b"-")
    if kind in _WITHOUT_URL:
        return None
    reason = f"missing WARC-Target-URI ({kind.decode('latin-1')} record)"
    return Damage(record.offset, reason, _REPAIR)


def _unknown(offset: int, kind: bytes) -> Note:
    return Note(offset, f"unknown WARC-Type {repr(kind[:20])[1:]}; the record is not indexed")


def _is_crawl_note(kind: bytes, headers: Headers) -> bool:
    """Whether this is a note of the crawler about a capture, and not a capture itself."""
    content_type = headers.get(b"content-type", b"")
    return content_type == b"application/warc-fields" or (
        kind == b"metadata" and media_type(content_type) == b"text/anvl"
    )


def capture_of(
    dated: Dated, notes: Notes, asked: Asked | None, filename: bytes, options: CaptureOptions
) -> Capture:
    """The capture of a record. `notes` are its crawler's notes, `asked` is what its request adds."""
    record, url, timestamp = dated
    ask = record.headers.get
    kind = record.headers[b"warc-type"]
    http = record.size > 0 and is_http(kind, url)
    status, content_type, location, end = parse_http_head(record.block) if http else NO_HEAD
    if not http:
        content_type = ask(b"content-type")
    is_revisit = kind == b"revisit"
    key, method, body = asked or (options.urlkey(url), None, None)
    charset, languages = notes
    return Capture(
        urlkey=key,
        timestamp=timestamp,
        url=url,
        mime=b"warc/revisit" if is_revisit else None if options.minimal else _mime(record, content_type),
        mime_detected=None if is_revisit else text_of(ask(b"warc-identified-payload-type")),
        status=text_of(status) if kind != b"request" and not options.minimal else None,
        digest=_digest(record, end),
        length=record.length,
        offset=record.offset,
        filename=filename,
        charset=charset,
        languages=languages,
        truncated=text_of(ask(b"warc-truncated")),
        redirect=_redirect(url, status, location) if location is not None and not options.minimal else None,
        method=method,
        request_body=body,
    )


def _mime(record: Record, content_type: bytes | None) -> bytes | None:
    """The media type of a Content-Type. ARC without one in its HTTP head: that of the header line."""
    if content_type is None and record.is_arc:
        content_type = record.headers.get(b"content-type", b"")
        if b"/" not in content_type:  # `no-type` and the like
            return None
    if not content_type:
        return None
    return _cached_type(content_type) if len(content_type) < _SHORT else _type_text(content_type)


def _type_text(content_type: bytes) -> bytes | None:
    return text_of(media_type(content_type))


_cached_type = lru_cache(maxsize=4096)(_type_text)


def _digest(record: Record, payload_start: int) -> bytes | None:
    """The payload's digest: the header's, or the SHA-1 of the payload. A revisit has only the header's."""
    headers = record.headers
    given = headers.get(b"warc-payload-digest")
    if given:
        return text_of(given.removeprefix(b"sha1:"))
    if record.payload_digest is not None or not wants_digest(headers):
        return record.payload_digest
    return digest_of(memoryview(record.block)[payload_start:])


def _redirect(url: bytes, status: bytes | None, location: bytes) -> bytes | None:
    """The absolute target of a Location, which only redirects have; None for 304, or if it is invalid."""
    if status == b"304":
        return None
    location = text_of(location) or b""
    if location.startswith((b"http://", b"https://")):
        return location
    try:
        target = urljoin(url.decode(), location.decode())
    except ValueError:
        return None
    return target.encode("utf-8", "replace")


def make_captures(
    found: Iterator[Record | CommonLine | CrawlNotes | Damage | Note],
    filename: bytes,
    options: CaptureOptions,
) -> Iterator[Capture | bytes | Damage | Note]:
    """A capture for each record that gets a line, a whole line for a CommonLine. Damage and Note pass through.

    A crawler's metadata record that follows its response adds charset and languages. With `post_append`, a request
    beside its response adds the query at the end of the key. `filename` is a field of each line.
    """
    latest = _Latest(filename, options)
    for item in found:
        if isinstance(item, CrawlNotes):
            latest.add_notes(item)
            continue
        if isinstance(item, CommonLine):
            finished = latest.replace_by(item, item.record_id)
        elif isinstance(item, Record):
            latest.add_related(item)
            selected = select(item, options)
            if not isinstance(selected, Dated):
                if selected is not None:
                    yield selected
                continue
            if selected.timestamp == b"-":
                yield Note(item.offset, "missing or invalid date; the timestamp is -")
            elif item.is_arc and (odd := odd_field(item.headers, selected.timestamp)):
                yield Note(item.offset, odd)
            finished = latest.replace_by(selected, item.headers.get(b"warc-record-id"))
        else:
            yield item
            continue
        if finished is not None:
            yield finished
    if (finished := latest.finished()) is not None:
        yield finished


def _only_key(asked: Asked | None) -> Asked | None:
    """The key without method and body, which belong to the line of the response."""
    return asked and (asked[0], None, None)


class _Latest:
    """The latest record that gets a line, and what related records add to it."""

    def __init__(self, filename: bytes, options: CaptureOptions) -> None:
        self._filename, self._options = filename, options
        self._made: CommonLine | Dated | None = None
        self._record_id: bytes | None = None
        self._notes = _NO_NOTES
        self._request: Record | None = None
        self._asked: Asked | None = None

    def finished(self) -> Capture | bytes | None:
        """The capture or the line of the record; None if there is no record yet."""
        made = self._made
        if made is None:
            return None
        if isinstance(made, CommonLine):
            return with_notes(made.start, *self._notes, made.end)
        return capture_of(made, self._notes, self._asked, self._filename, self._options)

    def replace_by(self, made: CommonLine | Dated, record_id: bytes | None) -> Capture | bytes | None:
        """Make this the latest record; returns `finished` of the one before."""
        asked = (
            self._asked_by_request(made) if self._request is not None and isinstance(made, Dated) else None
        )
        finished = self.finished()
        self._made, self._record_id, self._notes, self._asked = made, record_id, _NO_NOTES, asked
        return finished

    def _asked_by_request(self, made: Dated) -> Asked | None:
        """What the latest request adds to the record `made`. A request and its response get the same key."""
        request, before = self._request, self._made
        assert request is not None
        if made.record is request:
            is_answered = isinstance(before, Dated) and _belongs_to(request, before.record)
            return _only_key(self._asked) if is_answered else None
        if not _belongs_to(request, made.record):
            return None
        asked = _asked_by(request, made.url, self._options.urlkey)
        if isinstance(before, Dated) and before.record is request:
            self._asked = _only_key(asked)
        return asked

    def add_notes(self, notes: CrawlNotes) -> None:
        """Add notes about the latest record. Empty notes do not replace earlier ones."""
        found = (notes.charset, notes.languages)
        if notes.concurrent_to == self._record_id and found != _NO_NOTES:
            self._notes = found

    def add_related(self, record: Record) -> None:
        """Add what a request or a metadata record says about the latest record."""
        kind, made = record.headers.get(b"warc-type"), self._made
        about = record.headers.get(b"warc-concurrent-to")
        if kind == b"metadata" and about is not None:
            self.add_notes(CrawlNotes(about, *crawl_notes(record.block)))
        elif kind == b"request" and self._options.post_append:
            self._request = record
            if isinstance(made, Dated) and _belongs_to(record, made.record):
                self._asked = _asked_by(record, made.url, self._options.urlkey) or self._asked


def _belongs_to(request: Record, record: Record) -> bool:
    """Whether one of the two records names the other in WARC-Concurrent-To and both have the same URL."""
    a, b = request.headers, record.headers
    concurrent = a.get(b"warc-concurrent-to")
    if concurrent is None or concurrent != b.get(b"warc-record-id"):
        concurrent = b.get(b"warc-concurrent-to")
        if concurrent is None or concurrent != a.get(b"warc-record-id"):
            return False
    return a.get(b"warc-target-uri") == b.get(b"warc-target-uri")


def _asked_by(request: Record, url: bytes, urlkey: Callable[[bytes], bytes]) -> Asked | None:
    """The key of `url` together with the request's method and body; None if these add nothing to it."""
    from cdxmill.formats.lines.request_query import (
        append_query,  # imports json and base64, and is seldom needed
    )

    block = bytes(request.block)
    method = block.split(b" ", 1)[0].decode("latin-1").upper()
    head = parse_http_head(block)
    content_type = (head.content_type or b"").decode("latin-1")
    whole, query = append_query(url.decode(), method, content_type, block[head.end :])
    if whole == url.decode():
        return None
    return urlkey(whole.encode()), method.encode(), query.encode()
