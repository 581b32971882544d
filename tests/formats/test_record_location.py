"""Where the record of a line is: the usual lines, by one match, and any other line, or why it has no place."""

from __future__ import annotations

import json

import pytest

from cdxmill.formats.lines.capture_fields import (
    are_cdxj,
    as_cdxj,
    field_reader,
    parse_fields,
    place_in,
    record_location,
    timestamp_of_line,
    usual_place,
)


def line(**fields: object) -> bytes:
    known: dict[str, object] = {"url": "http://a.com/", "length": "12", "offset": "7", "filename": "a.gz"}
    return f"com,a)/ 20200101000000 {json.dumps(known | fields)}".encode()


@pytest.mark.parametrize(
    ("fields", "filename", "offset", "length"),
    [
        ({}, b"a.gz", 7, 12),
        ({"offset": "0"}, b"a.gz", 0, 12),
        ({"offset": 8}, b"a.gz", 8, 12),
        ({"offset": "007"}, b"a.gz", 7, 12),
        ({"offset": "9" * 18}, b"a.gz", int("9" * 18), 12),
        ({"length": 13}, b"a.gz", 7, 13),
        ({"length": "0012"}, b"a.gz", 7, 12),
        ({"length": "9" * 18}, b"a.gz", 7, int("9" * 18)),
        ({"length": "-"}, b"a.gz", 7, None),
        ({"length": ""}, b"a.gz", 7, None),
        ({"length": {"a": 1}}, b"a.gz", 7, None),
        ({"filename": "\xe9 b"}, "\xe9 b".encode(), 7, 12),
        ({"filename": "a b.gz", "mime": "x", "status": "200"}, b"a b.gz", 7, 12),
        ({"filename": 'a"b'}, b'a"b', 7, 12),
        ({"truncated": "length", "charset": "UTF-8"}, b"a.gz", 7, 12),
    ],
)
def test_a_line_has_the_place_of_its_record(
    fields: dict[str, object], filename: bytes, offset: int, length: int | None
) -> None:
    found = line(**fields)
    assert place_in(found) == ((filename, offset, length), b"20200101000000")
    assert usual_place(found) in (None, place_in(found))
    location = record_location(found)
    assert (location.offset, location.length, location.url) == (offset, length, "http://a.com/")
    assert location.timestamp == "20200101000000"
    assert (location.mime, location.digest) == (fields.get("mime", ""), "")


@pytest.mark.parametrize(
    "fields",
    [
        {"offset": ""},
        {"offset": "-"},
        {"offset": -1},
        {"offset": 1.5},
        {"offset": "9" * 19},
        {"offset": "\u0663"},
        {"offset": ["7"]},
        {"length": "0"},
        {"length": "-1"},
        {"length": "9" * 19},
        {"filename": ""},
        {"filename": "a\0b"},
        {"filename": "\ud800"},
        {"filename": ["a"]},
    ],
    ids=ascii,
)
def test_a_line_without_a_valid_place_is_refused(fields: dict[str, object]) -> None:
    found = line(**fields)
    assert usual_place(found) is None
    with pytest.raises(ValueError, match="the line has no valid filename, offset and length"):
        place_in(found)


@pytest.mark.parametrize("name", ["filename", "offset"])
def test_a_line_that_lacks_its_file_or_offset_is_refused(name: str) -> None:
    fields = {"url": "http://a.com/", "offset": "7", "filename": "a.gz"}
    del fields[name]
    with pytest.raises(ValueError, match="no valid filename"):
        record_location(f"com,a)/ 2020 {json.dumps(fields)}".encode())


def test_names_of_fields_that_other_tools_use_are_known() -> None:
    names = {"u": "url", "original": "url", "statuscode": "status", "m": "mime", "d": "digest", "l": "length", "s": "length", "o": "offset", "f": "filename"}  # fmt: skip
    for given, meant in names.items():
        found = f'com,a)/ 2020 {{"{given}": "x"}}'.encode()
        assert parse_fields(found)[meant] == "x"
        assert field_reader(given)(found) == field_reader(meant)(found) == "x"
    for given, value in (("k", "com,a)/"), ("t", "2020"), ("urlkey", "com,a)/"), ("timestamp", "2020")):
        assert field_reader(given)(b"com,a)/ 2020 {}") == value


@pytest.mark.parametrize(
    "fields",
    [
        '{"status": "200"}',
        '{"a": "\\"status\\": \\"404\\"", "status": "200"}',
        '{"status": "404", "status": "200"}',
        '{"a": {"status": "404"}, "status": "200"}',
        '{"status": "200", "a": {"status": "404"}}',
        '{"status":"200"}',
        '{"status": 200}',
        '{"status": "200", "a": "\xe9"}',
        '{"statuscode": "200"}',
    ],
)
def test_a_field_is_what_the_json_says_however_it_is_read(fields: str) -> None:
    found = f"com,a)/ 2020 {fields}".encode()
    assert field_reader("status")(found) == str(parse_fields(found)["status"]) == "200"
    assert field_reader("mime")(found) == ""


def test_the_timestamp_of_a_line_is_its_second_field() -> None:
    times = {b"k 2020 {}": b"2020", b"k 2020": b"2020", b"k": b"k", b"k  {}": b"", b" 1 2": b"1"}
    assert {found: timestamp_of_line(found) for found in times} == times


def test_lines_are_all_cdxj_or_not() -> None:
    cdx = b"com,a)/ 2020 http://a.com/{ 12 0 a.gz"
    assert are_cdxj([line(), line()])
    assert are_cdxj([])
    assert not are_cdxj([line(), cdx])
    assert as_cdxj(line()) == line()
    start = b'com,a)/ 2020 {"url": "http://a.com/{", "length": "12", "offset": "0", "filename": "a.gz"}'
    assert as_cdxj(cdx) == start
