"""A WARC record's header (ISO 28500:2017, 4 and 5). `parse_warc_header` reads any of them; `HeaderShapes` reads those with the
layout of an earlier one by one match.

As lenient as warcio: bare LF, folded lines, names in any case and lines without a colon, which are dropped, are
accepted. Of two equal names the first counts. A header in which another record starts is refused.

The headers of a file hardly ever have different fields. Therefore the layout of each new header is kept as a pattern.
A header that matches it has the fields that `parse_warc_header` would find, in a third of the time. Only the fields
in ASKED are returned.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.regex import regex

VERSION = regex(rb"WARC/(?:1\.[01]|0\.1[78])[^\n]*\n", re.I)
MAX_HEADER = 1 << 20

_SEVERAL = {b"warc-concurrent-to", b"warc-protocol"}
"""Fields that a header may have several times."""
_IDENTITY = (b"warc-record-id", b"warc-target-uri", b"content-length")
"""Of these, two different values show that two headers were joined. More than two values do not."""
_SECOND_VERSION = regex(rb"WARC/(?:1\.[01]|0\.1[78])[ \t\r]*\n", re.I)
_MOST_VERSIONS = 8
"""More than legal values can explain. Without a limit, the time could grow with the square of the size."""
_PLAIN_NAME = regex(rb"[!-9;-~]{1,64}")
_MAX_NAMES = 10_000
_VERSIONS = frozenset((b"WARC/1.0", b"WARC/1.1", b"WARC/0.17", b"WARC/0.18"))
_names: dict[bytes, bytes] = {}
"""A cache: field name -> name in lower case. Every record has the same dozen names."""
_MOST_SHAPES = 8
"""Patterns per file. Without a limit, headers that are all different would be compared with more and more."""
_VALUE = rb"\S.*(?<=\S)(?<!/1\.[01])(?<!/0\.1[78])"
"""One line without white space at its ends, and without the start of another record."""
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
_NAME = regex(rb"[!-9;-~]+")
_FOLD = regex(rb"\r?\n[ \t]+")
"""What joins the lines of a field."""


class HeaderError(ValueError):
    """The bytes do not start with a record header. The text is the reason."""


class UnfinishedHeader(HeaderError):
    """A record header starts here, but does not end inside these bytes."""


def parse_warc_header(data: bytes | bytearray) -> tuple[Headers, int]:
    """The header fields that `data` starts with, and the position of the content block.

    Names and the record type are lower case, values are stripped. Raises HeaderError if `data` starts with no header,
    UnfinishedHeader if the header does not end inside `data` or the first 1 MiB.

    >>> parse_warc_header(b"WARC/1.0\\r\\nWARC-Type: response\\r\\nContent-Length: 0\\r\\n\\r\\n")
    ({b'warc-type': b'response', b'content-length': b'0'}, 52)
    """
    end = data.find(b"\r\n\r\n", 0, MAX_HEADER)
    head = bytes(data[: max(end, 0)])
    lines = head.split(b"\r\n")
    # The usual header: each line is `name: value` and CRLF, without other control characters and folds.
    if len(head) - len(head.translate(None, b"\r\n\t\v\f")) == 2 * len(lines) - 2 and lines[0] in _VERSIONS:
        headers = _plain_fields(lines[1:])
        if (
            len(headers) == len(lines) - 1
            and b" \r\n" not in head
            and b":  " not in head
            and head[-1:] != b" "
            and head.find(b"/1.", len(lines[0])) < 0
            and head.find(b"/0.1", len(lines[0])) < 0
        ):
            return _in_lower_case(headers), end + 4
    headers, end = _parse_odd_header(data)
    return _in_lower_case(headers), end


def _in_lower_case(headers: Headers) -> Headers:
    """`headers` with the record type in lower case: `WARC-Type: Response` is a response."""
    kind = headers.get(b"warc-type")
    if kind is not None and not kind.islower():
        headers[b"warc-type"] = kind.lower()
    return headers


def _plain_fields(lines: list[bytes]) -> dict[bytes, bytes]:
    """The fields of `lines`; empty if a line is not a plain `name: value`."""
    try:
        pairs = [line.split(b": ", 1) for line in lines]
        try:
            return {_names[name]: value for name, value in pairs}
        except KeyError:
            _remember([name for name, _ in pairs])
            return {_names[name]: value for name, value in pairs}
    except (KeyError, ValueError):
        return {}


def _remember(names: list[bytes]) -> None:
    if len(_names) > _MAX_NAMES:
        _names.clear()
    _names.update((name, name.lower()) for name in names if _PLAIN_NAME.fullmatch(name))


def _parse_odd_header(data: bytes | bytearray) -> tuple[Headers, int]:
    version = VERSION.match(data)
    if version is None:
        first_line, line_end, _ = bytes(data[:24]).partition(b"\n")
        if not line_end and len(data) < len(b"WARC/1.0\n"):
            raise UnfinishedHeader("incomplete record header (no blank line ends it)")
        raise HeaderError(f"unknown WARC version {repr(first_line.rstrip())[1:]}")
    headers, end = parse_fields(data, version.end())
    if end < 0:
        raise UnfinishedHeader("incomplete record header (no blank line ends it)")
    head = bytes(data[len(b"WARC/1.0") : end])
    if _has_second_record(head):
        raise HeaderError("another record starts inside the record header")
    fields = _values(head)
    for name in _IDENTITY:
        if len(set(fields.get(name, ()))) == len(fields.get(name, ())) == 2:
            raise HeaderError(f"{name.decode()} occurs twice in the record header, with different values")
    return headers, end


def _has_second_record(head: bytes) -> bool:
    """Whether `head`, a header from its version number on, is the start of one header and all of another one.

    The version line of the second record may follow a part of a line. But a legal value may end like it, too:
    `WARC-Target-URI: http://a.com/WARC/1.0`. Then no field is on both sides, except those of _SEVERAL, and writers
    put a space after the colon: `Name:WARC/1.0` breaks off.
    """
    versions = list(islice(_SECOND_VERSION.finditer(head), _MOST_VERSIONS))
    return len(versions) == _MOST_VERSIONS or any(_is_second(version, head) for version in versions)


def _is_second(version: re.Match[bytes], head: bytes) -> bool:
    line = head[head.rfind(b"\n", 0, version.start()) + 1 : version.start()]
    if (
        line[-1:].isalnum()
        or line[-1:] in (b"\r", b":")
        or (b":" not in line and line[:1] not in (b" ", b"\t"))
    ):
        return True
    before, after = _values(head[: version.start()]), _values(head[version.end() :])
    return bool((before.keys() & after.keys()) - _SEVERAL)


def _values(head: bytes) -> dict[bytes, list[bytes]]:
    """All values of each field. Folded lines are joined."""
    found: dict[bytes, list[bytes]] = {}
    for line in _FOLD.sub(b" ", head).split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            found.setdefault(name.rstrip(b" \t").lower(), []).append(value.strip())
    return found


def parse_fields(data: bytes | bytearray, start: int) -> tuple[Headers, int]:
    """The named fields from `start` up to a blank line, and the position after that line.

    The position is -1 if there is no blank line in `data` or its first 1 MiB. Folded lines are joined (RFC 9112, 5.2).
    """
    fields: dict[bytes, list[bytes]] = {}
    pos, end = start, -1
    lines: list[bytes] | None = None
    while (stop := data.find(b"\n", pos, start + MAX_HEADER)) >= 0:
        line = bytes(data[pos : stop + 1]).rstrip()
        pos = stop + 1
        if not line:
            end = pos
            break
        if line[:1] not in b" \t" or lines is None:
            lines = _add_field(fields, line)
        else:
            lines.append(line)
    return {name: b"".join(parts) for name, parts in fields.items()}, end


def _add_field(fields: dict[bytes, list[bytes]], line: bytes) -> list[bytes]:
    """Add a field; returns the list of its lines, to which folded lines can be added."""
    name, colon, value = line.partition(b":")
    name = name.rstrip(b" \t").lower()
    lines = [value.strip()]
    if colon and name not in fields:
        fields[name] = lines
    return lines


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
