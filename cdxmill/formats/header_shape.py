"""Record headers that are laid out like an earlier one of the same file, read by one match.

A writer's headers differ in their values, hardly ever in which fields they have. So the
layout of a header that was read field by field is kept as a pattern; a header that the
pattern matches has the fields that `parse_warc_header` would find, at a third of the time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.formats.warc_header import MAX_HEADER, parse_warc_header

_MOST_SHAPES = 8
"""Headers that are none like another would else be compared with more and more shapes."""
_VALUE = rb"(\S.*(?<=\S))\r\n"
"""One line; white space at its ends would have to be stripped."""
_ASKED = (b"content-length", b"content-type", b"warc-concurrent-to")
"""Fields that are asked for without the others; group 0, which is all of the header, stands for none."""
_NAME = re.compile(rb"[!-9;-~]+")


class HeaderShape(NamedTuple):
    """The pattern of a header, its field names in lower case, its record type, and the groups of some fields."""

    pattern: re.Pattern[bytes]
    names: tuple[bytes, ...]
    kind: bytes
    length: int
    content_type: int
    concurrent_to: int


HeaderMatch = tuple[HeaderShape, re.Match[bytes]]
"""A header and the shape that it has."""


def fields_of(found: HeaderMatch) -> Headers:
    """The fields of a header, as `parse_warc_header` gives them."""
    shape, match = found
    return dict(zip(shape.names, match.groups()))  # noqa: B905 - as many, and no time to lose


class HeaderShapes:
    """The shapes of a file's headers, up to a small number."""

    def __init__(self) -> None:
        self._shapes: list[HeaderShape] = []

    def match(self, data: bytes | bytearray) -> HeaderMatch | None:
        """The header that `data` starts with, if it has a known shape."""
        for shape in self._shapes:
            if (match := shape.pattern.match(data, 0, MAX_HEADER)) is not None:
                return shape, match
        return None

    def parse(self, data: bytes | bytearray) -> tuple[Headers, int]:
        """As `parse_warc_header`; the header's shape is known from then on."""
        headers, start = parse_warc_header(data)
        if len(self._shapes) < _MOST_SHAPES:
            shape = _shape_of(bytes(data[:start]), headers)
            if shape is not None:
                self._shapes.append(shape)
        return headers, start


def _shape_of(head: bytes, headers: Headers) -> HeaderShape | None:
    """The shape of `head`; None where it is none that a pattern could tell all about."""
    version, *lines = head.split(b"\r\n")
    names = [line.partition(b":")[0] for line in lines[:-2]]
    keys = tuple(name.lower() for name in names)
    kind = headers.get(b"warc-type", b"")
    if keys != tuple(headers) or b"content-length" not in keys or not all(map(_NAME.fullmatch, names)):
        return None
    fields = (
        b"%b: %b" % (re.escape(name), b"(%b)\r\n" % re.escape(kind) if key == b"warc-type" else _VALUE)
        for name, key in zip(names, keys, strict=True)
    )
    pattern = re.compile(re.escape(version) + b"\r\n" + b"".join(fields) + b"\r\n")
    groups = (keys.index(key) + 1 if key in keys else 0 for key in _ASKED)
    shape = HeaderShape(pattern, keys, kind, *groups)
    match = pattern.match(head)
    found = match is not None and match.end() == len(head) and fields_of((shape, match)) == headers
    return shape if found else None
