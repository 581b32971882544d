"""Index lines of captures: CDXJ, and CDX with 11, 9 or 6 fields.

CDXJ (Webrecorder CDXJ 0.1.0): `<urlkey> <timestamp> <json>`. Fields, order and spelling are those of Common Crawl's index:
all values are strings, the separators are `", "` and `": "`, non-ASCII is escaped, absent fields are omitted.
All that depends on the order of the fields is here, and in `native/line.c`, which writes the same lines.

CDX (IIPC "The CDX File Format", 2015): an absent value is `-`; white space and control characters are percent-encoded.

     CDX N b a m s k r M S V g      urlkey timestamp url mime status digest redirect meta length offset file
     CDX N b a m s k r V g          the same without meta and length
                                    urlkey timestamp url length offset file, in older indexes
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

from cdxmill.capture import Capture
from cdxmill.regex import regex

CDX_NAME = regex(r"\.cdxj?(\.gz)?$", re.I)
"""How the names of CDX and CDXJ files end."""

CDX11_HEADER = b" CDX N b a m s k r M S V g"
CDX9_HEADER = b" CDX N b a m s k r V g"

_UNSAFE = regex(rb"[\x00-\x20\x7f]")


def format_cdx11(capture: Capture) -> bytes:
    """One line of 11 fields, without its line end. As in pywb, redirect and meta are `-`."""
    return b"%b - - %d %d %b" % (_start(capture), capture.length, capture.offset, safe(capture.filename))


def format_cdx9(capture: Capture) -> bytes:
    """One line of 9 fields, without its line end. As in pywb, redirect is `-`."""
    return b"%b - %d %b" % (_start(capture), capture.offset, safe(capture.filename))


def _start(capture: Capture) -> bytes:
    fields = (capture.url, capture.mime, capture.status, capture.digest)
    return b"%b %b %b" % (capture.urlkey, capture.timestamp, b" ".join(map(safe, fields)))


def safe(value: bytes | None) -> bytes:
    """A value as a field of a line.

    >>> safe(b"a b.warc.gz"), safe(None)
    (b'a%20b.warc.gz', b'-')
    """
    if not value:
        return b"-"
    return _UNSAFE.sub(lambda match: b"%%%02X" % match.group()[0], value)


_SAFE = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')

_PARTS = {
    "urlkey": b"%b ",
    "timestamp": b'%b {"url": "',
    "url": b"%b",
    "mime": b'", "mime": "%b',
    "mime_detected": b'", "mime-detected": "%b',
    "status": b'", "status": "%b',
    "digest": b'", "digest": "%b',
    "length": b'", "length": "%d',
    "offset": b'", "offset": "%d',
    "filename": b'", "filename": "%b',
    "charset": b'", "charset": "%b',
    "languages": b'", "languages": "%b',
    "truncated": b'", "truncated": "%b',
    "redirect": b'", "redirect": "%b',
    "method": b'", "method": "%b',
    "request_body": b'", "requestBody": "%b',
}
"""The part of a line for each value of a capture, in the order of the line."""
_CHARSET, _LANGUAGES = _PARTS["charset"], _PARTS["languages"]
_PLACE = _PARTS["offset"] + _PARTS["filename"] + b'"'
_NO_PLACE = _PLACE % (0, b"")
"""Where a line lacks its place. In JSON, it cannot be part of a value."""
_URL, _LENGTH = b'{"url": "', b'", "length": "'
_REVISIT = _PARTS["mime"] % b"warc/revisit" + b'"'
_REQUIRED = {"urlkey", "timestamp", "url", "length", "offset", "filename"}
_OPTIONAL = [name for name in _PARTS if name not in _REQUIRED]


def format_cdxj(capture: Capture) -> bytes:
    """One line, without its line end."""
    template, quotes, values_of = _template(
        capture.mime is None,
        capture.mime_detected is None,
        capture.status is None,
        capture.digest is None,
        capture.charset is None,
        capture.languages is None,
        capture.truncated is None,
        capture.redirect is None,
        capture.method is None,
        capture.request_body is None,
    )
    values = values_of(capture)
    line = template % values
    if line.translate(None, _SAFE) == quotes:  # no value has to be escaped
        return line
    key, timestamp, *fields = values
    escaped = (value if isinstance(value, int) else quote(value)[1:-1] for value in fields)
    return template % (key, timestamp, *escaped)


@cache
def _template(*absent: bool) -> tuple[bytes, bytes, Callable[[Capture], tuple[Any, ...]]]:
    """The template of lines without the `absent` ones of _OPTIONAL.

    Returns the template, its quotation marks, and a function that picks the values from a capture.
    """
    missing = {name for name, is_absent in zip(_OPTIONAL, absent, strict=True) if is_absent}
    present = [name for name in _PARTS if name not in missing]
    template = b"".join([_PARTS[name] for name in present]) + b'"}'
    return template, b'"' * template.count(b'"'), itemgetter(*map(Capture._fields.index, present))


def format_placeless(capture: Capture) -> bytes:
    """As `format_cdxj`, for a record whose place is not known yet: see `with_place`."""
    return format_cdxj(capture._replace(offset=0, filename=b""))


def with_place(line: bytes, offset: int, filename: bytes) -> bytes:
    """A line that was made for offset 0 of a file without a name, with its place. `filename` is in JSON, without quotes."""
    return line.replace(_NO_PLACE, _PLACE % (offset, filename), 1)


def up_to_digest(line: bytes) -> bytes:
    """The start of a line of cdxmill that does not depend on the record's place: its key and its fields up to the digest."""
    return line[: line.find(_LENGTH) + 1]


def url_in(line: bytes) -> bytes:
    """The URL in a line of cdxmill, in JSON, without quotes."""
    start = line.index(_URL) + len(_URL)
    return line[start : line.index(b'"', start)]


def is_of_revisit(line: bytes) -> bool:
    """Whether a line of cdxmill has the MIME type of revisits."""
    return _REVISIT in line


def with_notes(start: bytes, charset: bytes | None, languages: bytes | None, end: bytes) -> bytes:
    """A line from its part up to the filename, its notes, and its part after the languages."""
    if charset is not None:
        start += _CHARSET % quote(charset)[1:-1]
    if languages is not None:
        start += _LANGUAGES % quote(languages)[1:-1]
    return start + end


def quote(value: bytes) -> bytes:
    """`value` (UTF-8) as a JSON string in ASCII. Bytes that are not UTF-8 become U+FFFD."""
    if not value.translate(None, _SAFE):
        return b'"%b"' % value
    import json  # slow to import, and most lines do not need it

    return json.dumps(value.decode("utf-8", "replace")).encode()


FIELDS = 6


def convert_line(line: bytes) -> bytes:
    """The CDXJ line of a 6-field line. Raises ValueError for any other number of fields.

    >>> convert_line(b"com,a)/ 2020 http://a.com/ 12 0 a.warc.gz")
    b'com,a)/ 2020 {"url": "http://a.com/", "length": "12", "offset": "0", "filename": "a.warc.gz"}'
    """
    fields = line.split(b" ")
    if len(fields) != FIELDS:
        raise ValueError(f"invalid line with {len(fields)} fields, expected {FIELDS}: {line[:80]!r}")
    key, timestamp, url, length, offset, filename = fields
    values = (b"url", url), (b"length", length), (b"offset", offset), (b"filename", filename)
    return b"%b %b {%b}" % (
        key,
        timestamp,
        b", ".join(b'"%b": %b' % (name, quote(text)) for name, text in values),
    )
