"""Pointers of a prefix index: their values, and the lines and URLs that stand for them."""

from __future__ import annotations

import json
import struct

import pytest

from cdxmill.formats.tree.pointer_layout import (
    CAPTURE,
    CLASSIC,
    Layout,
    Pointer,
    capture_line,
    classic_key,
    classic_key_of_url,
    classic_line,
    url_of_classic,
    url_of_key,
)


@pytest.mark.parametrize("count", [1, 2, 511, 512, 513, 1030])
def test_pointers_are_packed_by_column_and_come_back(count: int) -> None:
    layout = Layout("a:u8, b:u64 ,c:u16")
    assert (layout.size, layout.sizes, layout.name) == (11, bytes((1, 8, 2)), None)
    columns = [
        [number % 256 for number in range(count)],
        [number << 40 for number in range(count)],
        [7] * count,
    ]
    tails = layout.tails(columns)
    assert len(tails) == count
    assert [layout.unpack(tail[1:]) for tail in tails] == list(zip(*columns, strict=True))
    assert all(tail[:1] == b"\0" for tail in tails)
    assert tails[-1][1:] == struct.pack("<BQH", *(column[-1] for column in columns))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([[255], [65535]], None),
        ([[256], [0]], "a 256 needs more than 8 bits"),
        ([[-1], [0]], "a -1 needs more than 8 bits"),
        ([[0], [65536]], "b 65536 needs more than 16 bits"),
        ([[0, 1], [0, 65536]], "b 65536 needs more than 16 bits"),
        ([[0], [1 << 70]], "b 1180591620717411303424 needs more than 16 bits"),
    ],
)
def test_a_value_fits_its_field_or_is_named(columns: list[list[int]], reason: str | None) -> None:
    layout = Layout("a:u8,b:u16")
    if reason is None:
        assert layout.tails(columns) == [b"\0\xff\xff\xff"]
        return
    with pytest.raises(ValueError, match=reason):
        layout.tails(columns)


def test_a_layout_has_up_to_256_fields() -> None:
    fields = [f"f{number}:u8" for number in range(257)]
    assert Layout(",".join(fields[:256])).size == 256
    with pytest.raises(ValueError, match="invalid layout"):
        Layout(",".join(fields))
    with pytest.raises(ValueError, match="two fields have the same name"):
        Layout("a:u8,a:u16")
    assert (CLASSIC.name, CAPTURE.size, CAPTURE.fields[0]) == ("classic", 30, "archive")


@pytest.mark.parametrize(
    ("key", "url"),
    [
        (b"com,example)/", b"http://example.com/"),
        (b"com,example:8080)/a)b", b"http://example.com:8080/a)b"),
        (b"com,a)/?x&__wb_method=post", b"http://a.com/?x"),
        (b"com,a)/?__wb_method=post&b", b"http://a.com/"),
        (b"com,a)__wb_method=post", b"http://a.com__wb_method=post"),
        (b"dns:a.com", b"dns:a.com"),
        (b"urn:x/(a)", b"urn:x/(a)"),
    ],
)
def test_a_key_stands_for_a_url(key: bytes, url: bytes) -> None:
    assert url_of_key(key) == url


@pytest.mark.parametrize(
    ("timestamp", "status"), [(0, 0), (20200101000000, 0), (0, 404), (20200101000000, 200)]
)
def test_a_capture_has_no_time_or_status_of_0(timestamp: int, status: int) -> None:
    line = capture_line(b"com,a)/b c", Pointer(0, 7, 9, timestamp, status), "\xe9\udcff.gz")
    key, time, fields = line.split(b" ", 2)
    assert (key, time) == (b"com,a)/b%20c", b"%d" % timestamp if timestamp else b"-")
    found = json.loads(fields)
    assert found.pop("status", None) == (str(status) if status else None)
    assert found == {"url": "http://a.com/b c", "length": "9", "offset": "7", "filename": "\xe9\ufffd.gz"}


@pytest.mark.parametrize(
    ("key", "url"),
    [
        (b"com.example/:http", b"http://example.com/"),
        (b"com.example.www:8080/a:b:https", b"https://www.example.com:8080/a:b"),
        (b"com.example", b"http://example.com"),
        (b"com.example/a:8", b"http://example.com/a:8"),
        (b"com.example/a\n:http", b"http://example.com/a\n"),
    ],
)
def test_a_classic_key_stands_for_a_url_and_back(key: bytes, url: bytes) -> None:
    assert url_of_classic(key) == url
    back = classic_key_of_url(url.decode(), True)
    assert back == (key if key.rpartition(b":")[2].startswith(b"http") else key + b":http")
    assert classic_key_of_url(url.decode(), False) == back.rpartition(b":")[0]


def test_a_classic_line_names_the_file_of_its_numbers() -> None:
    line = classic_line(b"com.a/x y:http", [1, 2, 3, 4, 5])
    key, time, fields = line.split(b" ", 2)
    assert (key, time) == (b"com.a/x%20y:http", b"-")
    assert json.loads(fields) == {
        "url": "http://a.com/x y",
        "length": "5",
        "offset": "4",
        "filename": "parse-output/segment/1/2_3.arc.gz",
    }
    assert classic_key(".Blogs.Example.COM.") == b"com.example.blogs"
