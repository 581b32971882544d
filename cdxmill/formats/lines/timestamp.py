"""Dates of archives -> 14-digit timestamps (UTC) of CDX lines.

WARC-Date follows W3CDTF / ISO 8601 (WARC 1.1, 5.4). Missing parts get their smallest value, fractions are dropped,
other zones are converted. ARC dates should have 14 digits; real ones have 4 to 18, and some have other characters. As
in pywb's tools, their missing and invalid parts get the largest value, and parts out of range are clamped.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from cdxmill.regex import regex

_ISO = regex(
    rb"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?Z?"
)
_ZONE = regex(rb"(?<=\d) ?([+-])(\d\d)(?::?(\d\d))?$")
_YEAR = regex(rb"\d{4}")
_TIME = regex(rb"[T ]\d", re.I)
_NO_DIGITS = regex(rb"\D+")
_ISO_START = regex(rb"\d{4}-\d")
_LEAST = (1, 1, 1, 0, 0, 0)
_SMALLEST = b"00000101000000"
_LONGEST = 64
"""Bytes of the longest text that is read as a date. Converting thousands of digits would be slow."""
_FIRST_YEAR, _LAST_YEAR = 1900, 2999
"""Years that bare dates are clamped to, as warcio does."""
_WIDTHS = ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))


def warc_timestamp_of(date: bytes) -> bytes | None:
    """The 14 digits of a WARC-Date, or None if it is not a date.

    >>> warc_timestamp_of(b"2013-12-26T10:11:12.5Z"), warc_timestamp_of(b"2015-07-29T20:10:45+0200")
    (b'20131226101112', b'20150729181045')
    >>> warc_timestamp_of(b"2008"), warc_timestamp_of(b"2008-04"), warc_timestamp_of(b"soon")
    (b'20080101000000', b'20080401000000', None)
    """
    if _ISO.fullmatch(date):
        return date.translate(None, b"-:T")[:14]
    date = date.strip()
    if date.isdigit() and len(date) >= 4:
        date += _SMALLEST[len(date) :]
    return timestamp_of(date)


def arc_timestamp_of(date: bytes) -> bytes | None:
    """The 14 digits of an ARC date, or None if it does not start with a year.

    >>> arc_timestamp_of(b"2008"), arc_timestamp_of(b"2008043020482x"), arc_timestamp_of(b"None")
    (b'20081231235959', b'20080430204859', None)
    """
    found = timestamp_of(date)
    if found is None and _YEAR.match(date) and len(date) <= _LONGEST:
        return _bare(date)
    return found


def timestamp_of(date: bytes) -> bytes | None:
    """The 14 digits of an ISO date, or of 4 to 18 digits as in ARC. None for other text.

    >>> timestamp_of(b"2013-12-26T10:11:12.5Z"), timestamp_of(b"2015-07-29T20:10:45+02:00")
    (b'20131226101112', b'20150729181045')
    >>> timestamp_of(b"2008"), timestamp_of(b"201404010000000000"), timestamp_of(b"soon")
    (b'20081231235959', b'20140401000000', None)
    """
    if _ISO.fullmatch(date):
        return date.translate(None, b"-:T")[:14]
    date = date.strip()
    if len(date) > _LONGEST:
        return None
    if date.isdigit():
        return _bare(date) if 4 <= len(date) <= 18 else None
    return _iso(date) if _ISO_START.match(date) else None


def _iso(date: bytes) -> bytes | None:
    zone = _ZONE.search(date) if _TIME.search(date) else None
    if zone is not None:
        date = date[: zone.start()]
    parts = [int(part) for part in _NO_DIGITS.split(date) if part][:6]
    year, month, day, hour, minute, second = [*parts, *_LEAST[len(parts) :]]
    try:
        moment = datetime(year, month, day, hour, minute, second)
        if zone is not None:
            moment -= timedelta(minutes=int(zone[1] + b"1") * (60 * int(zone[2]) + int(zone[3] or 0)))
    except (ValueError, OverflowError):
        return None
    return b"%04d" % moment.year + moment.strftime("%m%d%H%M%S").encode()


def _bare(date: bytes) -> bytes:
    import calendar  # slow to import, and only ARC has such dates

    date += b"2" if len(date) == 5 else b""  # the last month that starts with this digit
    parts = [_number(date[low:high]) if len(date) >= high else None for low, high in _WIDTHS]
    year = max(_FIRST_YEAR, min(parts[0] or 0, _LAST_YEAR))
    month = 12 if parts[1] is None else min(max(parts[1], 1), 12)
    most = (year, 12, calendar.monthrange(year, month)[1], 23, 59, 59)
    filled = [high if value is None else value for value, high in zip((year, *parts[1:]), most, strict=True)]
    values = [max(low, min(value, high)) for low, value, high in zip(_LEAST, filled, most, strict=True)]
    return b"%04d%02d%02d%02d%02d%02d" % tuple(values)


def _number(text: bytes) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
