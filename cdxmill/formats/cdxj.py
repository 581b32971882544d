"""CDXJ lines (Webrecorder CDXJ 0.1.0): `<urlkey> <timestamp> <json>`.

Fields, order and spelling are those of Common Crawl's published index: every value a
string, `", "` and `": "` between, non-ASCII escaped, absent fields left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

from cdxmill.capture import Capture

_SAFE = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')

_FIELDS = (
    b"%b ",
    b'%b {"url": "',
    b"%b",
    b'", "mime": "%b',
    b'", "mime-detected": "%b',
    b'", "status": "%b',
    b'", "digest": "%b',
    b'", "length": "%d',
    b'", "offset": "%d',
    b'", "filename": "%b',
    b'", "charset": "%b',
    b'", "languages": "%b',
    b'", "truncated": "%b',
    b'", "redirect": "%b',
    b'", "method": "%b',
    b'", "requestBody": "%b',
)
"""What a line has of each of a capture's values."""


def format_cdxj(capture: Capture) -> bytes:
    """One line, without its line end."""
    template, quotes, values_of = _template(tuple([value is None for value in capture]))
    values = values_of(capture)
    line = template % values
    if line.translate(None, _SAFE) == quotes:  # no value has any that has to be escaped
        return line
    return template % (
        *values[:2],
        *(value if isinstance(value, int) else quote(value)[1:-1] for value in values[2:]),
    )


@cache
def _template(absent: tuple[bool, ...]) -> tuple[bytes, bytes, Callable[[Capture], tuple[Any, ...]]]:
    """A line with places for the values that are there, the quotation marks of the line itself, and these values."""
    present = [place for place, is_absent in enumerate(absent) if not is_absent]
    template = b"".join([_FIELDS[place] for place in present]) + b'"}'
    return template, b'"' * template.count(b'"'), itemgetter(*present)


def quote(value: bytes) -> bytes:
    """`value` (UTF-8) as a JSON string, ASCII only; bytes that are no UTF-8 become U+FFFD."""
    if not value.translate(None, _SAFE):
        return b'"%b"' % value
    import json  # slow to import, and most lines need none

    return json.dumps(value.decode("utf-8", "replace")).encode()
