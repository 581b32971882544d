"""Index lines -> lines as they are printed: unchanged, or as CDXJ, JSON, text, CDX or CSV, with all or some fields.

`cdxj`, `json` (one object per line) and `text` (values separated by spaces) are pywb's. `cdx` and `csv` are our own.
Control characters are escaped in all of them but csv, which quotes line ends. So an answer line is one line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence

from cdxmill.formats.lines.capture_fields import CDX11, ORIGINAL, Fields, is_cdxj, parse_fields, text_to_bytes

_CSV = (
    *(
        "urlkey",
        "timestamp",
        "url",
        "mime",
        "mime-detected",
        "status",
        "digest",
        "length",
        "offset",
        "filename",
    ),
    *("charset", "languages", "truncated", "redirect"),
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNSAFE = re.compile(r"[\x00-\x20\x7f]")
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
        return _as_cdxj if names is None else lambda line: _cdxj(parse_fields(line), names)
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


def _as_cdxj(line: bytes) -> bytes:
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
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(values)  # values with these characters are quoted
    return text_to_bytes(text.getvalue().removesuffix("\r\n"))
