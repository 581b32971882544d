"""formats/lines/capture_fields.py: each form in which lines are printed, and fields and places of usual and other lines."""

from __future__ import annotations

import pytest

from cdxmill.formats.lines.capture_fields import (
    RecordPlace,
    as_cdxj,
    field_reader,
    header,
    line_format,
    parse_fields,
    place_in,
)

LINE = b'com,a)/ 2020 {"url": "http://a.com/", "mime": "text/html", "status": "200", "own": "1, 2"}'
OLD = b"com,a)/ 2020 http://a.com/?q#\xc3\xa9 text/html 404 X - - 12 34 a.warc.gz"
ORIGINAL = 3
"""The fields of the original of a revisit."""


@pytest.mark.parametrize(
    ("output", "names", "printed"),
    [
        (None, ["status", "own", "absent"], b'com,a)/ 2020 {"status": "200", "own": "1, 2"}'),
        ("cdxj", ["status"], b'com,a)/ 2020 {"status": "200"}'),
        ("json", ["status", "absent"], b'{"status": "200"}'),
        ("text", ["status", "absent", "urlkey"], b"200 - com,a)/"),
        ("cdx", ["status", "absent", "own"], b"200 - 1,%202"),
        ("csv", ["status", "absent", "own"], b'200,,"1, 2"'),
    ],
)
def test_only_the_fields_that_were_asked_for_are_printed(
    output: str | None, names: list[str], printed: bytes
) -> None:
    make = line_format(output, names)
    assert make is not None
    assert make(LINE) == printed
    assert header(output, names) == (b"status,absent,own" if output == "csv" else None)


def test_without_fields_a_form_has_its_own() -> None:
    assert line_format(None, None) is None
    assert line_format("cdxj", None) is as_cdxj
    for output, columns, separator in ("cdx", 11, b" "), ("csv", 14, b","):
        for resolved in False, True:
            make = line_format(output, None, resolved)
            assert make is not None
            fields = make(OLD.replace(b"com,a", b"com")).split(separator)
            assert len(fields) == columns + ORIGINAL * resolved
            assert fields[:3] == [b"com)/", b"2020", b"http://a.com/?q#\xc3\xa9"]
            names = header(output, None, resolved)
            assert names is None or len(names.split(separator)) == len(fields)
            assert (names is None) == (output == "cdx")
    make = line_format("json", None)
    assert make is not None
    assert make(LINE).startswith(b'{"urlkey": "com,a)/", "timestamp": "2020", "url": ')


@pytest.mark.parametrize(
    ("line", "url"),
    [
        (b'com,a)/ 2020 {"url": "http://a.com/?q=1"}', "http://a.com/?q=1"),
        (b'com,a)/ 2020 {"url": "http://a.com/?\xc3\xa9"}', "http://a.com/%3F%C3%A9"),
        (OLD, "http://a.com/?q#\xe9"),
    ],
)
def test_a_url_that_is_not_ascii_is_quoted_in_cdxj_as_pywb_does(line: bytes, url: str) -> None:
    assert parse_fields(line)["url"] == url
    assert field_reader("url")(line) == url


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b'{"status": "200"}', "200"),
        (b'{"status": "2\\u0030\\u0031"}', "201"),
        (b'{"status": "202", "a": {"status": "9"}}', "202"),
        (b'{"status": "203", "a": {"b": {"status": "9"}}}', "203"),
        (b'{"status": 204}', "204"),
        (b'{"a": "1"}', ""),
    ],
)
def test_a_field_is_read_as_if_the_line_were_parsed(rest: bytes, status: str) -> None:
    assert field_reader("status")(b"com,a)/ 2020 " + rest) == status


@pytest.mark.parametrize("rest", [b'{"status": "200', b'{"status": "200"', b"{"])
def test_a_field_of_an_invalid_line_is_not_read(rest: bytes) -> None:
    with pytest.raises(ValueError, match="invalid JSON in a line"):
        parse_fields(b"com,a)/ 2020 " + rest)
    if rest.count(b'"') % 2:
        with pytest.raises(ValueError, match="invalid JSON in a line"):
            field_reader("status")(b"com,a)/ 2020 " + rest)


def test_usual_and_other_lines_have_a_place() -> None:
    usual = b'com,a)/ 20200101000000 {"url": "", "length": "12", "offset": "34", "filename": "a.warc.gz"}'
    other = usual.replace(b'"12"', b"12")
    old = OLD.replace(b" 2020 ", b" 20200101000000 ")
    for line in (usual, other, old):
        assert place_in(line) == (RecordPlace(b"a.warc.gz", 34, 12), b"20200101000000")
    with pytest.raises(ValueError, match="has no valid filename, offset and length"):
        place_in(b"com,a)/ 20200101000000 {}")
