"""One record as warcio sees it: what the rules and the reading back look at."""

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
    """A record: its kind, its own header fields, and its HTTP head's type where it has a head.

    `has_head` is warcio's judgement: the block of a message record of an http(s) URL, with
    more in its head than one word. `head_type` is None where the head names no Content-Type.
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
    """The record that starts at `offset` of a file, whatever follows it."""
    with path.open("rb") as file, contextlib.redirect_stderr(io.StringIO()):
        file.seek(offset)
        return _seen(next(iter(ArchiveIterator(file))))


def seen_alone(data: bytes) -> Seen:
    """The one record that `data` is: whole, followed by nothing but line ends. Raises ReadError."""
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
    """warcio does not look at a gzip member's trailer; zlib does."""
    inflater = zlib.decompressobj(31)
    try:
        inflater.decompress(data)
    except zlib.error as error:
        raise ReadError(str(error)) from error
    if not inflater.eof or inflater.unused_data:
        raise ReadError("not exactly one gzip member")


NEXT_RECORD = re.compile(rb"[ \t\r\n]*(?:\Z|WARC/\d|\x1f\x8b|[a-z]+:[^\n]* \d{14} [^ \n]* \d+\r?\n)", re.I)


def is_sound(path: Path, offset: int, length: int) -> bool:
    """Whether that range is a record beyond doubt: whole, with a length and a date that are
    numbers, and with another record or the file's end behind it."""
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
