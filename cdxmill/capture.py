"""The values that flow through the pipeline: Record -> Capture, or Damage and Note."""

from __future__ import annotations

from typing import NamedTuple

Headers = dict[bytes, bytes]


class Damage(NamedTuple):
    """Something in an archive that gets no index line: where, why, what to do."""

    offset: int
    reason: str
    hint: str = ""


class Note(NamedTuple):
    """Something odd that costs no index line."""

    offset: int
    reason: str


class Record(NamedTuple):
    """One record, whole and checked, as it lies in its file.

    `offset` and `length` are the record's byte range in the file (compressed bytes
    for gzip and zst). `headers` have lower-case names; ARC's one-line headers are
    given under their WARC names. Fields that nobody asks for may be left out. `block` is the content block, or its first part
    where the record is large; `size` is the block's whole length in bytes.
    `payload_digest` (base32 SHA-1) is set only where `block` is not whole and the headers give none.
    """

    offset: int
    length: int
    headers: Headers
    block: bytes | bytearray
    size: int
    payload_digest: bytes | None = None
    is_arc: bool = False


class CrawlNotes(NamedTuple):
    """A record that gives no line itself, whole and checked: a crawler's metadata, or something empty.

    `concurrent_to` is the id of the record that it is about; `charset` and `languages` are what it says of that.
    """

    concurrent_to: bytes
    charset: bytes | None
    languages: bytes | None


class CommonLine(NamedTuple):
    """A response of the common kind, whole and checked, and its CDXJ line: what a crawl found out goes between two parts.

    `record_id` is how what a crawl found out refers to it.
    """

    record_id: bytes
    start: bytes
    end: bytes


class Capture(NamedTuple):
    """One line of an index; absent values are None, the rest UTF-8 text as bytes."""

    urlkey: bytes
    timestamp: bytes
    url: bytes
    mime: bytes | None
    mime_detected: bytes | None
    status: bytes | None
    digest: bytes | None
    length: int
    offset: int
    filename: bytes
    charset: bytes | None = None
    languages: bytes | None = None
    truncated: bytes | None = None
    redirect: bytes | None = None
    method: bytes | None = None
    request_body: bytes | None = None
