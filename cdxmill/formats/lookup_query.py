"""A question as pywb's CDX server takes it -> the range of keys in which the answer lies.

exact    com,example)/a      com,example)/a!       the URL alone
prefix   com,example)/a/     com,example)/a0       all URLs that start so
host     com,example)/       com,example*          all of the host
domain   com,example)/       com,example-          of the host and all below it; of a top-level domain com, com-
range    com,example)/a      org,example)/b        from the first URL up to, and without, the second

Keys are compared as bytes; the second bound is not part of the range.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.formats.surt import surt

MATCH_TYPES = ("exact", "prefix", "host", "domain", "range")

_DATE = re.compile(r"\d{1,17}", re.ASCII)
_MOST = (12, 31, 23, 59, 60)
"""The last month, day, hour, minute, and second. The least is 00, which is below all that is there."""
_DOWN, _UP = b"10000101000000", b"29991231235959"
"""What partial timestamps are filled with, as pywb does."""


class KeyRange(NamedTuple):
    """Lines from `low` on and below `high`; `key` is that of the URL where it asks for one alone."""

    low: bytes
    high: bytes
    key: bytes | None = None


class TimeRange(NamedTuple):
    """Timestamps from `first` to `last`, both in it; empty where there is no bound."""

    first: bytes = b""
    last: bytes = b""


def key_range(url: str, match_type: str | None = None) -> KeyRange:
    """The keys between which the lines of `url` lie.

    Without a match type `*.example.com` asks for a domain, `example.com/a*` for a prefix, all else for
    exactly the URL. A range is two URLs with a space between. Raises ValueError, with a text for the user.

    >>> key_range("http://example.com/a")
    KeyRange(low=b'com,example)/a', high=b'com,example)/a!', key=b'com,example)/a')
    >>> key_range("example.com/a/*")[:2], key_range("*.example.com")[:2]
    ((b'com,example)/a/', b'com,example)/a0'), (b'com,example)/', b'com,example-'))
    """
    url, match_type = _kind(url, match_type)
    if match_type == "range":
        ends = url.split()
        if len(ends) != 2:
            raise ValueError("a range is two URLs with a space between")
        low, high = map(_key, ends)
        if high < low:
            raise ValueError(f"the range ends before it begins: {high.decode()!r} is below {low.decode()!r}")
        return KeyRange(low, high)
    key = _key(url)
    if match_type == "exact":
        return KeyRange(key, key + b"!", key)
    if match_type == "prefix":
        return _prefix(url, key)
    host = key.split(b")/")[0]
    if match_type == "host":
        return KeyRange(host + b")/", host + b"*")
    return KeyRange(host + (b")/" if b"," in host else b","), host + b"-")


def _kind(url: str, match_type: str | None) -> tuple[str, str]:
    if match_type is not None:
        if match_type not in MATCH_TYPES:
            raise ValueError(f"match type is one of {', '.join(MATCH_TYPES)}, not {match_type}")
        return url, match_type
    if url.startswith("*."):
        return url[2:], "domain"
    if url.endswith("*"):
        return url[:-1], "prefix"
    return url, "exact"


def _key(url: str) -> bytes:
    if not url.strip():
        raise ValueError("it is empty")
    if url.startswith("*"):
        raise ValueError("a * may stand at the end, or as *. at the start")
    return surt(url.encode("utf-8", "surrogateescape"))


def _prefix(url: str, key: bytes) -> KeyRange:
    for ending in (b"/", b"?"):
        if url.encode("utf-8", "surrogateescape").endswith(ending) and not key.endswith(ending):
            key += ending
    return KeyRange(key, key[:-1] + bytes((key[-1] + 1,)))


def time_range(first: str | None, last: str | None) -> TimeRange:
    """Both bounds from timestamps of any number of digits. Raises ValueError.

    >>> time_range("2014", "201502")
    TimeRange(first=b'20140101000000', last=b'20150231235959')
    """
    bounds = []
    for text, fill in ((first, _DOWN), (last, _UP)):
        if text and not _is_date(text):
            raise ValueError(f"not a timestamp, of up to 14 digits YYYYMMDDhhmmss: {text!r}")
        digits = (text or "").encode()
        bounds.append(digits + fill[len(digits) :] if digits else b"")
    if all(bounds) and bounds[1] < bounds[0]:
        raise ValueError(f"the time ends before it begins: {last} is before {first}")
    return TimeRange(*bounds)


def _is_date(text: str) -> bool:
    """Whether these are digits of a timestamp; of a part that is cut the first may be any."""
    if not _DATE.fullmatch(text):
        return False
    parts = (int(text[start : start + 2]) for start in range(4, min(len(text), 14) - 1, 2))
    return all(part <= most for part, most in zip(parts, _MOST, strict=False))


def narrowed(keys: KeyRange, times: TimeRange) -> KeyRange:
    """The range of those lines of one URL that are within `times`; other ranges as they are.

    >>> narrowed(key_range("example.com"), time_range("2014", None))[:2]
    (b'com,example)/ 20140101000000', b'com,example)/!')
    """
    if keys.key is None:
        return keys
    low = keys.key + b" " + times.first if times.first else keys.low
    high = keys.key + b" " + times.last + b"!" if times.last else keys.high
    return KeyRange(low, high, keys.key)
