"""What several dialects have in common: fields by their names there, filters that match a whole field, replayed URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from cdxmill.formats.lines.capture_fields import ALSO, parse_fields, text_to_bytes
from cdxmill.regex import regex
from cdxmill.server.answers import bad_request

_NAMES = {"redirecturl": "redirect", **ALSO}
_LITERAL = regex(r"[\w/+ -]+", re.ASCII)
_CONTROL = regex(r"[\x00-\x20\x7f]")


def pattern_filter(text: str) -> str:
    """A filter `[!]FIELD:REGEX` of the Wayback and OutbackCDX servers, which match whole fields, as one of pywb.

    >>> pattern_filter("statuscode:200"), pattern_filter("!mimetype:text/.*")
    ('=status:200', '!~mime:(?:text/.*)$')
    """
    bare = text.removeprefix("!")
    name, colon, pattern = bare.partition(":")
    if not name or not colon:
        raise bad_request(f"invalid filter {text[:80]!r}: expected FIELD:REGEX or !FIELD:REGEX")
    inverted = "!" if bare != text else ""
    name = _NAMES.get(name, name)
    if _LITERAL.fullmatch(pattern):
        return f"{inverted}={name}:{pattern}"
    return f"{inverted}~{name}:(?:{pattern})$"


def rows_of(lines: Iterable[bytes], names: Sequence[str]) -> Iterator[list[str]]:
    """The named fields of lines; `-` for those that are missing. Raises ValueError."""
    known = [_NAMES.get(name, name) for name in names]
    for line in lines:
        fields = parse_fields(line)
        yield [str(fields.get(name, "-")) for name in known]


def text_row(row: Sequence[str]) -> bytes:
    """Fields with spaces between them, and none within them."""
    return text_to_bytes(" ".join(_CONTROL.sub(_percent, value) or "-" for value in row))


def text_rows(names: Sequence[str], lists: Iterable[list[bytes]]) -> Iterator[bytes]:
    """The named fields of all lines, a row for each."""
    for lines in lists:
        yield b"".join(text_row(row) + b"\n" for row in rows_of(lines, names))


def _percent(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def fields_of(text: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """The names of fields, with commas between them."""
    return tuple(filter(None, text.split(","))) if text else tuple(default)


def json_rows(
    names: Sequence[str],
    lists: Iterable[list[bytes]],
    value: Callable[[str, str], object] = lambda name, text: text,
) -> Iterator[bytes]:
    """An array of arrays, of which the first one has the names. An empty array if there are no lines.

    `value` makes the JSON value of a field from its name and its text.
    """
    before = b"[" + json_line(list(names))
    is_empty = True
    for lines in lists:
        rows = [json_line(list(map(value, names, row))) for row in rows_of(lines, names)]
        is_empty = is_empty and not rows
        yield b"".join([before, b",\n", b",\n".join(rows)]) if rows else b""
        before = before if is_empty else b""
    yield b"[]\n" if is_empty else b"]\n"


def json_line(value: object) -> bytes:
    """A value as one line of JSON."""
    return json.dumps(value).encode()
