"""One record -> its capture: the values of the index line."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urljoin

from cdxmill.capture import Capture, Record
from cdxmill.formats.archives.http_head import HttpHead, parse_http_head
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.line_text import media_type, text_of
from cdxmill.stages.captures.select_records import Dated
from cdxmill.stages.records.join_records import Asked, Notes
from cdxmill.stages.records.payload_digest import base32, is_http, sha1, wants_digest

_SHORT = 200
"""Bytes of a Content-Type that is cached. Longer ones seldom repeat, and would take memory."""
_NO_HEAD = HttpHead(None, None, None, 0)


def capture_of(
    dated: Dated, notes: Notes, asked: Asked | None, filename: bytes, options: CaptureOptions
) -> Capture:
    """The capture of a record. `notes` are its crawler's notes, `asked` is what its request adds."""
    record, url, timestamp = dated
    ask = record.headers.get
    kind = record.headers[b"warc-type"]
    http = record.size > 0 and is_http(kind, url)
    status, content_type, location, end = parse_http_head(record.block) if http else _NO_HEAD
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
    return base32(sha1(memoryview(record.block)[payload_start:]))


def _redirect(url: bytes, status: bytes | None, location: bytes) -> bytes | None:
    """The absolute target of a redirect; None for other statuses."""
    if status is None or status[:1] != b"3" or status == b"304":
        return None
    location = text_of(location) or b""
    if location.startswith((b"http://", b"https://")):
        return location
    try:
        target = urljoin(url.decode(), location.decode())
    except ValueError:
        return None
    return target.encode("utf-8", "replace")
