"""Record headers that are laid out like an earlier one of the same file, read by one match.

A writer's headers differ in their values, hardly ever in which fields they have. So the
layout of a header that was read field by field is kept as a pattern; a header that the
pattern matches has the fields that `parse_warc_header` would find, at a third of the time.
Of its fields those are given that are asked for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.formats.warc_header import MAX_HEADER, parse_warc_header

_MOST_SHAPES = 8
"""Headers that are none like another would else be compared with more and more shapes."""
_VALUE = rb"\S.*(?<=\S)"
"""One line; white space at its ends would have to be stripped."""
_LENGTH = rb"[0-9]{1,18}"
"""A number that needs no further look."""
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
"""Fields that anybody asks for: a capture is made from them."""
_SINGLE = (b"content-length", b"content-type", b"warc-concurrent-to")
"""Those that are asked for without the others; group 0, which is all of the header, stands for none."""
_NAME = re.compile(rb"[!-9;-~]+")


class HeaderShape(NamedTuple):
    """The pattern of a header; the names, in lower case, of its groups; its record type; and the groups of some fields.

    What stands in the group `length` is a number. `following` are all shapes of the file in the order in which
    they are tried for the next header: records come in turns, so the one that came behind this last is the first.
    """

    pattern: re.Pattern[bytes]
    names: tuple[bytes, ...]
    kind: bytes
    length: int
    content_type: int
    concurrent_to: int
    following: list[HeaderShape]


HeaderMatch = tuple[HeaderShape, re.Match[bytes]]
"""A header and the shape that it has."""


def fields_of(found: HeaderMatch) -> Headers:
    """Those fields of a header that are ASKED for, as `parse_warc_header` gives them."""
    shape, match = found
    return dict(zip(shape.names, match.groups()))  # noqa: B905 - as many, and no time to lose


class HeaderShapes:
    """The shapes of a file's headers, up to a small number."""

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
        """As `parse_warc_header`; the header's shape is known from then on."""
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
    """The shape of `head`; None where it is none that a pattern could tell all about."""
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
    length, content_type, about = (groups.index(key) + 1 if key in groups else 0 for key in _SINGLE)
    shape = HeaderShape(pattern, groups, kind, length, content_type, about, [])
    match = pattern.match(head)
    if match is None or match.end() != len(head):
        return None
    asked = {key: value for key, value in headers.items() if key in ASKED}
    return shape if fields_of((shape, match)) == asked else None
