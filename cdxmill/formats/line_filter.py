"""Filters of pywb's CDX server: `[!][=|~]FIELD:TEXT` -> a function from a line to whether it passes.

=status:200      the field is equal to the text
~mime:text/.*    the regular expression matches at the start of the field
mime:html        the field contains the text
!...             the opposite
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cdxmill.formats.capture_fields import field_reader

Passes = Callable[[bytes], bool]


def parse_filter(text: str) -> Passes:
    """The filter as a function of a line. Without `FIELD:`, it applies to the whole line. Raises ValueError.

    >>> line = b'com,a)/ 2020 {"mime": "text/html", "status": "200"}'
    >>> [parse_filter(text)(line) for text in ("=status:200", "!=status:200", "~mime:.*html", "mime:text", "2020")]
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
    read = field_reader(name) if colon and name else _whole
    matches = _matcher(operator, value if colon else rest, text)
    if inverted:
        return lambda line: not matches(read(line))
    return lambda line: matches(read(line))


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
