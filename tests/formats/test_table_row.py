"""A row of a table has the values of a line that its columns can have. The others are named."""

from __future__ import annotations

import json

import pytest

from cdxmill.formats.lines.table_row import COLUMNS, read_row


def cell(column: str, timestamp: str = "20200101000000", **fields: object) -> tuple[object, tuple[str, ...]]:
    """The value of a column, and what was lost."""
    line = f"com,a)/ {timestamp} {json.dumps(fields)}".encode()
    found = read_row(line)
    assert dict(zip(COLUMNS, found.row, strict=True))["cdx_line"] == (line if found.lost else None)
    return dict(zip(COLUMNS, found.row, strict=True))[column], found.lost


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20200101000000", 1_577_836_800),
        ("19691231235959", -1),
        ("-", None),
        ("2020", "lost"),
        ("202001010000001", "lost"),
        ("20200101000000x", "lost"),
        ("2020010100000x", "lost"),
        ("\uff12\uff10200101000000", "lost"),
        ("20201301000000", "lost"),
        ("20200101240000", "lost"),
    ],
)
def test_a_time_has_fourteen_digits_and_exists(text: str, seconds: object) -> None:
    expected = seconds * 1000 if isinstance(seconds, int) else None
    assert cell("fetch_time", text) == (expected, ("fetch_time",) if seconds == "lost" else ())


@pytest.mark.parametrize(
    ("value", "expected"),
    [("200", 200), (200, 200), ("", None), (None, None), ("-", None)]
    + [(one, "lost") for one in ("2xx", "-1", "+1", " 1", "20000", "\u0663", True, 2.0, [200])],
)
def test_a_status_has_up_to_four_digits(value: object, expected: object) -> None:
    assert cell("fetch_status", status=value) == (
        (None, ("fetch_status",)) if expected == "lost" else (expected, ())
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a/b", b"a/b"),
        ("\xe9", "\xe9".encode()),
        ("", b""),
        ("-", None),
        (None, None),
        (7, b"7"),
        (1.5, b"1.5"),
        (True, "lost"),
        ("\ud800", "lost"),
        ("\udcff", "lost"),
        (["a"], "lost"),
        ({"a": 1}, "lost"),
    ],
)
def test_a_text_is_any_value_that_is_utf8(value: object, expected: object) -> None:
    lost = ("content_mime_type",) if expected == "lost" else ()
    assert cell("content_mime_type", mime=value) == (None if lost else expected, lost)


@pytest.mark.parametrize(
    "column, field", [("warc_record_offset", "offset"), ("warc_record_length", "length")]
)
def test_a_place_has_up_to_eighteen_digits(column: str, field: str) -> None:
    assert cell(column, **{field: "9" * 18}) == (int("9" * 18), ())
    assert cell(column, **{field: "0"}) == (0, ())
    assert cell(column, **{field: "9" * 19}) == (None, (column,))


def row_of(line: bytes) -> tuple[dict[str, object], tuple[str, ...]]:
    """The values that a row has, and what was lost."""
    found = read_row(line)
    named = zip(COLUMNS, found.row, strict=True)
    return {name: value for name, value in named if value is not None}, found.lost


def test_the_parts_of_a_url_and_a_file_name_are_columns() -> None:
    filename = "crawl-data/CC-MAIN-2024-22/segments/17.1/warc/a.warc.gz"
    line = f"com,a)/x - http://A.com:81/x?y#z a/b 200 X - - 12 7 {filename}".encode()
    found, lost = row_of(line)
    assert not lost
    assert found == {
        "url_surtkey": b"com,a)/x",
        "url": b"http://A.com:81/x?y#z",
        "host": b"a.com",
        "url_protocol": b"http",
        "url_path": b"/x",
        "url_query": b"y",
        "url_port": 81,
        "content_mime_type": b"a/b",
        "content_digest": b"X",
        "fetch_status": 200,
        "warc_record_length": 12,
        "warc_record_offset": 7,
        "warc_filename": filename.encode(),
        "crawl": b"CC-MAIN-2024-22",
        "warc_segment": b"17.1",
        "subset": b"warc",
    }


@pytest.mark.parametrize("rest", [b'{"url": ', b'{"url": ' + b"[" * 100_000, b"a b", b""])
def test_a_line_that_cannot_be_read_has_its_key_and_time(rest: bytes) -> None:
    line = b"com,a)/ 19700101000001 " + rest
    found, lost = row_of(line)
    assert lost == ("JSON",)
    assert found == {"url_surtkey": b"com,a)/", "fetch_time": 1000, "cdx_line": line}


def test_a_key_may_be_a_dash_and_a_url_that_is_no_text_has_no_parts() -> None:
    found, lost = row_of(b'- - {"url": 5, "filename": 6}')
    assert (found, lost) == ({"url_surtkey": b"-", "url": b"5", "warc_filename": b"6"}, ())
    half, lost = row_of(b'com,a)/ - {"url": "http://a.com/\\udc80?x"}')
    assert lost == ("url",)
    assert (half["host"], half["url_query"], "url_path" in half) == (b"a.com", b"x", False)
