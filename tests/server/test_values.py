"""What the Wayback and OutbackCDX dialects have in common: filters, fields and rows."""

from __future__ import annotations

import json

import pytest

from cdxmill.server.answers import RequestError
from cdxmill.server.dialects.values import fields_of, json_rows, pattern_filter, text_rows

LINE = b'com,a)/x 20200101000000 {"url": "http://a.com/x y", "mime": "text/html", "status": "200", "redirect": "/\x7f"}'
NAMES = ("urlkey", "original", "mimetype", "statuscode", "redirecturl", "digest")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("statuscode:200", "=status:200"),
        ("!statuscode:200", "!=status:200"),
        ("status:200", "=status:200"),
        ("mimetype:text/html", "=mime:text/html"),
        ("mimetype:image/svg+xml", "=mime:image/svg+xml"),
        ("redirecturl:a b", "=redirect:a b"),
        ("original:.*", "~url:(?:.*)$"),
        ("!digest:A|B", "!~digest:(?:A|B)$"),
        ("urlkey:com,a", "~urlkey:(?:com,a)$"),
        ("digest:a:b", "~digest:(?:a:b)$"),
        ("other:é", "~other:(?:é)$"),
        ("digest:", "~digest:(?:)$"),
        ("!!digest:x", "!=!digest:x"),
    ],
)
def test_a_filter_matches_whole_fields_by_the_names_of_pywb(text: str, wanted: str) -> None:
    assert pattern_filter(text) == wanted


@pytest.mark.parametrize("text", ["", "200", ":200", "!", "!:x", "x" * 100])
def test_a_filter_without_a_field_or_a_colon_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        pattern_filter(text)
    told = f"invalid filter {text[:80]!r}: expected FIELD:REGEX or !FIELD:REGEX"
    assert (caught.value.code, str(caught.value)) == (400, told)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [(None, NAMES), ("", NAMES), ("a", ("a",)), ("a,b", ("a", "b")), (",a,,b,", ("a", "b"))],
)
def test_the_names_of_fields_are_those_given_or_all(text: str | None, wanted: tuple[str, ...]) -> None:
    assert fields_of(text, list(NAMES)) == wanted


def test_a_row_of_text_has_no_space_in_a_field() -> None:
    rows = list(text_rows(NAMES, [[LINE], [], [LINE, LINE]]))
    row = b"com,a)/x http://a.com/x%20y text/html 200 /%7F -\n"
    assert rows == [row, b"", row * 2]


@pytest.mark.parametrize("lists", [[], [[]], [[LINE]], [[], [LINE]], [[LINE], [], [LINE, LINE], []]])
def test_rows_of_json_are_one_array_whose_first_row_has_the_names(lists: list[list[bytes]]) -> None:
    found = json.loads(b"".join(json_rows(NAMES[:3], lists, lambda name, text: [name, text])))
    row = [["urlkey", "com,a)/x"], ["original", "http://a.com/x y"], ["mimetype", "text/html"]]
    number = sum(map(len, lists))
    assert found == ([list(NAMES[:3])] if number else []) + [row] * number
