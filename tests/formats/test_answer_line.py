"""Lines as they are printed: what a hostile line has in its fields stays in one field, and on one line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from cdxmill.formats.lines.capture_fields import line_format

NAMES = ["url", "status", "mime", "filename"]


@pytest.mark.parametrize(
    "value", ["a\nb", "a\rb", "a\r\nb", 'say "x", y', "\n", '"', "=cmd|' /C calc'!A0", "\x1b[2J", ""]
)
def test_csv_gives_every_field_back(value: str) -> None:
    make = line_format("csv", NAMES)
    assert make is not None
    fields = {"url": "http://a.com/", "status": value, "mime": "x", "filename": value}
    printed = make(b"com,a)/ 2020 " + json.dumps(fields).encode())
    assert list(csv.reader(io.StringIO(f"{printed.decode()}\nnext,line\n", newline=""))) == [
        ["http://a.com/", value, "x", value],
        ["next", "line"],
    ]
