"""Which captures are pages of a WACZ."""

from __future__ import annotations

import json

import pytest

from cdxmill.formats.archives.wacz_package import iso_time, page_of

PAGE = {"url": "http://a.com/", "mime": "text/html", "status": "200"}


def line(time: str, fields: object) -> bytes:
    return f"com,a)/ {time} {json.dumps(fields)}".encode()


@pytest.mark.parametrize(
    ("time", "change", "is_page"),
    [
        ("20200102030405", {}, True),
        ("20200102030405", {"mime": "application/xhtml+xml"}, True),
        ("20200102030405", {"mime": "text/plain", "mime-detected": "text/html"}, True),
        ("20200102030405", {"mime": "text/html", "mime-detected": "text/plain"}, False),
        ("20200102030405", {"mime": "text/html; charset=utf-8"}, False),
        ("20200102030405", {"status": 200}, True),
        ("20200102030405", {"status": "404"}, False),
        ("20200102030405", {"status": None}, False),
        ("2020", {}, False),
        ("-", {}, False),
        ("202001020304050", {}, False),
    ],
)
def test_pages_are_html_with_status_200_and_a_time(
    time: str, change: dict[str, object], is_page: bool
) -> None:
    found = page_of(line(time, {**PAGE, **change}))
    assert (found is not None) == is_page
    if found is not None:
        page = json.loads(found)
        assert (page["url"], page["ts"]) == ("http://a.com/", "2020-01-02T03:04:05Z")


@pytest.mark.parametrize(
    "text",
    [
        b'com,a)/ 20200102030405 {"mime": "text/html", "status": "200"}',
        b'com,a)/ 20200102030405 {"mime": "text/html", "status": "200"',
        b"com,a)/ html",
        b"html",
        b'com,a)/ 20200102030405 {"html": ' + b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_capture_of_a_url_is_no_page(text: bytes) -> None:
    assert page_of(text) is None


def test_pages_have_different_ids() -> None:
    lines = [
        line(time, {**PAGE, "url": url}) for time in ("20200102030405", "20200102030406") for url in "ab"
    ]
    assert len({json.loads(page_of(one) or b"{}")["id"] for one in lines}) == 4


@pytest.mark.parametrize("time", ["", "2020", "2020010203040", "202001020304055", "2020-01-02T03:04:05Z"])
def test_a_time_has_14_digits(time: str) -> None:
    with pytest.raises(ValueError, match="invalid timestamp"):
        iso_time(time)
