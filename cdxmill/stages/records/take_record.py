"""The one record in a piece of content, checked from its first byte to its last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

from cdxmill.capture import CrawlNotes, Headers, Outcome, Record
from cdxmill.formats.archives.warc_header import MAX_HEADER, HeaderShapes, fields_of
from cdxmill.regex import regex
from cdxmill.stages.records.parse_header import (
    FETCH_IF_MISSING,
    NO_RECORD,
    RECOMPRESS_MEMBERS,
    BlankContent,
    NotARecord,
    RecordError,
    SeveralRecords,
    TooLong,
    content_length,
    excerpt,
    parse_header,
    starts_record,
)
from cdxmill.stages.records.record_parts import BLOCK_HEAD, RecordBlockReader, first_bytes

Notes = tuple[bytes | None, bytes | None]
"""A capture's charset and languages."""
_LANGUAGE = regex(rb'"code-iso-639-3" *: *"([a-z]+)"')

_USUAL_NOTES = regex(
    rb"(?:fetchTimeMs: [0-9]++\r\n)?charset-detected: ([!-~]++)\r\nlanguages-cld2: (\{[^\r]*+)\r\n"
)
"""The usual form of a crawler's notes. One match takes half the time of two searches."""
_CRAWL_NOTES = b"application/warc-fields"

Common = TypeVar("Common")
ReadCommon = Callable[[bytearray | bytes, int, int], Common | CrawlNotes | Outcome]
"""(a record's content, offset and length) -> what the caller needs of it, such as its line, or its crawl notes.

Outcome.NO_LINE for a complete request. Outcome.NOT_COMMON for any other content: it was not checked.
"""


def take_whole(
    offset: int,
    length: int,
    data: bytearray | bytes,
    shapes: HeaderShapes | None,
    lineless: frozenset[bytes] = frozenset(),
) -> Record | CrawlNotes | Literal[Outcome.NO_LINE]:
    """The record at `offset` whose whole decompressed content is `data`. Raises RecordError.

    If the type of a record is in `lineless` and its header has a shape known from `shapes`, the result is CrawlNotes or
    Outcome.NO_LINE, after the same checks. A bytearray becomes the record's block: a copy takes as long as the rest.
    """
    found = shapes.match(data) if shapes is not None else None
    if found is None:
        headers, start, is_arc = (
            parse_header(data, shapes.parse) if shapes is not None else parse_header(data)
        )
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
            return Outcome.NO_LINE
        if match[shape.content_type] == _CRAWL_NOTES:
            return CrawlNotes(match[shape.concurrent_to], *crawl_notes(data[start:end]))
    if found is not None:
        headers = fields_of(found)
    if isinstance(data, bytearray):
        del data[end:], data[:start]
    else:
        data = data[start:end]
    # Positional: keywords take 0.3 microseconds more, and this runs for every record.
    return Record(offset, length, headers, data, size, None, is_arc)


def is_one_record(data: bytearray | bytes, shapes: HeaderShapes) -> bool:
    """Whether `take_whole` would accept `data`."""
    try:
        found = shapes.match(data)
        if found is None:
            headers, start, is_arc = parse_header(data, shapes.parse)
            end = start + content_length(headers)
        else:
            shape, match = found
            end, is_arc = match.end() + int(match[shape.length]), False
        if end > len(data):
            return False
        check_tail(data[end:], is_arc)
    except RecordError:
        return False
    return True


def take_block(offset: int, chunks: Iterator[bytes]) -> tuple[Record, bytes]:
    """The record at `offset` whose content starts in `chunks`, and what follows its block in the last chunk.

    The rest is for `check_rest`. The record's length is 0; the caller sets it. Memory is bounded by BLOCK_HEAD and
    MAX_HEADER. Raises RecordError, and whatever `chunks` raises.
    """
    data, (headers, start, is_arc) = _header_of(chunks)
    size = content_length(headers)
    data += first_bytes(chunks, start + min(size, BLOCK_HEAD) - len(data))
    block = data[start : start + min(size, BLOCK_HEAD)]
    body = RecordBlockReader(headers, block, size)
    tail = body.feed(data[start:])
    while body.missing and (chunk := next(chunks, b"")):
        tail = body.feed(chunk)
    if body.missing:
        raise _too_long(size, size - body.missing)
    record = Record(
        offset=offset,
        length=0,
        headers=headers,
        block=block,
        size=size,
        payload_digest=body.digest(),
        is_arc=is_arc,
    )
    return record, tail


def _header_of(chunks: Iterator[bytes]) -> tuple[bytes, tuple[Headers, int, bool]]:
    """The chunks that contain the header, joined, and the result of `parse_header`. Raises RecordError."""
    data = next(chunks, b"")
    while True:
        try:
            return data, parse_header(data)
        except BlankContent:
            if not any(chunk.strip(b"\r\n") for chunk in chunks):
                raise
            raise NotARecord(NO_RECORD, FETCH_IF_MISSING) from None
        except RecordError as error:
            more = first_bytes(chunks, len(data)) if error.unfinished else b""
            if not more or len(data) > MAX_HEADER:
                raise
            data += more


def check_rest(tail: bytes, chunks: Iterator[bytes], is_arc: bool) -> None:
    """Check that `tail` and the remaining chunks, which follow a block, are line ends. Raises RecordError."""
    check_tail(tail, is_arc)
    for chunk in chunks:
        check_tail(chunk, is_arc)


def check_tail(tail: bytes | bytearray, is_arc: bool) -> None:
    """Check that `tail`, which follows a block, consists of line ends. Raises RecordError."""
    rest = tail.strip(b"\r\n \t\0" if is_arc else b"\r\n \t")
    if not rest:
        return
    if starts_record(lambda size: bytes(rest[:size])):
        raise SeveralRecords("the gzip member contains more than one record", RECOMPRESS_MEMBERS)
    raise RecordError(f"Content-Length is too short ({excerpt(bytes(rest[:32]))} follows the block)")


def _too_long(size: int, have: int) -> RecordError:
    return TooLong(f"Content-Length is {size}, but the block has only {have} bytes")


def crawl_notes(block: bytes | bytearray) -> Notes:
    """Charset and languages, as Common Crawl's crawler writes them; None for what `block` does not mention."""
    usual = _USUAL_NOTES.match(block)
    if usual is not None:
        charset, found = usual.groups()
    else:
        charset, found = _note(block, b"charset-detected: "), _note(block, b"languages-cld2: ")
    languages = b",".join(_LANGUAGE.findall(found or b""))
    return charset, languages or None


def _note(block: bytes | bytearray, name: bytes) -> bytes | None:
    """The text after `name` at the start of a line; None if it is missing or empty."""
    start = block.find(name)
    if start < 0 or (start and block[start - 1] != 10):
        return None
    start += len(name)
    end = block.find(b"\r", start)
    return bytes(block[start : end if end >= 0 else None]).strip() or None
