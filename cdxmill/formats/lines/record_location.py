"""An index line -> the location of its record."""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.formats.lines.capture_fields import stored_fields

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
"""Larger numbers are beyond the end of any file, and beyond what a file system takes."""
_LENGTH = re.compile(r"0*[1-9]\d{0,17}", re.ASCII)

USUAL_LINE = re.compile(
    rb'\S+ (\d{14}) {"url": "[^"\\]*"(?:, "(?:mime|mime-detected|status|digest)": "[^"\\]*")*'
    rb', "length": "([1-9]\d{0,17})", "offset": "(\d{1,18})", "filename": "([ !#-\[\]-~]+)"'
    rb'(?:, "(?:charset|languages|truncated|redirect)": "[^"\\]*")*}'
)
"""A line as cdxmill, pywb and Common Crawl write it: its timestamp, length, offset and filename. It is read five times as fast
as JSON."""


class RecordLocation(NamedTuple):
    """The byte range of a record in an archive, and what the record must match.

    `length` is None if the line has no length. The other fields are "" if the line does not have them.
    """

    filename: str
    offset: int
    length: int | None
    url: str
    timestamp: str
    mime: str
    digest: str


def record_location(line: bytes) -> RecordLocation:
    """The location of the record of a CDX or CDXJ line. Raises ValueError if the line has none.

    >>> record_location(b'com,a)/ 2020 {"url": "http://a.com/", "length": "12", "offset": "0", "filename": "a.gz"}')[:3]
    ('a.gz', 0, 12)
    >>> record_location(b"com,a)/ 2020 http://a.com/ text/html 200 X - 7 a.gz")[:3]
    ('a.gz', 7, None)
    """
    fields = {name: _text(value) for name, value in stored_fields(line).items()}
    filename, offset, length = (fields.get(name, "") for name in ("filename", "offset", "length"))
    has_length = length not in ("", "-")
    if (
        not _is_name(filename)
        or not _NUMBER.fullmatch(offset)
        or (has_length and not _LENGTH.fullmatch(length))
    ):
        raise ValueError(f"the line has no valid filename, offset and length: {line[:80]!r}")
    return RecordLocation(
        filename,
        int(offset),
        int(length) if has_length else None,
        *(fields.get(name, "") for name in ("url", "timestamp", "mime", "digest")),
    )


class RecordPlace(NamedTuple):
    """Where a record is: the name of its archive, its offset and, if it is known, its length."""

    filename: bytes
    offset: int
    length: int | None


def usual_place(line: bytes) -> tuple[RecordPlace, bytes] | None:
    """The place and the timestamp of the record of a usual CDXJ line; None if `record_location` has to read the line.

    >>> usual_place(b'com,a)/ 20200101000000 {"url": "", "length": "12", "offset": "0", "filename": "a.gz"}')
    (RecordPlace(filename=b'a.gz', offset=0, length=12), b'20200101000000')
    """
    found = USUAL_LINE.fullmatch(line)
    if found is None:
        return None
    time, length, offset, name = found.groups()
    return RecordPlace(name, int(offset), int(length)), time


def _text(value: object) -> str:
    """A value of a field. One with values of its own is no text, and may be too deep for `str`."""
    return "" if isinstance(value, dict | list) else str(value)


def _is_name(filename: str) -> bool:
    """Whether a file can have this name."""
    try:
        return b"\0" not in (filename.encode("utf-8", "surrogateescape") or b"\0")
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
