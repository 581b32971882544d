"""The values that flow through the pipeline: Record -> Capture, or Damage and Note."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

Headers = dict[bytes, bytes]


class Damage(NamedTuple):
    """A part of an archive that gets no index line: its offset, the reason, and what the user can do.

    `is_miscut`: there are records, but not exactly one per member or frame. `recompress` takes them apart.
    """

    offset: int
    reason: str
    hint: str = ""
    is_miscut: bool = False


class Note(NamedTuple):
    """Something unusual in an archive that does not cost an index line."""

    offset: int
    reason: str


class Record(NamedTuple):
    """One complete record that was checked.

    `offset` and `length` are the record's byte range in its file (compressed bytes for
    gzip and zst). Names in `headers` are lower case; the fields of ARC's one-line headers
    have their WARC names. `headers` may lack fields that no index line needs.
    `block` is the content block, or the first part of a large one; `size` is the size of
    the whole block in bytes. `payload_digest` (base32 SHA-1) is set only where `block` is
    not the whole block and the headers have no digest.
    """

    offset: int
    length: int
    headers: Headers
    block: bytes | bytearray
    size: int
    payload_digest: bytes | None = None
    is_arc: bool = False


class CrawlNotes(NamedTuple):
    """What a crawler's metadata record says about a capture: its charset and languages.

    Such a record gets no index line. `concurrent_to` is the id of the capture's record.
    """

    concurrent_to: bytes
    charset: bytes | None
    languages: bytes | None


class CommonLine(NamedTuple):
    """The CDXJ line of a response of the common kind, in two parts; the crawl notes go between them.

    `record_id` is the id of the response, as crawl notes refer to it.
    """

    record_id: bytes
    start: bytes
    end: bytes


class Outcome(Enum):
    """Why a reader gives no value for a record's content.

    NO_LINE: the record is complete, but records of its type get no index line.
    NOT_COMMON: the content is not of the common kind, so another reader has to read it.
    """

    NO_LINE = "no line"
    NOT_COMMON = "not common"


class Capture(NamedTuple):
    """The values of one index line: UTF-8 text as bytes, None for an absent value."""

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
