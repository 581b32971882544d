"""The parts of a query, as pywb's CDX server takes them: URL and match type, time range, filters.

exact    com,example)/a      com,example)/a!       the URL alone
prefix   com,example)/a/     com,example)/a0       all URLs that start with it
host     com,example)/       com,example*          all URLs of the host
domain   com,example)/       com,example-          the host and its subdomains; for a top-level domain com, to com-
range    com,example)/a      org,example)/b        from the first URL up to the second, which is excluded

Keys are compared as bytes. The second bound is excluded.

=status:200      the field is equal to the text
~mime:text/.*    the regular expression matches at the start of the field
mime:html        the field contains the text
!...             the opposite
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from cdxmill.formats.clusters.zipnum import BEYOND
from cdxmill.formats.lines.capture_fields import ALSO, FIELDS, field_reader
from cdxmill.formats.lines.surt import surt
from cdxmill.options.queries import MATCH_TYPES
from cdxmill.regex import regex

_DATE = regex(r"\d{1,17}", re.ASCII)
_MOST = (12, 31, 23, 59, 60)
"""The greatest month, day, hour, minute and second. The smallest is 00, which is below all real timestamps."""
_DOWN, _UP = b"10000101000000", b"29991231235959"
"""Digits that complete a partial timestamp, as in pywb."""


EVERYTHING = "*"
"""The query for all lines."""


class KeyRange(NamedTuple):
    """Lines >= `low` and < `high`. With `is_one_url`, `low` is the key of the only URL in the range."""

    low: bytes
    high: bytes
    is_one_url: bool = False


class TimeRange(NamedTuple):
    """Timestamps from `first` to `last`, both included. An empty one is no bound."""

    first: bytes = b""
    last: bytes = b""


def key_range(url: str, match_type: str | None = None) -> KeyRange:
    """The range of keys that contains the lines of `url`.

    Without a match type, `*.example.com` means a domain, `example.com/a*` a prefix, `*` all URLs, and anything else one
    exact URL.
    A range is two URLs separated by a space. Raises ValueError with a message for the user.

    >>> key_range("http://example.com/a")
    KeyRange(low=b'com,example)/a', high=b'com,example)/a!', is_one_url=True)
    >>> key_range("example.com/a/*")[:2], key_range("*.example.com")[:2]
    ((b'com,example)/a/', b'com,example)/a0'), (b'com,example)/', b'com,example-'))
    """
    if url == EVERYTHING and match_type is None:
        return KeyRange(b"", BEYOND)
    url, match_type = _kind(url, match_type)
    if match_type == "range":
        ends = url.split()
        if len(ends) != 2:
            raise ValueError("expected two URLs separated by a space, for the match type range")
        low, high = map(_key, ends)
        if high < low:
            raise ValueError(
                f"the range ends before it begins: {high.decode()!r} sorts before {low.decode()!r}"
            )
        return KeyRange(low, high)
    key = _key(url)
    if match_type == "exact":
        return KeyRange(key, key + b"!", is_one_url=True)
    if match_type == "prefix":
        return _prefix(url, key)
    host = key.split(b")/")[0]
    if match_type == "host":
        return KeyRange(host + b")/", host + b"*")
    return KeyRange(host + (b")/" if b"," in host else b","), host + b"-")


def ignored_part(url: str, match_type: str | None) -> str:
    """The part of a query that its range does not depend on: the path behind a host, or a * in the name of a host.

    >>> ignored_part("*.example.com/a*", None), ignored_part("*.example.com/*", None), ignored_part("example.com/a*", None)
    ('a*', '', '')
    """
    url, match_type = _kind(url, match_type)
    host, _, path = _key(url).decode("utf-8", "surrogateescape").partition(")/")
    if match_type in ("host", "domain"):
        return path.removesuffix("*") and path
    return host if "*" in host else ""


def _kind(url: str, match_type: str | None) -> tuple[str, str]:
    if match_type is not None:
        if match_type not in MATCH_TYPES:
            raise ValueError(f"invalid match type {match_type!r}: expected one of {', '.join(MATCH_TYPES)}")
        return url, match_type
    if url.startswith("*."):
        return url[2:], "domain"
    if url.endswith("*"):
        return url[:-1], "prefix"
    return url, "exact"


def _key(url: str) -> bytes:
    if not url.strip():
        raise ValueError("the URL is empty")
    if url.startswith("*"):
        raise ValueError("a * is allowed only at the end, or as *. at the start")
    return surt(url.encode("utf-8", "surrogateescape"))


def _prefix(url: str, key: bytes) -> KeyRange:
    for ending in (b"/", b"?"):
        if url.encode("utf-8", "surrogateescape").endswith(ending) and not key.endswith(ending):
            key += ending
    return KeyRange(key, key[:-1] + bytes((key[-1] + 1,)))


def time_range(first: str | None, last: str | None) -> TimeRange:
    """The bounds from timestamps of any number of digits. Raises ValueError.

    >>> time_range("2014", "201502")
    TimeRange(first=b'20140101000000', last=b'20150231235959')
    >>> time_range("20140101000000", "20140101000000").last
    b'20140101000000'
    """
    bounds = []
    for text, fill in ((first, _DOWN), (last, _UP)):
        if text and not _is_date(text):
            raise ValueError(f"invalid timestamp {text!r}: expected up to 14 digits, YYYYMMDDhhmmss")
        digits = (text or "").encode()
        bounds.append(digits + fill[len(digits) :] if digits else b"")
    if all(bounds) and bounds[1] < bounds[0]:
        raise ValueError(f"the time range ends before it begins: {last} is before {first}")
    return TimeRange(*bounds)


def _is_date(text: str) -> bool:
    """Whether these digits start a timestamp. If the last part has one digit only, it is not checked."""
    if not _DATE.fullmatch(text):
        return False
    parts = (int(text[start : start + 2]) for start in range(4, len(text) - 1, 2))
    return all(part <= most for part, most in zip(parts, _MOST, strict=False))


def narrowed(keys: KeyRange, times: TimeRange) -> KeyRange:
    """The part of a range of one URL that is within `times`. Other ranges are returned unchanged.

    >>> narrowed(key_range("example.com"), time_range("2014", None))[:2]
    (b'com,example)/ 20140101000000', b'com,example)/!')
    """
    if not keys.is_one_url or not any(times):
        return keys
    key = keys.low
    low = key + b" " + times.first if times.first else keys.low
    high = key + b" " + times.last + b"!" if times.last else keys.high
    return KeyRange(low, high)


Passes = Callable[[bytes], bool]

_NO_COLON = regex(
    rf"({'|'.join(map(re.escape, (*FIELDS, *(name for name in ALSO if len(name) > 1))))})([!=~]+)(.*)", re.S
)
"""The name of a field and an operator in its place. As part of a line, that is hardly ever wanted."""


class Filter(NamedTuple):
    """A filter: its field, None if it applies to the whole line, and a function from a line to whether it passes."""

    field: str | None
    passes: Passes


class Pattern(Protocol):
    """A compiled regular expression: of `re`, or of another library."""

    def match(self, text: str, /) -> object | None:
        """The match at the start of a text."""


Compile = Callable[[str], Pattern]
"""Makes a pattern. Raises re.error."""


def parse_filter(text: str, compile_pattern: Compile = re.compile) -> Filter:
    """The filter. Without `FIELD:`, it applies to the whole line. Raises ValueError.

    >>> line = b'com,a)/ 2020 {"mime": "text/html", "status": "200"}'
    >>> texts = ("=status:200", "!=status:200", "~mime:.*html", "mime:text", "2020")
    >>> [parse_filter(text).passes(line) for text in texts]
    [True, False, True, True, True]
    """
    rest = text.removeprefix("!")
    inverted = rest != text
    operator, rest = (rest[0], rest[1:]) if rest[:1] in ("=", "~") else ("", rest)
    if not rest:
        raise ValueError(
            f"invalid filter {text!r}: it is empty; expected e.g. =status:200, ~mime:.*html or !mime:image/"
        )
    name, colon, value = rest.partition(":")
    if not colon and (confused := _NO_COLON.match(rest)) is not None:
        raise ValueError(f"invalid filter {text!r}: expected {_meant(confused)}")
    field = name if colon and name else None
    read = _whole if field is None else field_reader(field)
    matches = _matcher(operator, value if colon else rest, text, compile_pattern)
    if inverted:
        return Filter(field, lambda line: not matches(read(line)))
    return Filter(field, lambda line: matches(read(line)))


def _meant(confused: re.Match[str]) -> str:
    """The filter that a text such as `status!=200` should have been."""
    name, sign, value = confused.groups()
    operator = ("!" if "!" in sign else "") + ("~" if "~" in sign else "=")
    return f"{operator}{name}:{value}"


def _whole(line: bytes) -> str:
    return line.rstrip().decode("utf-8", "surrogateescape")


def _matcher(operator: str, value: str, text: str, compile_pattern: Compile) -> Callable[[str], bool]:
    if operator == "=":
        return value.__eq__
    if operator == "":
        return lambda field: value in field
    try:
        match = compile_pattern(value).match
    except re.error as error:
        raise ValueError(f"invalid filter {text!r}: not a regular expression ({error})") from None
    return lambda field: match(field) is not None
