"""CDXJ lines (Webrecorder CDXJ 0.1.0): `<urlkey> <timestamp> <json>`.

Fields, order and spelling are those of Common Crawl's published index: every value a
string, `", "` and `": "` between, non-ASCII escaped, absent fields left out.
"""

from __future__ import annotations

import json
import re

from cdxmill.capture import Capture

_UNSAFE = re.compile(rb"[^ -!#-\[\]-~]")

_NAMES = (
    ("mime", "mime"),
    ("mime_detected", "mime-detected"),
    ("status", "status"),
    ("digest", "digest"),
    ("length", "length"),
    ("offset", "offset"),
    ("filename", "filename"),
    ("charset", "charset"),
    ("languages", "languages"),
    ("truncated", "truncated"),
    ("redirect", "redirect"),
    ("method", "method"),
    ("request_body", "requestBody"),
)


def format_cdxj(capture: Capture) -> bytes:
    """One line, without its line end."""
    values = [b'"url": ' + quote(capture.url)]
    for (_, name), value in zip(_NAMES, capture[3:], strict=True):
        if value is not None:
            text = b"%d" % value if isinstance(value, int) else value
            values.append(b'"%b": %b' % (name.encode(), quote(text)))
    return b"%b %b {%b}" % (capture.urlkey, capture.timestamp, b", ".join(values))


def quote(value: bytes) -> bytes:
    """`value` (UTF-8) as a JSON string, ASCII only; bytes that are no UTF-8 become U+FFFD."""
    if _UNSAFE.search(value) is None:
        return b'"%b"' % value
    return json.dumps(value.decode("utf-8", "replace")).encode()
