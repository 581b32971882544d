"""A record that breaks off in its block, and other records that its Content-Length would swallow.

    WARC/1.0 ... Content-Length: 900 | 300 bytes of the block | WARC/1.0 ... the next record | ...

The Content-Length of a truncated record may lead to the end of a later one: those in between would get no line. An
archive that was archived has such blocks, too. But then two closing line ends follow each other, that of the last inner
record and that of the outer one, and the digest of the block matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from cdxmill.capture import Headers
from cdxmill.regex import regex
from cdxmill.stages.records.parse_header import RecordError, content_length, read_header
from cdxmill.stages.records.record_parts import payload_start
from cdxmill.stages.window import Window

_MARK = b"WARC/1."
_VERSION = regex(rb"WARC/1\.[01]\r?\n")
_CLOSING = b"\r\n\r\n"
_MOST_STARTS = 8
_MOST_RECORDS = 1000


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

    from cdxmill.stages.records.claims import parse_claim

    given, head = headers.get(b"warc-block-digest"), http_head
    if not given:
        given, head = headers.get(b"warc-payload-digest"), b""
    claim = parse_claim("", given)
    if claim is None:
        return False
    digest = hashlib.new(claim.algorithm, head, usedforsecurity=False)
    for piece in payload:
        digest.update(piece)
    return not claim.is_of(digest.digest())
