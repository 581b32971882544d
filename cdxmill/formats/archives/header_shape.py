"""Record headers with the layout of an earlier header of the same file, read by one match.

The headers of a file have different values, but hardly ever different fields. Therefore the
layout of each new header is kept as a pattern. A header that matches it has the fields that
`parse_warc_header` would find, in a third of the time. Only the fields in ASKED are returned.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.formats.archives.warc_header import MAX_HEADER, parse_warc_header

_MOST_SHAPES = 8
"""Patterns per file. Without a limit, headers that are all different would be compared with more and more."""
_VALUE = rb"\S.*(?<=\S)(?<!/1\.[01])(?<!/0\.1[78])"
"""One line without white space at its ends, which would have to be stripped, and without the start of another record."""
_LENGTH = rb"[0-9]{1,18}"
"""A number that needs no further check."""
ASKED = frozenset(
    (
        b"content-length",
        b"content-type",
        b"warc-concurrent-to",
        b"warc-date",
        b"warc-identified-payload-type",
        b"warc-payload-digest",
        b"warc-record-id",
        b"warc-refers-to-date",
        b"warc-refers-to-target-uri",
        b"warc-target-uri",
        b"warc-truncated",
        b"warc-type",
    )
)
"""The fields that a capture is made from."""
_SINGLE = (b"content-length", b"content-type", b"warc-concurrent-to", b"warc-target-uri")
"""Fields whose groups a shape has by name. Group 0, the whole header, means that the field is missing."""
_NAME = re.compile(rb"[!-9;-~]+")


class HeaderShape(NamedTuple):
    """The pattern of a header, the names of its groups in lower case, its record type, the groups of some fields.

    The group `length` is a number. `following` has all shapes of the file, in the order in which they are tried
    for the next header. The one that followed this shape last comes first, because record types alternate.
    """

    pattern: re.Pattern[bytes]
    names: tuple[bytes, ...]
    kind: bytes
    length: int
    content_type: int
    concurrent_to: int
    url: int
    following: list[HeaderShape]


HeaderMatch = tuple[HeaderShape, re.Match[bytes]]
"""A shape, and its match with a header."""


def fields_of(found: HeaderMatch) -> Headers:
    """The fields of a header that are in ASKED, as `parse_warc_header` returns them."""
    shape, match = found
    return dict(zip(shape.names, match.groups()))  # noqa: B905 - the lengths are equal, and strict takes time


class Head(NamedTuple):
    """The type and the URL of a record, as its header has them; the URL is b"" if there is none."""

    kind: bytes
    url: bytes

    def url_text(self) -> str:
        """The URL without the brackets that some tools add."""
        return self.url.strip(b"<>").decode("utf-8", "replace")


def head_of(found: HeaderMatch) -> Head:
    """The type and the URL of a header."""
    shape, match = found
    return Head(shape.kind, match[shape.url] if shape.url else b"")


class HeaderShapes:
    """The shapes of a file's headers, at most a small number."""

    def __init__(self) -> None:
        self._shapes: list[HeaderShape] = []
        self._likely = self._shapes

    def match(self, data: bytes | bytearray) -> HeaderMatch | None:
        """The header that `data` starts with, if it has a known shape."""
        likely = self._likely
        for shape in likely:
            if (match := shape.pattern.match(data, 0, MAX_HEADER)) is not None:
                if shape is not likely[0]:
                    likely.remove(shape)
                    likely.insert(0, shape)
                self._likely = shape.following
                return shape, match
        return None

    def parse(self, data: bytes | bytearray) -> tuple[Headers, int]:
        """As `parse_warc_header`. Also adds the header's shape to those that `match` knows."""
        headers, start = parse_warc_header(data)
        if len(self._shapes) < _MOST_SHAPES:
            shape = _shape_of(bytes(data[:start]), headers)
            if shape is not None:
                self._add(shape)
        return headers, start

    def _add(self, shape: HeaderShape) -> None:
        self._shapes.append(shape)
        for known in self._shapes:
            known.following[:] = self._shapes


def _shape_of(head: bytes, headers: Headers) -> HeaderShape | None:
    """The shape of `head`; None if a pattern cannot read all of it."""
    version, *lines = head.split(b"\r\n")
    names = [line.partition(b":")[0] for line in lines[:-2]]
    keys = tuple(name.lower() for name in names)
    kind = headers.get(b"warc-type", b"")
    if keys != tuple(headers) or b"content-length" not in keys or not all(map(_NAME.fullmatch, names)):
        return None
    values = {b"content-length": _LENGTH, b"warc-type": re.escape(kind)}
    fields = (
        b"%b: %b\r\n" % (re.escape(name), (b"(%b)" if key in ASKED else b"%b") % values.get(key, _VALUE))
        for name, key in zip(names, keys, strict=True)
    )
    pattern = re.compile(re.escape(version) + b"\r\n" + b"".join(fields) + b"\r\n")
    groups = tuple(key for key in keys if key in ASKED)
    length, content_type, about, url = (groups.index(key) + 1 if key in groups else 0 for key in _SINGLE)
    shape = HeaderShape(pattern, groups, kind, length, content_type, about, url, [])
    match = pattern.match(head)
    if match is None or match.end() != len(head):
        return None
    asked = {key: value for key, value in headers.items() if key in ASKED}
    return shape if fields_of((shape, match)) == asked else None
