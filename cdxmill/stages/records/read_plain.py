"""Records of an uncompressed archive. A record ends where its Content-Length says.

As in pywb and cdxj-indexer, the closing line ends are not part of a record's range.

    WARC/1.0 ... Content-Length: 900 | 300 bytes of the block | WARC/1.0 ... the next record | ...

The Content-Length of a truncated record may lead to the end of a later one: those in between would get no line. An
archive that was archived has such blocks, too. But then two closing line ends follow each other, that of the last inner
record and that of the outer one, and the digest of the block matches.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import islice

from cdxmill.capture import Damage, Headers, Record
from cdxmill.formats.archives.arc_header import KNOWN_SCHEME, is_usual
from cdxmill.formats.archives.arc_header import SEARCH as ARC_SEARCH
from cdxmill.stages.records.parse_header import (
    FETCH_AGAIN,
    FETCH_IF_MISSING,
    NOT_AN_ARCHIVE,
    BrokenHeader,
    NotARecord,
    RecordError,
    content_length,
    read_header,
    starts_record,
)
from cdxmill.stages.records.record_parts import BLOCK_HEAD, RecordBlockReader, payload_start, wants_digest
from cdxmill.stages.records.resync import RECORD_START, Probe, Resync
from cdxmill.stages.window import Window

_MARK = b"WARC/1."
_VERSION = re.compile(rb"WARC/1\.[01]\r?\n")
_CLOSING = b"\r\n\r\n"
_MOST_STARTS = 8
_MOST_RECORDS = 1000
_ALGORITHMS = ("md5", "sha1", "sha256", "sha512")
_BLANK = 1 << 10
_LINE_ENDS = b"\r\n \t"
PLAIN_START = re.compile(
    rb"WARC/(?:1\.[01]|0\.1[78])[ \t\r]{0,8}\n(?=[A-Za-z])|" + ARC_SEARCH.pattern, ARC_SEARCH.flags
)


def swallows_records(window: Window, pos: int, size: int, headers: Headers, block: bytes) -> bool:
    """Whether the block of `size` bytes at `pos` was truncated, and other records are inside it.

    `block` is its first part. Without a digest in `headers`, Content-Length is trusted.
    """
    if block.find(_MARK) < 0:
        return False
    starts = islice(_VERSION.finditer(block), _MOST_STARTS)
    if not any(_leads_to(window, pos + start.start(), pos + size) for start in starts):
        return False
    start = payload_start(headers, block)
    return is_refuted(headers, block[:start], window.pieces(pos + start, size - start))


def _leads_to(window: Window, pos: int, end: int) -> bool:
    """Whether the records from `pos` on lead exactly to `end`, with a single closing there."""
    for _ in range(_MOST_RECORDS):
        try:
            headers, start, _ = read_header(lambda size, pos=pos: window.peek(pos, size))  # type: ignore[misc]
            pos += start + content_length(headers)
        except RecordError:
            return False
        if pos == end:
            return True
        if pos > end or window.peek(pos, len(_CLOSING)) != _CLOSING:
            return False
        pos += len(_CLOSING)
        if pos == end:
            return window.peek(end, len(_CLOSING)) != _CLOSING
    return False


def is_refuted(headers: Headers, http_head: bytes | bytearray, payload: Iterator[bytes]) -> bool:
    """Whether a digest in `headers` is that of other bytes than those of the block, which has these two parts."""
    import hashlib  # slow to import, and hardly any block has records

    given, head = headers.get(b"warc-block-digest"), http_head
    if not given:
        given, head = headers.get(b"warc-payload-digest", b""), b""
    algorithm, _, value = given.decode("latin-1").partition(":")
    if algorithm.lower() not in _ALGORITHMS:
        return False
    digest = hashlib.new(algorithm.lower(), head)
    for piece in payload:
        digest.update(piece)
    base32 = base64.b32encode(digest.digest()).decode()
    return value.upper().rstrip("=") != base32.rstrip("=") and value.lower() != digest.hexdigest()


def read_plain(window: Window) -> Iterator[Record | Damage]:
    """Every record of the file in `window`. What cannot be read as a record is reported as Damage."""
    resync = Resync(window, PLAIN_START, lambda pos: probe_header(window, pos))
    pos = _skip_blank(window, 0)
    while window.get(pos, 1):
        try:
            record = _record_at(window, pos, resync)
        except RecordError as error:
            if isinstance(error, BrokenHeader):
                end = pos + error.next
            else:
                end = resync.after(pos, probe_header(window, pos).cost)
            yield _damage(pos, end, error)
            pos = end
        else:
            yield record
            pos = _skip_blank(window, pos + record.length)


def probe_header(window: Window, pos: int) -> Probe:
    """Whether a complete record header starts at `pos`."""
    cost = 0

    def read(size: int) -> bytes:
        nonlocal cost
        data = window.get(pos, size)
        cost = len(data)
        return data

    try:
        headers, _, is_arc = read_header(read)
    except RecordError:
        return Probe(False, cost or 1)
    return RECORD_START if not is_arc or is_usual(headers) else Probe(False, cost)


def _skip_blank(window: Window, pos: int) -> int:
    while head := window.get(pos, _BLANK):
        rest = head.lstrip(_LINE_ENDS)
        pos += len(head) - len(rest)
        if rest:
            break
    return pos


def _record_at(window: Window, pos: int, resync: Resync) -> Record:
    headers, start, is_arc = read_header(lambda size: window.get(pos, size))
    size = content_length(headers)
    end = pos + start + size
    if size and not window.peek(end - 1, 1):
        raise _truncated(size, window.end() - pos - start)
    if not _is_followed(window, end, is_arc):
        # Either garbage follows, or Content-Length is wrong. If the block is closed by line ends and no record
        # starts inside it, the length is right. ARC's single line end proves nothing: every line of a text has one.
        is_closed = not is_arc and window.peek(end, 4) == b"\r\n\r\n"
        if not is_closed or resync.first(pos + start) < end:
            raise RecordError("wrong Content-Length (no record follows the block)")
    block = window.get(pos + start, min(size, BLOCK_HEAD))
    if len(block) < min(size, BLOCK_HEAD):  # the file was truncated since the end of the block was read
        raise _truncated(size, len(block))
    if not is_arc and swallows_records(window, pos + start, size, headers, block):
        raise RecordError("the record breaks off and another one starts inside its block")
    digest = _digest(window, pos + start, headers, block, size) if wants_digest(headers) else None
    return Record(
        offset=pos,
        length=start + size,
        headers=headers,
        block=block,
        size=size,
        payload_digest=digest,
        is_arc=is_arc,
    )


def _digest(window: Window, pos: int, headers: Headers, block: bytes, size: int) -> bytes | None:
    body = RecordBlockReader(headers, block, size)
    for piece in window.pieces(pos, size):
        body.feed(piece)
    if body.missing:
        raise _truncated(size, size - body.missing)
    return body.digest()


def _truncated(size: int, have: int) -> RecordError:
    reason = f"truncated file or wrong Content-Length: {size} bytes expected, {have} found"
    return RecordError(reason, FETCH_AGAIN)


def _is_followed(window: Window, end: int, is_arc: bool) -> bool:
    """Whether another record, or the end of the file, follows a block that ends at `end`."""
    head = window.peek(end, _BLANK)
    rest = head.lstrip(_LINE_ENDS)
    following, is_all = end + len(head) - len(rest), len(head) < _BLANK
    if is_all and not rest:
        return True
    if is_arc:
        is_url = KNOWN_SCHEME.match(rest) is not None
        if not is_url and window.peek(following - 1, 1) != b"\n":
            return False  # inside a line: the rest of a header line looks like a header line, too
        if is_url and is_all and b"\n" not in rest:
            return True  # the file is truncated inside a header line
    return starts_record(lambda size: window.peek(following, size))


def _damage(pos: int, end: int, error: RecordError) -> Damage:
    hint = error.hint
    if isinstance(error, NotARecord):
        hint = FETCH_IF_MISSING if pos else NOT_AN_ARCHIVE
    return Damage(pos, f"{error.reason}; {end - pos} bytes skipped", hint)
