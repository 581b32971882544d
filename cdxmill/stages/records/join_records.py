"""What a related record adds to a capture: the query of its request, the notes of its crawler."""

from __future__ import annotations

import re
from collections.abc import Callable

from cdxmill.capture import Record
from cdxmill.formats.archives.http_head import parse_http_head

Notes = tuple[bytes | None, bytes | None]
"""A capture's charset and languages."""
Asked = tuple[bytes, "bytes | None", "bytes | None"]
"""A capture's key, method and request body, if the request adds something to the URL."""
_LANGUAGE = re.compile(rb'"code-iso-639-3" *: *"([a-z]+)"')

_USUAL_NOTES = re.compile(
    rb"(?:fetchTimeMs: [0-9]++\r\n)?charset-detected: ([!-~]++)\r\nlanguages-cld2: (\{[^\r]*+)\r\n"
)
"""The usual form of a crawler's notes. One match takes half the time of two searches."""


def belongs_to(request: Record, record: Record) -> bool:
    """Whether one of the two records names the other in WARC-Concurrent-To and both have the same URL."""
    a, b = request.headers, record.headers
    concurrent = a.get(b"warc-concurrent-to")
    if concurrent is None or concurrent != b.get(b"warc-record-id"):
        concurrent = b.get(b"warc-concurrent-to")
        if concurrent is None or concurrent != a.get(b"warc-record-id"):
            return False
    return a.get(b"warc-target-uri") == b.get(b"warc-target-uri")


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


def asked_by(request: Record, url: bytes, urlkey: Callable[[bytes], bytes]) -> Asked | None:
    """The key of `url` together with the request's method and body; None if these add nothing to it."""
    from cdxmill.formats.lines.request_query import (
        append_query,  # imports json and base64, and is seldom needed
    )

    block = bytes(request.block)
    method = block.split(b" ", 1)[0].decode("latin-1").upper()
    head = parse_http_head(block)
    content_type = (head.content_type or b"").decode("latin-1")
    whole, query = append_query(url.decode(), method, content_type, block[head.end :])
    if whole == url.decode():
        return None
    return urlkey(whole.encode()), method.encode(), query.encode()
