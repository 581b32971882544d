"""The head of an HTTP message (RFC 9112): the parts that an index needs.

As in warcio, the status is the second word of the first line, whatever it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.formats.archives.warc_header import parse_fields
from cdxmill.regex import regex

_PLAIN = regex(
    rb"\S[^ \n]*+ ([!-~]++)(?: .*+|\r)\n"
    rb"(?:(?!(?i:content-type)[ \t]*:)\S.*+\n)*+"
    rb"(?:(?i:content-type)[ \t]*:(.*+)\n(?:\S.*+\n)*+)?\r\n"
)
"""A head with a status and without folded lines. The groups are the status and the first Content-Type.

Possessive quantifiers (`++`, `*+`) keep the time linear.
"""
_LOCATION = regex(rb"\nlocation[ \t]*:(.*)", re.I)


class HttpHead(NamedTuple):
    """Status, Content-Type and a redirect's Location, unchanged, and the position of the payload."""

    status: bytes | None
    content_type: bytes | None
    location: bytes | None
    end: int


NO_HEAD = HttpHead(None, None, None, 0)
"""Of a block that is no HTTP message."""


def parse_http_head(block: bytes | bytearray) -> HttpHead:
    """The HTTP head that `block` starts with.

    >>> parse_http_head(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html; charset=x\\r\\n\\r\\nHi")
    HttpHead(status=b'200', content_type=b'text/html; charset=x', location=None, end=55)
    """
    head = _PLAIN.match(block)
    if head is None:
        return _parse_odd_head(block)
    status, content_type = head.groups()
    found = _LOCATION.search(block, 0, head.end()) if _is_redirect(status) else None
    location = found[1].strip() or None if found is not None else None
    return HttpHead(status, (content_type and content_type.strip()) or None, location, head.end())


def _is_redirect(status: bytes | None) -> bool:
    """Whether the Location is the target of a redirect. Other statuses, like 201, can have a Location, too."""
    return status is not None and status[:1] == b"3"


def _parse_odd_head(block: bytes | bytearray) -> HttpHead:
    stop = block.find(b"\n")
    first = bytes(block[: stop if stop >= 0 else len(block)]).rstrip()
    if not first:
        return HttpHead(None, None, None, stop + 1)
    fields, end = parse_fields(block, stop + 1) if stop >= 0 else ({}, -1)
    status = first.partition(b" ")[2].strip().split(b" ", 1)[0] or None
    location = fields.get(b"location") if _is_redirect(status) else None
    end = end if end >= 0 else len(block)
    return HttpHead(status, fields.get(b"content-type") or None, location or None, end)
