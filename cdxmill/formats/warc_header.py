"""A WARC record's header (ISO 28500:2017, 4 and 5): version line and named fields.

Read as leniently as warcio reads it, so that every record that gets an index line can
be read back: bare LF, folded lines, a line without colon (dropped), any case of names,
the first of two equal names counts.
"""

from __future__ import annotations

import re

from cdxmill.capture import Headers

VERSION = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])[^\n]*\n", re.I)
MAX_HEADER = 1 << 20

_SECOND_VERSION = re.compile(rb"^WARC/(?:1\.[01]|0\.1[78])\s*$", re.M)
_PLAIN_NAME = re.compile(rb"[!-9;-~]{1,64}")
_MAX_NAMES = 10_000
_VERSIONS = frozenset((b"WARC/1.0", b"WARC/1.1", b"WARC/0.17", b"WARC/0.18"))


class HeaderError(ValueError):
    """These bytes do not start with a record header; the text says why."""


class UnfinishedHeader(HeaderError):
    """A record header starts here, but does not end within these bytes."""


_names: dict[bytes, bytes] = {}
"""Field names in lower case, remembered: the same dozen comes with every record."""


def parse_warc_header(data: bytes | bytearray) -> tuple[Headers, int]:
    """The header fields `data` starts with, and where the content block begins.

    Names are lower case, values stripped. Raises HeaderError where no header starts,
    UnfinishedHeader where it does not end within `data` or the first 1 MiB.

    >>> parse_warc_header(b"WARC/1.0\\r\\nWARC-Type: response\\r\\nContent-Length: 0\\r\\n\\r\\n")
    ({b'warc-type': b'response', b'content-length': b'0'}, 52)
    """
    end = data.find(b"\r\n\r\n", 0, MAX_HEADER)
    head = bytes(data[: max(end, 0)])
    lines = head.split(b"\r\n")
    # A header as nearly all are: CRLF and no other control, `name: value` throughout, no folds.
    if len(head) - len(head.translate(None, b"\r\n\t\v\f")) == 2 * len(lines) - 2 and lines[0] in _VERSIONS:
        headers = _plain_fields(lines[1:])
        if (
            len(headers) == len(lines) - 1
            and b" \r\n" not in head
            and b":  " not in head
            and head[-1:] != b" "
        ):
            return headers, end + 4
    return _parse_odd_header(data)


def _plain_fields(lines: list[bytes]) -> dict[bytes, bytes]:
    """The fields of `lines`; none where one is no plain `name: value`."""
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
            raise UnfinishedHeader("the record header has no end")
        raise HeaderError(f"unknown WARC version {first_line.rstrip()!r}")
    headers, end = parse_fields(data, version.end())
    if end < 0:
        raise UnfinishedHeader("the record header has no end")
    if _SECOND_VERSION.search(data, version.end(), end):
        raise HeaderError("another record starts within the record header")
    return headers, end


def parse_fields(data: bytes | bytearray, start: int) -> tuple[Headers, int]:
    """Named fields from `start` up to a blank line, and the position behind that line.

    Serves WARC and HTTP heads alike (RFC 9112, 5; obsolete folding included). The end
    is -1 where `data` or the first 1 MiB ends before a blank line does.
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
    """Take a field in; the list that its folded lines go to."""
    name, colon, value = line.partition(b":")
    name = name.rstrip(b" \t").lower()
    lines = [value.strip()]
    if colon and name not in fields:
        fields[name] = lines
    return lines
