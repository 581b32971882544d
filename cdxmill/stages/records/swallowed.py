"""Records inside the block of an uncompressed record that was truncated.

    WARC/1.0 ... Content-Length: 900 | 300 bytes of the block | WARC/1.0 ... the next record | ...

Its Content-Length may happen to lead to the end of a later record. Then all looks well, but the records in between
would get no line. An archive that was archived has such blocks, too. But then two closing line ends follow each other,
that of the last inner record and that of the outer one, and the digest of the block matches.
"""

from __future__ import annotations

import base64
import re
from itertools import islice

from cdxmill.capture import Headers
from cdxmill.stages.records.parse_header import content_length, read_header
from cdxmill.stages.records.payload_digest import payload_start
from cdxmill.stages.records.record_errors import RecordError
from cdxmill.stages.window import Window

_MARK = b"WARC/1."
_VERSION = re.compile(rb"WARC/1\.[01]\r?\n")
_CLOSING = b"\r\n\r\n"
_MOST_STARTS = 8
_MOST_RECORDS = 1000
_HASHED_PIECE = 1 << 20
_ALGORITHMS = ("md5", "sha1", "sha256", "sha512")


def swallows_records(window: Window, pos: int, size: int, headers: Headers, block: bytes) -> bool:
    """Whether the block of `size` bytes at `pos` was truncated, and other records are inside it.

    `block` is its first part. Without a digest in `headers`, Content-Length is trusted.
    """
    if block.find(_MARK) < 0 or not _has_records(window, pos, pos + size, block):
        return False
    return _is_refuted(window, pos, size, headers, payload_start(headers, block))


def _has_records(window: Window, pos: int, end: int, block: bytes) -> bool:
    """Whether records inside the block lead exactly to its end, with a single closing there."""
    starts = islice(_VERSION.finditer(block), _MOST_STARTS)
    return any(_leads_to(window, pos + start.start(), end) for start in starts)


def _leads_to(window: Window, pos: int, end: int) -> bool:
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


def _is_refuted(window: Window, pos: int, size: int, headers: Headers, payload: int) -> bool:
    """Whether a digest in `headers` is that of other bytes."""
    import hashlib  # slow to import, and hardly any block has records

    given, start = headers.get(b"warc-block-digest"), 0
    if not given:
        given, start = headers.get(b"warc-payload-digest", b""), payload
    algorithm, _, value = given.decode("latin-1").partition(":")
    if algorithm.lower() not in _ALGORITHMS:
        return False
    digest = hashlib.new(algorithm.lower())
    pos, size = pos + start, size - start
    while size and (piece := window.get(pos, min(_HASHED_PIECE, size))):
        digest.update(piece)
        pos, size = pos + len(piece), size - len(piece)
    base32 = base64.b32encode(digest.digest()).decode()
    return value.upper().rstrip("=") != base32.rstrip("=") and value.lower() != digest.hexdigest()
