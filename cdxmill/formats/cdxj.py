"""CDXJ lines (Webrecorder CDXJ 0.1.0): `<urlkey> <timestamp> <json>`.

Fields, order and spelling are those of Common Crawl's published index: every value a
string, `", "` and `": "` between, non-ASCII escaped, absent fields left out.
"""

from __future__ import annotations

import json

from cdxmill.capture import Capture

_SAFE = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')

_FIELDS = (
    b'", "mime": "',
    b'", "mime-detected": "',
    b'", "status": "',
    b'", "digest": "',
    b'", "length": "',
    b'", "offset": "',
    b'", "filename": "',
    b'", "charset": "',
    b'", "languages": "',
    b'", "truncated": "',
    b'", "redirect": "',
    b'", "method": "',
    b'", "requestBody": "',
)


def format_cdxj(capture: Capture) -> bytes:
    """One line, without its line end."""
    key, timestamp, url = capture[:3]
    length, offset = b"%d" % capture.length, b"%d" % capture.offset
    values = (*capture[3:7], length, offset, *capture[9:])
    present = [(name, value) for name, value in zip(_FIELDS, values, strict=True) if value is not None]
    if (url + b"".join([value for _, value in present])).translate(None, _SAFE):
        url = quote(url)[1:-1]
        present = [(name, quote(value)[1:-1]) for name, value in present]
    return b'%b %b {"url": "%b%b"}' % (
        key,
        timestamp,
        url,
        b"".join([name + value for name, value in present]),
    )


def quote(value: bytes) -> bytes:
    """`value` (UTF-8) as a JSON string, ASCII only; bytes that are no UTF-8 become U+FFFD."""
    if not value.translate(None, _SAFE):
        return b'"%b"' % value
    return json.dumps(value.decode("utf-8", "replace")).encode()
