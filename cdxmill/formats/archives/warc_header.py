"""A WARC record's header (ISO 28500:2017, 4 and 5): version line and named fields.

As lenient as warcio, so that warcio can read every record that gets an index line. Accepted
are bare LF, folded lines, names in any case and lines without a colon, which are dropped.
Of two equal names the first counts.

A record may break off inside its header, and the next one follows. Both then look like one header, in which
fields occur twice that a header has once. Such a header is refused.
"""

from __future__ import annotations

import re
from itertools import islice

from cdxmill.capture import Headers

VERSION = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])[^\n]*\n", re.I)
MAX_HEADER = 1 << 20

_SEVERAL = {b"warc-concurrent-to", b"warc-protocol"}
"""Fields that a header may have several times."""
_IDENTITY = (b"warc-record-id", b"warc-target-uri", b"content-length")
"""Of these, two different values show that two headers were joined. More than two values do not."""
_SECOND_VERSION = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])[ \t\r]*\n", re.I)
_MOST_VERSIONS = 8
"""More version lines than legal values can explain. Without a limit, the time could grow with the square of the size."""
_PLAIN_NAME = re.compile(rb"[!-9;-~]{1,64}")
_MAX_NAMES = 10_000
_VERSIONS = frozenset((b"WARC/1.0", b"WARC/1.1", b"WARC/0.17", b"WARC/0.18"))


class HeaderError(ValueError):
    """The bytes do not start with a record header. The text is the reason."""


class UnfinishedHeader(HeaderError):
    """A record header starts here, but does not end inside these bytes."""


_names: dict[bytes, bytes] = {}
"""A cache: field name -> name in lower case. Every record has the same dozen names."""


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
    """All values of each field, without folded lines."""
    found: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t").lower()
        if colon and line[:1] not in (b" ", b"\t"):
            found.setdefault(name, []).append(value.strip())
    return found


def parse_fields(data: bytes | bytearray, start: int) -> tuple[Headers, int]:
    """The named fields from `start` up to a blank line, and the position after that line.

    For WARC headers and HTTP heads (RFC 9112, 5, including obsolete folding). The position
    is -1 if there is no blank line in `data` or its first 1 MiB.
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
