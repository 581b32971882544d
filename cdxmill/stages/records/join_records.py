"""What a neighbouring record adds to a capture: its request's query, its crawl's findings."""

from __future__ import annotations

import re
from collections.abc import Callable

from cdxmill.capture import Record
from cdxmill.formats.http_head import parse_http_head

Notes = tuple[bytes | None, bytes | None]
"""A capture's charset and languages."""
Asked = tuple[bytes, bytes, bytes]
"""A capture's key, method and request body, where its request has more than the URL tells."""
_LANGUAGE = re.compile(rb'"code-iso-639-3" *: *"([a-z]+)"')

_USUAL_NOTES = re.compile(
    rb"(?:fetchTimeMs: [0-9]++\r\n)?charset-detected: ([!-~]++)\r\nlanguages-cld2: (\{[^\r]*+)\r\n"
)
"""Nearly all that a crawl has: one match takes half the time of two searches."""


def belongs_to(request: Record, record: Record) -> bool:
    """Whether one of the two names the other as concurrent, and they are of one URL."""
    a, b = request.headers, record.headers
    concurrent = a.get(b"warc-concurrent-to")
    if concurrent is None or concurrent != b.get(b"warc-record-id"):
        concurrent = b.get(b"warc-concurrent-to")
        if concurrent is None or concurrent != a.get(b"warc-record-id"):
            return False
    return a.get(b"warc-target-uri") == b.get(b"warc-target-uri")


def crawl_notes(block: bytes | bytearray) -> Notes:
    """Charset and languages, as Common Crawl's crawler notes them; None for what `block` says nothing of."""
    usual = _USUAL_NOTES.match(block)
    if usual is not None:
        charset, found = usual.groups()
    else:
        charset, found = _note(block, b"charset-detected: "), _note(block, b"languages-cld2: ")
    languages = b",".join(_LANGUAGE.findall(found or b""))
    return charset, languages or None


def _note(block: bytes | bytearray, name: bytes) -> bytes | None:
    """What follows `name` at the start of a line; None where that is nothing."""
    start = block.find(name)
    if start < 0 or (start and block[start - 1] != 10):
        return None
    start += len(name)
    end = block.find(b"\r", start)
    return bytes(block[start : end if end >= 0 else None]).strip() or None


def asked_by(request: Record, url: bytes, urlkey: Callable[[bytes], bytes]) -> Asked | None:
    """The key that `url` has together with the request's method and body; None where these add nothing."""
    from cdxmill.formats.request_query import append_query  # brings json and base64, seldom asked for

    block = bytes(request.block)
    method = block.split(b" ", 1)[0].decode("latin-1").upper()
    head = parse_http_head(block)
    content_type = (head.content_type or b"").decode("latin-1")
    whole, query = append_query(url.decode(), method, content_type, block[head.end :])
    if whole == url.decode():
        return None
    return urlkey(whole.encode()), method.encode(), query.encode()
