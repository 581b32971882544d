"""The head of an HTTP message (RFC 9112): what an index needs of it.

Read as warcio reads it: the status is the second word of the first line, whatever it
is; the head ends at the first blank line, or where the block ends.
"""

from __future__ import annotations

from typing import NamedTuple

from cdxmill.formats.warc_header import parse_fields


class HttpHead(NamedTuple):
    """Status, Content-Type and a redirect's Location as they stand there, and where the payload begins."""

    status: bytes | None
    content_type: bytes | None
    location: bytes | None
    end: int


def parse_http_head(block: bytes | bytearray) -> HttpHead:
    """The HTTP head that `block` starts with.

    >>> parse_http_head(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html; charset=x\\r\\n\\r\\nHi")
    HttpHead(status=b'200', content_type=b'text/html; charset=x', location=None, end=55)
    """
    end = block.find(b"\r\n\r\n")
    head = bytes(block[:end])
    if end < 0 or not _is_plain(head):
        return _parse_odd_head(block)
    lower = head.lower()
    mime = _find(head, lower, b"\ncontent-type")
    status = _status(head.split(b"\r", 1)[0])
    location = _find(head, lower, b"\nlocation") if _is_redirect(status) else b""
    if mime is None or location is None:
        return _parse_odd_head(block)
    return HttpHead(status, mime or None, location or None, end + 4)


def _status(line: bytes) -> bytes | None:
    return line.partition(b" ")[2].strip().split(b" ", 1)[0] or None


def _is_redirect(status: bytes | None) -> bool:
    """Only a redirect's target is asked for; 201 and the like have a Location, too."""
    return status is not None and status[:1] == b"3"


def _is_plain(head: bytes) -> bool:
    """Whether lines end in CRLF, none is folded, and there is no other control that counts as space."""
    controls = len(head) - len(head.translate(None, b"\r\n\t\v\f"))
    return controls == 2 * head.count(b"\r\n") and b"\n " not in head and head[:1] > b" "


def _find(head: bytes, lower: bytes, name: bytes) -> bytes | None:
    """The first field of that name, b"" where there is none; None where it is written oddly."""
    start = lower.find(name)
    if start < 0:
        return b""
    colon = start + len(name)
    if head[colon : colon + 1] != b":":
        return None
    stop = head.find(b"\r", colon)
    return head[colon + 1 : stop if stop >= 0 else None].strip()


def _parse_odd_head(block: bytes | bytearray) -> HttpHead:
    stop = block.find(b"\n")
    first = bytes(block[: stop if stop >= 0 else len(block)]).rstrip()
    if not first:
        return HttpHead(None, None, None, stop + 1)
    fields, end = parse_fields(block, stop + 1) if stop >= 0 else ({}, -1)
    status = _status(first)
    location = fields.get(b"location") if _is_redirect(status) else None
    end = end if end >= 0 else len(block)
    return HttpHead(status, fields.get(b"content-type") or None, location or None, end)
