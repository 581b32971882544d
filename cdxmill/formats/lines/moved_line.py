"""An index line -> the same line with another place of its record. All other bytes stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cdxmill.formats.lines.capture_fields import ALSO, columns, is_cdxj, text_to_bytes
from cdxmill.formats.lines.cdx import safe
from cdxmill.formats.lines.cdxj import quote
from cdxmill.formats.lines.convert import FIELDS
from cdxmill.formats.lines.record_location import USUAL_PLACE, RecordPlace

_USUAL = re.compile(USUAL_PLACE)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(rb"[0-9]{1,18}")
_SIX = {"url": 2, "length": 3, "offset": 4, "filename": 5}
_PLACE = ("filename", "offset", "length")
_ORIGINAL = "orig."
"""The start of the names of the fields with the place of the record that a revisit refers to."""


Find = Callable[[RecordPlace], RecordPlace]
"""The new place of a record, with its length. The same place, if its archive was not written again."""


class _Value(NamedTuple):
    """A field of a line: its byte range, and its text."""

    start: int
    end: int
    text: bytes


def move_line(line: bytes, find: Find) -> bytes:
    """The line of a record at its new place. A length or an original that the line does not have is not added.

    Raises ValueError if the line has no valid place, and what `find` raises.

    >>> find = lambda place: RecordPlace(b"a.zst", 7, 10)
    >>> move_line(b'com,a)/ 2020 {"offset": 0, "filename": "a.gz", "length": "12"}', find)
    b'com,a)/ 2020 {"offset": 7, "filename": "a.zst", "length": "10"}'
    >>> move_line(b"com,a)/ 2020 http://a.com/ - 200 X - - 12 0 a.gz", find)
    b'com,a)/ 2020 http://a.com/ - 200 X - - 10 7 a.zst'
    """
    found = _USUAL.search(line)
    if found is not None and _is_usual(line):
        length, offset, filename = found.groups()
        old = RecordPlace(filename, int(offset), int(length))
        new = find(old)
        if new == old:
            return line
        fields = b'"length": "%d", "offset": "%d", "filename": %b' % (
            new.length or 0,
            new.offset,
            quote(new.filename),
        )
        return b"%b%b%b" % (line[: found.start()], fields, line[found.end() :])
    return _move_any(line, find)


def _is_usual(line: bytes) -> bool:
    """Whether a line with one match of _USUAL can have no other place."""
    return (
        line.count(b"{") == 1
        and line.count(b'"offset"') == 1
        and line.count(b'"length"') == 1
        and line.count(b'"filename"') == 1
        and b'"orig.' not in line
        and is_cdxj(line)
    )


def _move_any(line: bytes, find: Find) -> bytes:
    body = line.rstrip(b"\r\n")
    is_json = is_cdxj(body)
    values = dict(_json_values(body) if is_json else _columns(body))
    changes: dict[_Value, bytes] = {}
    for prefix in ("", _ORIGINAL):
        filename, offset, length = (values.get(prefix + name) for name in _PLACE)
        if prefix and (filename is None or filename.text in (b"", b"-")):
            continue
        if filename is None or offset is None or not _NUMBER.fullmatch(offset.text):
            raise ValueError("the line has no valid filename and offset")
        old = RecordPlace(filename.text, int(offset.text), _length(length))
        new = find(old)
        if new == old:
            continue
        changes[filename] = quote(new.filename) if is_json else safe(new.filename)
        changes[offset] = _like(line, offset, new.offset)
        if length is not None and old.length is not None:
            changes[length] = _like(line, length, new.length or 0)
    for value in sorted(changes, reverse=True):
        line = line[: value.start] + changes[value] + line[value.end :]
    return line


def _length(value: _Value | None) -> int | None:
    return int(value.text) if value is not None and _NUMBER.fullmatch(value.text) else None


def _like(line: bytes, value: _Value, number: int) -> bytes:
    """A number, with quotation marks if the value that it replaces has them."""
    return (b'"%d"' if line[value.start : value.start + 1] == b'"' else b"%d") % number


def _columns(line: bytes) -> Iterator[tuple[str, _Value]]:
    fields = line.split(b" ")
    names = columns(len(fields))
    where = _SIX if len(fields) == FIELDS else {name: number for number, name in enumerate(names)}
    start, starts = 0, []
    for field in fields:
        starts.append(start)
        start += len(field) + 1
    for name, number in where.items():
        yield name, _Value(starts[number], starts[number] + len(fields[number]), fields[number])


def _json_values(line: bytes) -> Iterator[tuple[str, _Value]]:
    """The texts and numbers of the JSON object of a line. Raises ValueError if a name occurs twice."""
    depth, key, names = 0, "", set()
    tokens = _TOKEN.finditer(line, line.index(b" {") + 1)
    before = b""
    for token in tokens:
        text = token[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and text.startswith(b'"') and before in (b"{", b","):
            key = _text(text)
            key = ALSO.get(key, key)
            if key in names:
                raise ValueError(f"the line has two fields {key}")
            names.add(key)
        elif depth == 1 and before == b":":
            value = text_to_bytes(_text(text)) if text.startswith(b'"') else text
            yield key, _Value(token.start(), token.end(), value)
        before = text
    if depth:
        raise ValueError("the line has no valid JSON")


def _text(token: bytes) -> str:
    return str(json.loads(token.decode("utf-8", "surrogateescape"), strict=False))
