"""Filters of pywb's CDX server: `[!][=|~]FIELD:TEXT` -> a function from a line to whether it passes.

=status:200      the field is equal to the text
~mime:text/.*    the regular expression matches at the start of the field
mime:html        the field contains the text
!...             the opposite
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from cdxmill.formats.lines.capture_fields import ALSO, FIELDS, field_reader

Passes = Callable[[bytes], bool]

_NO_COLON = re.compile(
    rf"({'|'.join(map(re.escape, (*FIELDS, *(name for name in ALSO if len(name) > 1))))})([!=~]+)(.*)", re.S
)
"""The name of a field and an operator in its place. As part of a line, that is hardly ever wanted."""


class Filter(NamedTuple):
    """A filter: its field, None if it applies to the whole line, and a function from a line to whether it passes."""

    field: str | None
    passes: Passes


def parse_filter(text: str) -> Filter:
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
    matches = _matcher(operator, value if colon else rest, text)
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


def _matcher(operator: str, value: str, text: str) -> Callable[[str], bool]:
    if operator == "=":
        return value.__eq__
    if operator == "":
        return lambda field: value in field
    try:
        match = re.compile(value).match
    except re.error as error:
        raise ValueError(f"invalid filter {text!r}: not a regular expression ({error})") from None
    return lambda field: match(field) is not None
