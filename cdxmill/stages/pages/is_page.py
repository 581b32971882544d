"""Which records are pages: one rule for `scan`, `count` and the jobs. native/count.c leaves to it what is not clear from the type.

A page is a response or resource whose type is that of HTML, and that is no binary data. The type is the one that the crawler has identified,
or else the Content-Type. Without a type, the first bytes decide, as in browsers (WHATWG MIME Sniffing, 7.1).
"""

from __future__ import annotations

import re

from cdxmill.regex import regex
from cdxmill.stages.pages.decode_text import unlike_ascii

_KINDS = (b"response", b"resource")
_HTML_TYPES = (b"text/html", b"application/xhtml+xml")
_TYPE = regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNKNOWN = (b"unknown/unknown", b"application/unknown", b"*/*")
"""What servers send if they do not know the type."""
_SEEN = 1445
"""Bytes that decide the type of a body without one."""
_HTML_START = regex(
    rb"[\t\n\f\r ]*+<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >])",
    re.I,
)
_SNIFFED = 512
"""Bytes at the start of a body that decide whether it is binary data."""
_BINARY = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
"""Bytes that no text starts with (WHATWG MIME Sniffing, 3)."""


def may_be_page(kind: bytes | None, media: bytes | None) -> bool:
    """Whether a record of a type is a page, as far as its headers say. `media` is its media type, None if it has none.

    >>> may_be_page(b"response", b"text/html; charset=x"), may_be_page(b"response", b"image/png"), may_be_page(b"response", None)
    (True, False, True)
    """
    return kind in _KINDS and (_is_html_type(media) or not _is_known(media))


def is_page(media: bytes | None, data: bytes) -> bool:
    """Whether a body is a page. Requires: `may_be_page` is true. Binary data has to be refused, too: see `is_binary`.

    >>> is_page(b"text/html", b"Hi"), is_page(None, b" <p>Hi"), is_page(None, b"<x>")
    (True, True, False)
    """
    return _is_html_type(media) or _HTML_START.match(data, 0, _SEEN) is not None


def is_binary(data: bytes, content_type: bytes | None) -> bool:
    """Whether a body starts with bytes that no text has. UTF-16 has them: its byte order mark or the Content-Type shows it."""
    start = data[:_SNIFFED]
    if len(start.translate(None, _BINARY)) == len(start):
        return False
    return not unlike_ascii(start, content_type).startswith("utf-16")


def _essence(media: bytes) -> bytes:
    return media.partition(b";")[0].strip().lower()


def _is_html_type(media: bytes | None) -> bool:
    return media is not None and _essence(media) in _HTML_TYPES


def _is_known(media: bytes | None) -> bool:
    """Whether a media type is one."""
    if media is None:
        return False
    essence = _essence(media)
    return essence not in _UNKNOWN and _TYPE.fullmatch(essence) is not None
