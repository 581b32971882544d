"""A CDX or CDXJ line, read: its fields under the names of pywb's CDX server, and the place of its record. And the lines that
are printed for it.

CDXJ   <urlkey> <timestamp> {"url": ..., "mime": ..., ...}
CDX    <urlkey> <timestamp> <url> ...                        6, 7, 9, 10 or 11 fields; the last three also with ORIGINAL

`cdxj`, `json` (one object per line) and `text` (values separated by spaces) are pywb's. `cdx` and `csv` are our own.
Control characters are escaped in all of them but csv, which quotes line ends. So an answer line is one line.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from cdxmill.regex import regex

Fields = dict[str, Any]

REVISIT = "warc/revisit"
"""The MIME type of revisits in index lines."""
ABSENT = "-"
"""The timestamp of a line that has none, such as one from Common Crawl's URL index of 2012."""

_START = ("urlkey", "timestamp", "url", "mime", "status", "digest")
_CDX9 = (*_START, "redirect", "offset", "filename")
_CDX10 = (*_START, "redirect", "robotflags", "offset", "filename")
CDX11 = (*_START, "redirect", "robotflags", "length", "offset", "filename")
ORIGINAL = ("orig.length", "orig.offset", "orig.filename")
COLUMNS = {
    len(names): names
    for names in (
        ("urlkey", "timestamp", "url", "length", "offset", "filename"),
        (*_START, "length"),
        _CDX9,
        _CDX10,
        CDX11,
        (*_CDX9, *ORIGINAL),
        (*_CDX10, *ORIGINAL),
        (*CDX11, *ORIGINAL),
    )
}
"""The names of the fields of a CDX line, by their number."""
FIELDS = (*CDX11, "mime-detected", "charset", "languages", "truncated", "method", "requestBody", *ORIGINAL)
"""The fields that cdxmill and pywb write. Other tools write more."""

ALSO = {
    "u": "url",
    "original": "url",
    "statuscode": "status",
    "mimetype": "mime",
    "m": "mime",
    "l": "length",
    "s": "length",
    "o": "offset",
    "d": "digest",
    "t": "timestamp",
    "k": "urlkey",
    "f": "filename",
}
"""Other names of fields, in filters and as JSON keys."""

_PAIRLESS = regex("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of surrogate pairs that do not stand for a byte."""

_EXACT = frozenset((str, int, bool, type(None)))
"""Types of values that orjson always reads like `json`."""


def parse_fields(line: bytes) -> Fields:
    """All fields of a line, in their order, as pywb gives them: a URL that is not ASCII is quoted. Raises ValueError.

    >>> parse_fields(b'com,a)/ 2020 {"url": "http://a.com/", "statuscode": 200}')
    {'urlkey': 'com,a)/', 'timestamp': '2020', 'url': 'http://a.com/', 'status': 200}
    """
    fields = stored_fields(line)
    url = fields.get("url")
    if isinstance(url, str) and not url.isascii() and is_cdxj(line):
        fields["url"] = quote(text_to_bytes(url), safe=":/")
    return fields


def stored_fields(line: bytes) -> Fields:
    """All fields of a line as they are stored, in their order. Raises ValueError."""
    line = line.rstrip()
    parts = line.split(b" ", 2)
    if len(parts) == 3 and parts[2].startswith(b"{"):
        found = parse_object(parts[2])
        fields: Fields = {"urlkey": _text(parts[0]), "timestamp": _text(parts[1])}
        if not ALSO.keys().isdisjoint(found):
            found = {ALSO.get(name, name): value for name, value in found.items()}
        fields.update(found)
        return fields
    values = _text(line).split(" ")
    if len(values) not in COLUMNS:
        raise ValueError(
            f"invalid line, neither CDXJ nor CDX, with {len(values)} fields: {_text(line)[:80]!r}"
        )
    return dict(zip(COLUMNS[len(values)], values, strict=True))


def is_cdxj(line: bytes) -> bool:
    """Whether a line is CDXJ: its third field starts a JSON object.

    >>> is_cdxj(b'com,a)/ 2020 {"url": "http://a.com/"}'), is_cdxj(b"com,a)/ 2020 http://a.com/{")
    (True, False)
    """
    return _CDXJ(line) is not None


_CDXJ = regex(rb"[^ ]* [^ ]* \{").match


def are_cdxj(lines: Iterable[bytes]) -> bool:
    """Whether all lines are CDXJ."""
    return all(map(_CDXJ, lines))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def text_to_bytes(text: str) -> bytes:
    """The UTF-8 of fields. Bytes that were not UTF-8 come back; half of a surrogate pair is escaped.

    >>> text_to_bytes("\\udcff \\ud800")
    b'\\xff \\\\ud800'
    """
    return _PAIRLESS.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode("utf-8", "surrogateescape")


def parse_object(data: bytes) -> Fields:
    """The JSON object of a line, always with the result of `json`. Raises ValueError.

    orjson is three times as fast. `json` reads what orjson refuses (lone surrogates, invalid UTF-8, NaN) and what
    orjson may read differently: an integer of more than 64 bits would become a float, also in nested values.

    >>> parse_object(b'{"status": "200", "length": 18446744073709551616}')
    {'status': '200', 'length': 18446744073709551616}
    """
    import orjson  # slow to import, and most lookups parse no line

    try:
        found = orjson.loads(data)
        if _EXACT.issuperset(map(type, found.values())):
            return cast("Fields", found)
    except (orjson.JSONDecodeError, AttributeError):  # AttributeError: not an object
        pass
    return _parse_any_object(_text(data))


def _parse_any_object(text: str) -> Fields:
    try:
        found = json.loads(text, parse_float=_finite, parse_constant=str)
    except ValueError as error:
        raise ValueError(f"invalid JSON in a line ({error}): {text[:80]!r}") from None
    except RecursionError:
        raise ValueError(f"invalid JSON in a line (too many nested values): {text[:80]!r}") from None
    if not isinstance(found, dict):
        raise ValueError(f"the JSON of a line is not an object: {text[:80]!r}")
    return found


def _finite(text: str) -> float | str:
    """A number. One that is too large for a float stays text, as NaN does: JSON has neither."""
    number = float(text)
    return number if math.isfinite(number) else text


def field_reader(name: str) -> Callable[[bytes], str]:
    """A function from a line to one of its fields, "" if it is missing. It parses the JSON only if needed.

    The function raises ValueError for an invalid line.

    >>> read = field_reader("statuscode")
    >>> read(b'com,a)/ 2020 {"status": "200"}'), read(b"com,a)/ 2020 http://a.com/ text/html 404 X 12")
    ('200', '404')
    """
    name = ALSO.get(name, name)
    if name == "urlkey":
        return lambda line: line.partition(b" ")[0].decode("utf-8", "surrogateescape")
    if name == "timestamp":
        return lambda line: timestamp_of_line(line).decode("utf-8", "surrogateescape")
    start = b'"%b": "' % name.encode("utf-8", "surrogateescape")
    size = len(start)

    def read(line: bytes) -> str:
        found = line.rfind(start)
        if found >= 0 and b"\\" not in line and line.count(b"{") == 1 and line.isascii():
            found += size
            try:
                return line[found : line.index(b'"', found)].decode()
            except ValueError:  # the JSON is invalid, as parse_fields says
                pass
        return str(parse_fields(line).get(name, ""))

    return read


def timestamp_of_line(line: bytes) -> bytes:
    """The second field.

    >>> timestamp_of_line(b"com,a)/ 2020 {}")
    b'2020'
    """
    start = line.find(b" ") + 1
    end = line.find(b" ", start)
    return line[start:] if end < 0 else line[start:end]


_NUMBER = regex(r"\d{1,18}", re.ASCII)
"""Larger numbers are beyond the end of any file, and beyond what a file system takes."""
_LENGTH = regex(r"0*[1-9]\d{0,17}", re.ASCII)

USUAL_LINE = regex(
    rb'[^\s\0]+ (\d{14}) {"url": "[^"\\]*"(?:, "(?:mime|mime-detected|status|digest)": "[^"\\]*")*'
    rb', "length": "([1-9]\d{0,17})", "offset": "(\d{1,18})", "filename": "([ !#-\[\]-~]+)"'
    rb'(?:, "(?:charset|languages|truncated|redirect)": "[^"\\]*")*}'
)
"""A line as cdxmill, pywb and Common Crawl write it: its timestamp, length, offset and filename. It is read five times as fast
as JSON."""


class RecordLocation(NamedTuple):
    """The byte range of a record in an archive, and what the record must match.

    `length` is None if the line has no length. The other fields are "" if the line does not have them.
    """

    filename: str
    offset: int
    length: int | None
    url: str
    timestamp: str
    mime: str
    digest: str


def record_location(line: bytes) -> RecordLocation:
    """The location of the record of a CDX or CDXJ line. Raises ValueError if the line has none.

    >>> record_location(b'com,a)/ 2020 {"url": "http://a.com/", "length": "12", "offset": "0", "filename": "a.gz"}')[:3]
    ('a.gz', 0, 12)
    >>> record_location(b"com,a)/ 2020 http://a.com/ text/html 200 X - 7 a.gz")[:3]
    ('a.gz', 7, None)
    """
    fields = {name: _as_text(value) for name, value in stored_fields(line).items()}
    filename, offset, length = (fields.get(name, "") for name in ("filename", "offset", "length"))
    has_length = length not in ("", "-")
    if (
        not _is_name(filename)
        or not _NUMBER.fullmatch(offset)
        or (has_length and not _LENGTH.fullmatch(length))
    ):
        raise ValueError(f"the line has no valid filename, offset and length: {line[:80]!r}")
    return RecordLocation(
        filename,
        int(offset),
        int(length) if has_length else None,
        *(fields.get(name, "") for name in ("url", "timestamp", "mime", "digest")),
    )


class RecordPlace(NamedTuple):
    """Where a record is: the name of its archive, its offset and, if it is known, its length."""

    filename: bytes
    offset: int
    length: int | None


def usual_place(line: bytes) -> tuple[RecordPlace, bytes] | None:
    """The place and the timestamp of the record of a usual CDXJ line; None if `record_location` has to read the line.

    >>> usual_place(b'com,a)/ 20200101000000 {"url": "", "length": "12", "offset": "0", "filename": "a.gz"}')
    (RecordPlace(filename=b'a.gz', offset=0, length=12), b'20200101000000')
    """
    found = USUAL_LINE.fullmatch(line)
    if found is None:
        return None
    time, length, offset, name = found.groups()
    return RecordPlace(name, int(offset), int(length)), time


def place_in(line: bytes) -> tuple[RecordPlace, bytes]:
    """The place and the timestamp of the record of any line. Raises ValueError if the line has no place."""
    if usual := usual_place(line):
        return usual
    found = record_location(line)
    name, time = (text.encode("utf-8", "surrogateescape") for text in (found.filename, found.timestamp))
    return RecordPlace(name, found.offset, found.length), time


def _as_text(value: object) -> str:
    """A value of a field. One with values of its own is no text, and may be too deep for `str`."""
    return "" if isinstance(value, dict | list) else str(value)


def _is_name(filename: str) -> bool:
    """Whether a file can have this name."""
    try:
        return b"\0" not in (filename.encode("utf-8", "surrogateescape") or b"\0")
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


_NOTES = ("charset", "languages", "truncated", "redirect")
_CSV = (*_START[:4], "mime-detected", "status", "digest", "length", "offset", "filename", *_NOTES)
_CONTROL = regex(r"[\x00-\x1f\x7f]")
_UNSAFE = regex(r"[\x00-\x20\x7f]")
Format = Callable[[bytes], bytes]


def line_format(output: str | None, names: Sequence[str] | None, resolved: bool = False) -> Format | None:
    """A function from a line to its printed form, without a line end. None means that lines are printed unchanged.

    `names` are the fields to print. `resolved` means that lines have the fields of `ORIGINAL`.

    >>> line = b"com,a)/ 2020 http://a.com/ text/html 404 X 12"
    >>> make = line_format("json", ["urlkey", "status"])
    >>> make(line)
    b'{"urlkey": "com,a)/", "status": "404"}'
    """
    if output is None and names is None:
        return None
    if output in (None, "cdxj"):
        return as_cdxj if names is None else lambda line: _cdxj(parse_fields(line), names)
    if output == "json":
        return lambda line: _dump(parse_fields(line), names).encode()
    if output == "text":
        return lambda line: _joined(parse_fields(line), names)
    if output == "cdx":
        columns = names or (*CDX11, *(ORIGINAL if resolved else ()))
        return lambda line: _cdx(parse_fields(line), columns)
    columns = names or (*_CSV, *(ORIGINAL if resolved else ()))
    return lambda line: _csv([parse_fields(line).get(name, "") for name in columns])


def header(output: str | None, names: Sequence[str] | None, resolved: bool = False) -> bytes | None:
    """The header line, or None if the output has none.

    >>> header("csv", ["url", "status"]), header("json", None)
    (b'url,status', None)
    """
    return _csv(names or (*_CSV, *(ORIGINAL if resolved else ()))) if output == "csv" else None


def as_cdxj(line: bytes) -> bytes:
    """A line as CDXJ. Raises ValueError."""
    return line if is_cdxj(line) else _cdxj(parse_fields(line), None)


def _cdxj(fields: Fields, names: Sequence[str] | None) -> bytes:
    start = (_UNSAFE.sub(_percent, str(fields.pop(name))) for name in ("urlkey", "timestamp"))
    return text_to_bytes(" ".join((*start, _dump(fields, names))))


def _dump(fields: Fields, names: Sequence[str] | None) -> str:
    if names is None:
        return json.dumps({name: value for name, value in fields.items() if not name.startswith("_")})
    return json.dumps({name: fields[name] for name in names if name in fields})


def _joined(fields: Fields, names: Sequence[str] | None) -> bytes:
    text = " ".join(str(fields.get(name, "-")) for name in names or fields)
    return text_to_bytes(_CONTROL.sub(_percent, text))


def _cdx(fields: Fields, names: Sequence[str]) -> bytes:
    """A CDX line. Spaces and control characters are percent-encoded, as in every CDX file."""
    values = (str(fields.get(name, "")) or "-" for name in names)
    return text_to_bytes(" ".join(_UNSAFE.sub(_percent, value) for value in values))


def _percent(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"


def _csv(values: Sequence[object]) -> bytes:
    import csv  # slow to import

    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(values)  # values with these characters are quoted
    return text_to_bytes(text.getvalue().removesuffix("\r\n"))
