"""The SHA-1 of a record's payload, for records whose header has no digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.capture import Headers
from cdxmill.formats.archives.http_head import parse_http_head

if TYPE_CHECKING:
    from hashlib import _Hash

_HTTP_TYPES = frozenset((b"response", b"revisit", b"request"))
_NO_DIGEST = frozenset((b"request", b"revisit", b"warcinfo"))


def wants_digest(headers: Headers) -> bool:
    """Whether the index line of this record needs a digest that the headers do not have."""
    return not headers.get(b"warc-payload-digest") and headers.get(b"warc-type") not in _NO_DIGEST


def is_http(kind: bytes | None, url: bytes) -> bool:
    """Whether the block is an HTTP message: a response, revisit or request of an http(s) URL."""
    return kind in _HTTP_TYPES and url.lstrip(b"<").startswith((b"http:", b"https:"))


def payload_start(headers: Headers, block: bytes | bytearray) -> int:
    """The position of the payload in the block: after the HTTP head, if the block has one."""
    http = is_http(headers.get(b"warc-type"), headers.get(b"warc-target-uri", b""))
    return parse_http_head(block).end if block and http else 0


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


def sha1(data: bytes | memoryview = b"") -> _Hash:
    """The SHA-1 of `data`; more data can be added."""
    import hashlib  # slow to import, and most archives have digests

    return hashlib.sha1(data)


def base32(digest: _Hash) -> bytes:
    """A digest as archives write it."""
    import base64

    return base64.b32encode(digest.digest())
