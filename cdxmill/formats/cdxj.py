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
_CHARSET, _LANGUAGES = _FIELDS[10:12]

_OPTIONAL = (*range(3, 7), *range(10, 16))
"""SeekPoints of the values that may be absent: mime to digest, charset to request body."""


def format_cdxj(capture: Capture) -> bytes:
    """One line, without its line end."""
    mime, detected, status, digest = capture[3:7]
    charset, languages, truncated, redirect, method, body = capture[10:]
    template, quotes, values_of = _template(
        mime is None,
        detected is None,
        status is None,
        digest is None,
        charset is None,
        languages is None,
        truncated is None,
        redirect is None,
        method is None,
        body is None,
    )
    values = values_of(capture)
    line = template % values
    if line.translate(None, _SAFE) == quotes:  # no value has any that has to be escaped
        return line
    return template % (
        *values[:2],
        *(value if isinstance(value, int) else quote(value)[1:-1] for value in values[2:]),
    )


@cache
def _template(*absent: bool) -> tuple[bytes, bytes, Callable[[Capture], tuple[Any, ...]]]:
    """A line with places for the values that are there, the quotation marks of the line itself, and these values."""
    missing = {place for place, is_absent in zip(_OPTIONAL, absent, strict=True) if is_absent}
    present = [place for place in range(len(_FIELDS)) if place not in missing]
    template = b"".join([_FIELDS[place] for place in present]) + b'"}'
    return template, b'"' * template.count(b'"'), itemgetter(*present)


def with_notes(start: bytes, charset: bytes | None, languages: bytes | None, end: bytes) -> bytes:
    """A line of which the parts up to its filename and behind its languages are there."""
    if charset is not None:
        start += _CHARSET % quote(charset)[1:-1]
    if languages is not None:
        start += _LANGUAGES % quote(languages)[1:-1]
    return start + end


def quote(value: bytes) -> bytes:
    """`value` (UTF-8) as a JSON string, ASCII only; bytes that are no UTF-8 become U+FFFD."""
    if not value.translate(None, _SAFE):
        return b'"%b"' % value
    import json  # slow to import, and most lines need none

    return json.dumps(value.decode("utf-8", "replace")).encode()
