"""The one record that a stretch of content holds, checked from its first byte to its last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from cdxmill.capture import CommonLine, CrawlNotes, Headers, Record
from cdxmill.formats.arc_header import MAX_LINE, parse_arc_header
from cdxmill.formats.header_shape import HeaderShapes, fields_of
from cdxmill.formats.http_head import parse_http_head
from cdxmill.formats.warc_header import MAX_HEADER, HeaderError, UnfinishedHeader, parse_warc_header
from cdxmill.stages.records.join_records import crawl_notes

if TYPE_CHECKING:
    from hashlib import _Hash

BLOCK_HEAD = 1 << 18
"""Bytes of a large block that are kept: HTTP heads, request bodies and crawl metadata fit with ease."""

RECOMPRESS = "recompress it with one record a member (warcio recompress IN OUT), then index that"
NO_ARCHIVE = "leave it out if it is no archive, else fetch it again"
LEAVE = "fetch the file again if a record is missing"
TO_WARC = "turn the file into WARC, then index that"
REPAIR = "fetch or write this record again if you can"

_LOOKS = (1 << 12, 1 << 16, MAX_HEADER + (1 << 16))
"""Bytes in which a header is looked for: most fit into the first."""
_MAX_DIGITS = 18
"""Files of 10**18 bytes are no worry, conversions of endless numbers are."""
_CRAWL_NOTES = b"application/warc-fields"
_HTTP_TYPES = frozenset((b"response", b"revisit", b"request"))
_NO_DIGEST = frozenset((b"request", b"revisit", b"warcinfo"))

ReadCommon = Callable[[bytearray, int, int], CommonLine | CrawlNotes | Literal[False] | None]
"""(a record's content, offset and length in bytes) -> its line, what a crawl found out or, for requests, None.

False where the content is not of the common kind: then nothing is known of it.
"""


class RecordError(ValueError):
    """The content is not exactly one record; `reason` and `hint` are for the user.

    `unfinished` where more content may still show a record's header.
    """

    def __init__(self, reason: str, hint: str = REPAIR, unfinished: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.unfinished = reason, hint, unfinished


class NotARecord(RecordError):
    """The content does not start with a WARC or ARC record header."""


class TooLong(RecordError):
    """The content ends before the block does."""


class SeveralRecords(RecordError):
    """Another record follows in what is compressed as one."""


class BlankContent(RecordError):
    """There is nothing but line ends: no record, and nothing lost."""


def parse_header(
    data: bytes | bytearray,
    parse_warc: Callable[[bytes | bytearray], tuple[Headers, int]] = parse_warc_header,
) -> tuple[Headers, int, bool]:
    """Header fields, where the block begins, and whether it is ARC. Raises RecordError."""
    if not data.startswith(b"WARC/") and data[:5].upper() != b"WARC/":
        return (*_parse_arc(data), True)
    try:
        return (*parse_warc(data), False)
    except HeaderError as error:
        raise RecordError(str(error), unfinished=isinstance(error, UnfinishedHeader)) from None


def _parse_arc(data: bytes | bytearray) -> tuple[Headers, int]:
    try:
        arc = parse_arc_header(data)
    except ValueError as error:
        raise RecordError(str(error), TO_WARC) from None
    if arc is not None:
        return arc
    if not data.strip(b"\r\n"):
        raise BlankContent("no content")
    unfinished = len(data) < MAX_LINE and b"\n" not in data
    raise NotARecord("no WARC or ARC record starts here", LEAVE, unfinished)


def read_header(read: Callable[[int], bytes]) -> tuple[Headers, int, bool]:
    """As `parse_header`, of content of which `read(size)` gives the first bytes; no more than needed."""
    for size in _LOOKS[:-1]:
        data = read(size)
        try:
            return parse_header(data)
        except RecordError as error:
            if not error.unfinished or len(data) < size:
                raise
    return parse_header(read(_LOOKS[-1]))


def starts_record(read: Callable[[int], bytes]) -> bool:
    """Whether content of which `read(size)` gives the first bytes starts with a record header."""
    if read(5).upper() == b"WARC/":
        return True
    try:
        read_header(read)
    except (NotARecord, BlankContent):
        return False
    except RecordError:
        return True
    return True


def content_length(headers: Headers) -> int:
    """The block's size in bytes. Raises RecordError where it is missing or no number."""
    text = headers.get(b"content-length")
    if text is None:
        raise RecordError("the record has no Content-Length")
    if len(text) > _MAX_DIGITS or not text.isdigit():
        text = _odd_number(text)
    return int(text)


def _odd_number(text: bytes) -> bytes:
    digits = text.strip()
    if not digits.isdigit():
        raise RecordError(f"Content-Length is no number ({_show(text)})")
    digits = digits.lstrip(b"0") or b"0"
    if len(digits) > _MAX_DIGITS:
        raise RecordError(f"Content-Length is too large a number ({_show(text)})")
    return digits


def take_whole(
    offset: int,
    length: int,
    data: bytearray,
    shapes: HeaderShapes,
    lineless: frozenset[bytes] = frozenset(),
) -> Record | CrawlNotes | None:
    """The record at `offset` whose whole decompressed content is `data`. Raises RecordError.

    Two thirds of a crawl's records are requests and crawlers' metadata: they give no line.
    Where such `lineless` types are plain to see they come as CrawlNotes, or as None where they
    say nothing; they are checked as all are.
    `data` becomes the record's block: a copy would take as long as all the rest.
    """
    found = shapes.match(data)
    if found is None:
        headers, start, is_arc = parse_header(data, shapes.parse)
        size = content_length(headers)
    else:
        shape, match = found
        start, size, is_arc = match.end(), int(match[shape.length]), False
    end = start + size
    if end + 4 != len(data) or not data.endswith(b"\r\n\r\n"):
        if end > len(data):
            raise _too_long(size, len(data) - start)
        check_tail(data[end:], is_arc)
    elif found is not None and shape.kind in lineless:
        if shape.kind != b"metadata":
            return None
        if match[shape.content_type] == _CRAWL_NOTES:
            return CrawlNotes(match[shape.concurrent_to], *crawl_notes(data[start:end]))
    if found is not None:
        headers = fields_of(found)
    del data[end:], data[:start]
    return Record(offset, length, headers, data, size, None, is_arc)


def take_stream(offset: int, chunks: Iterator[bytes]) -> Record:
    """The record at `offset` whose content comes in `chunks`; they are read to their end.

    The caller puts the length in. Memory is bounded by BLOCK_HEAD and MAX_HEADER.
    Raises RecordError, and whatever `chunks` raises.
    """
    record, tail = take_block(offset, chunks)
    check_rest(tail, chunks, record.is_arc)
    return record


def take_block(offset: int, chunks: Iterator[bytes]) -> tuple[Record, bytes]:
    """As `take_stream`, but no chunk is taken behind the one that the block ends in.

    Gives also what follows the block in that chunk, for `check_rest`.
    """
    data, (headers, start, is_arc) = _header_of(chunks)
    size = content_length(headers)
    data = _fill(data, chunks, start + min(size, BLOCK_HEAD))
    block = data[start : start + min(size, BLOCK_HEAD)]
    body = RecordBlockReader(headers, block, size)
    tail = body.feed(data[start:])
    while body.missing and (chunk := next(chunks, b"")):
        tail = body.feed(chunk)
    if body.missing:
        raise _too_long(size, size - body.missing)
    return Record(offset, 0, headers, block, size, body.digest(), is_arc), tail


def _header_of(chunks: Iterator[bytes]) -> tuple[bytes, tuple[Headers, int, bool]]:
    """The chunks that the header is in, and what `parse_header` gives. Raises RecordError."""
    data = next(chunks, b"")
    while True:
        try:
            return data, parse_header(data)
        except BlankContent:
            if not any(chunk.strip(b"\r\n") for chunk in chunks):
                raise
            raise NotARecord("no WARC or ARC record starts here", LEAVE) from None
        except RecordError as error:
            longer = _fill(data, chunks, 2 * len(data)) if error.unfinished else data
            if len(longer) == len(data) or len(data) > MAX_HEADER:
                raise
            data = longer


def _fill(data: bytes, chunks: Iterator[bytes], size: int) -> bytes:
    """`data` with so many chunks as make `size` bytes."""
    parts, have = [data], len(data)
    while have < size and (chunk := next(chunks, b"")):
        parts.append(chunk)
        have += len(chunk)
    return b"".join(parts)


class RecordBlockReader:
    """Counts a block's bytes as they pass and hashes its payload where the headers lack a digest."""

    def __init__(self, headers: Headers, head: bytes, size: int) -> None:
        self.missing = size
        self._skip = payload_start(headers, head)
        self._hash = sha1() if wants_digest(headers) else None

    def feed(self, chunk: bytes) -> bytes:
        """Take what belongs to the block from `chunk`; the rest is given back."""
        mine = chunk[: self.missing]
        self.missing -= len(mine)
        if self._hash is not None:
            self._hash.update(memoryview(mine)[self._skip :])
            self._skip = max(0, self._skip - len(mine))
        return chunk[len(mine) :]

    def digest(self) -> bytes | None:
        """Base32 SHA-1 of the payload, where one was wanted."""
        return base32(self._hash) if self._hash is not None else None


def wants_digest(headers: Headers) -> bool:
    """Whether an index line of this record needs a payload digest that the headers lack."""
    return not headers.get(b"warc-payload-digest") and headers.get(b"warc-type") not in _NO_DIGEST


def is_http(kind: bytes | None, url: bytes) -> bool:
    """Whether the block is an HTTP message: a message record of an http(s) URL."""
    return kind in _HTTP_TYPES and url.lstrip(b"<").startswith((b"http:", b"https:"))


def payload_start(headers: Headers, block: bytes | bytearray) -> int:
    """Where in the block the payload begins: behind the HTTP head, if there is one."""
    http = is_http(headers.get(b"warc-type"), headers.get(b"warc-target-uri", b""))
    return parse_http_head(block).end if block and http else 0


def check_rest(tail: bytes, chunks: Iterator[bytes], is_arc: bool) -> None:
    """Only line ends may follow a block, in `tail` and in the chunks that are left. Raises RecordError."""
    check_tail(tail, is_arc)
    for chunk in chunks:
        check_tail(chunk, is_arc)


def check_tail(tail: bytes | bytearray, is_arc: bool) -> None:
    """Only line ends may follow a block. Raises RecordError."""
    rest = tail.strip(b"\r\n \t\0" if is_arc else b"\r\n \t")
    if not rest:
        return
    if starts_record(lambda size: bytes(rest[:size])):
        raise SeveralRecords("the member holds more than one record", RECOMPRESS)
    raise RecordError(
        f"Content-Length is too short: more than line ends follows the block, from {_show(bytes(rest[:32]))}"
    )


def _too_long(size: int, have: int) -> RecordError:
    return TooLong(f"Content-Length is {size}, but only {have} bytes are there")


def sha1(data: bytes | memoryview = b"") -> _Hash:
    """The SHA-1 of `data`, to which more may be added."""
    import hashlib  # slow to import, and most archives have their digests

    return hashlib.sha1(data)


def base32(digest: _Hash) -> bytes:
    """A digest as archives write it."""
    import base64

    return base64.b32encode(digest.digest())


def _show(data: bytes) -> str:
    text = repr(bytes(data[:24]))[1:]
    return text + "..." if len(data) > 24 else text
