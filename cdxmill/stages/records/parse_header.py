"""The header that a record's content starts with, WARC or ARC, and what can be wrong with a record."""

from __future__ import annotations

from collections.abc import Callable

from cdxmill.capture import Headers
from cdxmill.formats.archives.arc_header import (
    MAX_LINE,
    BrokenLineError,
    VersionError,
    is_usual,
    parse_arc_header,
)
from cdxmill.formats.archives.warc_header import MAX_HEADER, HeaderError, UnfinishedHeader, parse_warc_header

NOT_AN_ARCHIVE = "fetch it again if it is an archive, otherwise remove it from the input"
FETCH_AGAIN = "fetch the file again"
FETCH_IF_MISSING = "fetch the file again if a record is missing"
TO_WARC = "convert the file to WARC and index that"
REPAIR = "repair the record or fetch the file again"
RECOMPRESS_MEMBERS = (
    "write it with one record per member (cdxmill recompress --to gz -o DIR FILE) and index that"
)
WITH_DICTIONARY = (
    "fetch the file again, because its dictionary has to be in its first frame; or give it with --dictionary"
)
LARGE_WINDOW = "write it with smaller windows (cdxmill recompress --max-window %d -o DIR FILE) and index that"
RECOMPRESS_FRAMES = "write it with one record per frame (cdxmill recompress -o DIR FILE) and index that"
NO_RECORD = "no WARC or ARC record starts here"
_READ_SIZES = (1 << 12, 1 << 16, MAX_HEADER + (1 << 16))
"""Bytes that are searched for the end of a header. The first size is enough for most."""
_MAX_DIGITS = 18
"""No file is larger than 10**18 bytes, and longer texts are slow to convert."""


class RecordError(ValueError):
    """The content is not exactly one record. `unfinished`: the header may be complete if more content is read."""

    def __init__(self, reason: str, hint: str = REPAIR, unfinished: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.unfinished = reason, hint, unfinished


class NotARecord(RecordError):
    """The content does not start with a WARC or ARC record header."""


class BrokenHeader(RecordError):
    """A header breaks off, and the header of another record follows at position `next` of the content."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.next = position


class TooLong(RecordError):
    """Content-Length is larger than the block."""


class SeveralRecords(RecordError):
    """One compressed unit contains more than one record."""


class BlankContent(RecordError):
    """The content consists of line ends. It is no record, and nothing is lost."""


def parse_header(
    data: bytes | bytearray,
    parse_warc: Callable[[bytes | bytearray], tuple[Headers, int]] = parse_warc_header,
) -> tuple[Headers, int, bool]:
    """The header fields, the position of the block, and whether it is ARC. Raises RecordError."""
    if not data.startswith(b"WARC/") and data[:5].upper() != b"WARC/":
        return (*_parse_arc(data), True)
    try:
        return (*parse_warc(data), False)
    except HeaderError as error:
        raise RecordError(str(error), unfinished=isinstance(error, UnfinishedHeader)) from None


def _parse_arc(data: bytes | bytearray) -> tuple[Headers, int]:
    try:
        arc = parse_arc_header(data)
    except VersionError as error:
        raise RecordError(str(error), TO_WARC) from None
    except BrokenLineError as error:
        raise BrokenHeader(str(error), error.next) from None
    if arc is not None:
        return arc
    if not data.strip(b"\r\n"):
        raise BlankContent("no content")
    unfinished = len(data) < MAX_LINE and b"\n" not in data
    raise NotARecord(NO_RECORD, FETCH_IF_MISSING, unfinished)


def read_header(read: Callable[[int], bytes]) -> tuple[Headers, int, bool]:
    """As `parse_header`; `read(size)` returns the first bytes of the content. Reads no more than needed."""
    for size in _READ_SIZES[:-1]:
        data = read(size)
        try:
            return parse_header(data)
        except RecordError as error:
            if not error.unfinished or len(data) < size:
                raise
    return parse_header(read(_READ_SIZES[-1]))


def starts_record(read: Callable[[int], bytes], is_certain: bool = True) -> bool:
    """Whether content starts with a record header; `read(size)` returns its first bytes.

    An odd ARC header counts only if it `is_certain` that a record has to start here: other texts have similar lines.
    """
    if read(5).upper() == b"WARC/":
        return True
    try:
        headers, _, is_arc = read_header(read)
    except (NotARecord, BlankContent):
        return False
    except RecordError:
        return True
    return is_certain or not is_arc or is_usual(headers)


def content_length(headers: Headers) -> int:
    """The size of the block in bytes. Raises RecordError if it is missing or invalid."""
    text = headers.get(b"content-length")
    if text is None:
        raise RecordError("missing Content-Length")
    if len(text) > _MAX_DIGITS or not text.isdigit():
        text = _unusual_number(text)
    return int(text)


def _unusual_number(text: bytes) -> bytes:
    digits = text.strip()
    if not digits.isdigit():
        raise RecordError(f"invalid Content-Length ({excerpt(text)})")
    digits = digits.lstrip(b"0") or b"0"
    if len(digits) > _MAX_DIGITS:
        raise RecordError(f"Content-Length is too large ({excerpt(text)})")
    return digits


def excerpt(data: bytes) -> str:
    """The first bytes of `data`, quoted for a message."""
    text = repr(bytes(data[:24]))[1:]
    return text + "..." if len(data) > 24 else text
