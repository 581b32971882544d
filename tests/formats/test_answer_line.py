"""Lines as they are printed: what a hostile line has in its fields stays in one field, and on one line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from cdxmill.formats.lines.capture_fields import header, line_format

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


JSON_LINE = b'com,a)/ 2020 {"url": "http://a.com/ b", "_note": 1, "status": 200, "n": null}'
CDX_LINE = b"com,a)/ 2020 http://a.com/ text/html 200 AB - - 12 0 a.warc.gz"


@pytest.mark.parametrize(
    ("output", "names", "expected"),
    [
        (None, None, None),
        ("cdxj", None, JSON_LINE),
        (None, ["status", "none"], b'com,a)/ 2020 {"status": 200}'),
        ("cdxj", ["url"], b'com,a)/ 2020 {"url": "http://a.com/ b"}'),
        (
            "json",
            None,
            b'{"urlkey": "com,a)/", "timestamp": "2020", "url": "http://a.com/ b", "status": 200, "n": null}',
        ),
        ("json", ["status", "none", "urlkey"], b'{"status": 200, "urlkey": "com,a)/"}'),
        ("text", None, b"com,a)/ 2020 http://a.com/ b 1 200 None"),
        ("text", ["status", "none", "url"], b"200 - http://a.com/ b"),
        ("cdx", ["url", "none", "status"], b"http://a.com/%20b - 200"),
        ("cdx", None, b"com,a)/ 2020 http://a.com/%20b - 200 - - - - - -"),
        ("csv", ["url", "none", "status"], b"http://a.com/ b,,200"),
        ("csv", None, b'"com,a)/",2020,http://a.com/ b,,,200,,,,,,,,'),
    ],
)
def test_a_line_is_printed_in_each_form(
    output: str | None, names: list[str] | None, expected: bytes | None
) -> None:
    make = line_format(output, names)
    assert (make and make(JSON_LINE)) == expected


def test_a_cdx_line_is_printed_in_each_form() -> None:
    made = {output: line_format(output, None) for output in ("cdxj", "cdx", "text")}
    printed = {output: make and make(CDX_LINE) for output, make in made.items()}
    assert printed["cdx"] == printed["text"] == CDX_LINE
    assert json.loads((printed["cdxj"] or b"").split(b" ", 2)[2])["filename"] == "a.warc.gz"


def test_resolved_lines_have_the_fields_of_the_original() -> None:
    names = ("orig.length", "orig.offset", "orig.filename")
    line = CDX_LINE + b" 1 2 b.warc.gz"
    for output, end in (("cdx", b" 1 2 b.warc.gz"), ("csv", b",1,2,b.warc.gz")):
        for resolved in (False, True):
            make = line_format(output, None, resolved)
            assert make is not None
            assert make(line).endswith(end) is resolved
    assert (header("csv", None, True) or b"").endswith(",".join(names).encode())
    assert not (header("csv", None) or b"").endswith(names[2].encode())
    assert header("cdx", None, True) is None
    assert header(None, ["url"]) is None


@pytest.mark.parametrize("output", ["cdx", "text", "cdxj", "json"])
def test_control_characters_never_leave_the_line(output: str) -> None:
    line = b'com,\x1ba)/ 20\t20 {"url": "http://a.com/\\n\\u007f \\ud800\xff"}'
    make = line_format(output, ["urlkey", "timestamp", "url"])
    assert make is not None
    printed = make(line)
    assert not any(byte < 32 or byte == 127 for byte in printed)
    if output in ("cdx", "text"):
        assert printed.startswith(b"com,%1Ba)/ 20%0920 http://a.com/%0A%7F")
