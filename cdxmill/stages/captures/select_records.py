"""Which records get an index line."""

from __future__ import annotations

from typing import NamedTuple

from cdxmill.capture import Damage, Headers, Note, Record
from cdxmill.formats.lines.timestamp import arc_timestamp_of, warc_timestamp_of
from cdxmill.stages.captures.capture_options import RECORD_TYPES, CaptureOptions
from cdxmill.stages.captures.line_text import clean_url, media_type

_REPAIR = "repair the record if you need its line"
_WITHOUT_URL = frozenset((b"metadata", b"warcinfo"))
_WITHOUT_HEAD = frozenset((b"metadata", b"resource"))


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
    url = _url_to_index(record, options)
    if not isinstance(url, bytes):
        return url
    return Dated(record, url, timestamp_of(record) or b"-")


def timestamp_of(record: Record) -> bytes | None:
    """The 14 digits of a record's date. None if it is missing or invalid."""
    date = record.headers.get(b"warc-date", b"")
    return arc_timestamp_of(date) if record.is_arc else warc_timestamp_of(date)


def _url_to_index(record: Record, options: CaptureOptions) -> bytes | Damage | Note | None:
    """The URL of a record that gets a line; otherwise as `select`."""
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
        return url
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
