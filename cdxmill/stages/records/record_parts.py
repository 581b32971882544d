"""The parts of a record: its header, its HTTP head, and its payload with its SHA-1."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.capture import Headers, Record
from cdxmill.formats.archives.http_head import NO_HEAD, HttpHead, parse_http_head
from cdxmill.formats.lines.timestamp import arc_timestamp_of, warc_timestamp_of
from cdxmill.stages.records.parse_header import RecordError, parse_header

if TYPE_CHECKING:
    from hashlib import _Hash

BLOCK_HEAD = 1 << 18
"""Bytes of a large block that are kept: enough for HTTP heads, request bodies and crawl metadata."""
MAX_BODY = 256 << 20
"""Bytes of a decoded body. A bomb of a few kilobytes could fill the memory."""
_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")
_HTTP_TYPES = frozenset((b"response", b"revisit", b"request"))
_NO_DIGEST = frozenset((b"request", b"revisit", b"warcinfo"))


def wants_digest(headers: Headers) -> bool:
    """Whether the index line of this record needs a digest that the headers do not have."""
    return not headers.get(b"warc-payload-digest") and headers.get(b"warc-type") not in _NO_DIGEST


def record_timestamp(headers: Headers, is_arc: bool) -> bytes | None:
    """The 14 digits of a record's date. None if it is missing or invalid."""
    date = headers.get(b"warc-date", b"")
    return arc_timestamp_of(date) if is_arc else warc_timestamp_of(date)


def is_http(kind: bytes | None, url: bytes) -> bool:
    """Whether the block is an HTTP message: a response, revisit or request of an http(s) URL."""
    return kind in _HTTP_TYPES and url.lstrip(b"<").startswith((b"http:", b"https:"))


def http_head_of(headers: Headers, block: bytes | bytearray) -> HttpHead:
    """The HTTP head of a block; NO_HEAD if it is no HTTP message."""
    http = is_http(headers.get(b"warc-type"), headers.get(b"warc-target-uri", b""))
    return parse_http_head(block) if block and http else NO_HEAD


def payload_start(headers: Headers, block: bytes | bytearray) -> int:
    """The position of the payload in the block: after the HTTP head, if the block has one."""
    return http_head_of(headers, block).end


def payload_type(head: HttpHead, headers: Headers, is_arc: bool) -> bytes | None:
    """The Content-Type of the payload: that of the HTTP head, or else of the record."""
    if head.content_type is not None or not (is_arc or head is NO_HEAD):
        return head.content_type
    found = headers.get(b"content-type")
    return None if is_arc and b"/" not in (found or b"") else found  # `no-type` and the like


class RecordBlockReader:
    """Counts the bytes of a block as they are read, and hashes the payload if a digest is needed."""

    def __init__(self, headers: Headers, head: bytes, size: int) -> None:
        self.missing = size
        self._skip = payload_start(headers, head)
        self._hash = sha1() if wants_digest(headers) else None

    def feed(self, chunk: bytes) -> bytes:
        """Take the bytes of `chunk` that belong to the block; return the rest."""
        mine = chunk[: self.missing]
        self.missing -= len(mine)
        if self._hash is not None:
            self._hash.update(memoryview(mine)[self._skip :])
            self._skip = max(0, self._skip - len(mine))
        return chunk[len(mine) :]

    def digest(self) -> bytes | None:
        """The payload's SHA-1 in base32; None if the headers have a digest or need none."""
        return base32(self._hash) if self._hash is not None else None


def sha1(data: bytes | bytearray | memoryview = b"") -> _Hash:
    """The SHA-1 of `data`; more data can be added."""
    import hashlib  # slow to import, and most archives have digests

    return hashlib.sha1(data)


def digest_of(data: bytes | bytearray | memoryview) -> bytes:
    """The SHA-1 of `data` in base32."""
    return base32(sha1(data))


def base32(digest: _Hash) -> bytes:
    """A digest as archives write it."""
    import base64

    return base64.b32encode(digest.digest())


def is_base32_of(digest: bytes, hashed: bytes) -> bool:
    """Whether a digest of 32 characters of base32 is that of these 20 bytes. Faster than base32 of them."""
    return int(digest.translate(_DIGITS), 32) == int.from_bytes(hashed, "big")


class RecordParts(NamedTuple):
    """The header of a record, its HTTP head (b"" if there is none), both with their blank line, and the payload."""

    header: bytes
    http_head: bytes
    payload: Iterator[bytes]


def record_parts(record: Record, content: Iterator[bytes]) -> RecordParts:
    """The parts of `record`, whose bytes are `content`. The payload is read when it is iterated."""
    data, start = next(content, b""), 0
    while not start:
        try:
            _, start, _ = parse_header(data)
        except RecordError:  # the record is valid, so its header ends in a later piece
            data += next(content)
    block = _first(chain((data[start:],), content), record.size)
    head = b""
    for piece in block:
        head += piece
        if len(head) >= BLOCK_HEAD:
            break
    end = payload_start(record.headers, head)
    return RecordParts(data[:start], head[:end], chain((head[end:],), block))


def _first(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The first `size` bytes."""
    for piece in pieces:
        yield piece[:size]
        size -= min(size, len(piece))
        if not size:
            return


def first_bytes(pieces: Iterator[bytes], size: int) -> bytes:
    """The first pieces, joined: at least `size` bytes, if there are that many."""
    parts, have = [], 0
    while have < size and (piece := next(pieces, b"")):
        parts.append(piece)
        have += len(piece)
    return b"".join(parts)
