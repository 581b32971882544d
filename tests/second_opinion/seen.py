"""A record as warcio reads it, for the rules and for the read-back tests."""

from __future__ import annotations

import contextlib
import io
import re
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed


class Seen(NamedTuple):
    """A record: its type, its header fields, and the Content-Type of its HTTP head, if it has a head.

    `has_head` is decided by warcio: the block belongs to a message record of an http(s) URL, and its head
    has more than one word. `head_type` is None if the head has no Content-Type.
    """

    is_arc: bool
    type: str
    url: str
    date: str
    identity: str
    content_type: str
    length: str
    has_head: bool
    head_type: str | None


class ReadError(Exception):
    """These bytes are not exactly one whole record."""


def seen_at(path: Path, offset: int) -> Seen:
    """The record that starts at `offset` of a file. Anything may follow it."""
    with path.open("rb") as file, contextlib.redirect_stderr(io.StringIO()):
        file.seek(offset)
        return _seen(next(iter(ArchiveIterator(file))))


def seen_alone(data: bytes) -> Seen:
    """The record in `data`, which must be exactly one record with line ends after it. Raises ReadError."""
    if data.startswith(b"\x1f\x8b"):
        _check_member(data)
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        file = io.BytesIO(data)
        records = ArchiveIterator(file)
        found = _only(records, file, len(data))
    if stderr.getvalue():
        raise ReadError(stderr.getvalue().strip())
    return found


def _check_member(data: bytes) -> None:
    """Check the trailer of a gzip member with zlib, because warcio does not."""
    inflater = zlib.decompressobj(31)
    try:
        inflater.decompress(data)
    except zlib.error as error:
        raise ReadError(str(error)) from error
    if not inflater.eof or inflater.unused_data:
        raise ReadError("not exactly one gzip member")


NEXT_RECORD = re.compile(rb"[ \t\r\n]*(?:\Z|WARC/\d|\x1f\x8b|[a-z]+:[^\n]* \d{14} [^ \n]* \d+\r?\n)", re.I)


def is_sound(path: Path, offset: int, length: int) -> bool:
    """Whether a range is certainly a record.

    It is complete, its length and date are numbers, and another record or the end of the file follows.
    """
    data = path.read_bytes()[offset:]
    try:
        record = seen_alone(data[:length])
    except (ReadError, ArchiveLoadFailed):
        return False
    dated = not record.is_arc or (record.date.isdigit() and len(record.date) == 14)
    followed = NEXT_RECORD.match(data[length : length + 4096])
    return record.length.isdigit() and dated and followed is not None


def _only(records: Any, file: IO[bytes], size: int) -> Seen:
    iterator = iter(records)
    record = next(iterator, None)
    if record is None:
        raise ReadError("no record")
    found = _seen(record)
    while record.raw_stream.read(1 << 16):
        pass
    if record.raw_stream.limit:
        raise ReadError(f"{record.raw_stream.limit} bytes of the block are missing")
    if records.get_record_offset() != 0 or records.get_record_length() != size:
        raise ReadError(f"the record takes {records.get_record_length()} of {size} bytes")
    if next(iterator, None) is not None:
        raise ReadError("a second record follows")
    if file.read(1):
        raise ReadError("bytes are left over")
    return found


def _seen(record: Any) -> Seen:
    is_arc = record.format == "arc"
    headers, head = record.rec_headers, record.http_headers
    url, date = ("uri", "archive-date") if is_arc else ("WARC-Target-URI", "WARC-Date")
    return Seen(
        is_arc=is_arc,
        type=record.rec_type or "",
        url=headers.get_header(url) or "",
        date=headers.get_header(date) or "",
        identity=headers.get_header("WARC-Record-ID") or "",
        content_type=record.content_type or "",
        length=headers.get_header("length" if is_arc else "Content-Length") or "",
        has_head=bool(head),
        head_type=head.get_header("Content-Type") if head else None,
    )
