"""The fields of CDXJ lines. JSON is read by msgspec where that is quicker, always with the result of `json`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.lines.capture_fields import field_reader, parse_fields, parse_object

NAMES = st.one_of(st.sampled_from(["url", "status", "statuscode", "u", "urlkey", "orig.length"]), st.text())
PLAIN = st.one_of(st.text(), st.integers(), st.booleans(), st.none())
VALUES = st.one_of(
    PLAIN,
    st.floats(),
    st.integers(-(10**30), 10**30),
    st.text(st.characters(categories=["Cs", "Cc", "Ll"])),
    st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5),
)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=6)


def written(pairs: list[tuple[str, Any]], is_ascii: bool) -> bytes:
    """An object whose keys may be duplicates."""
    items = (
        f"{json.dumps(name, ensure_ascii=is_ascii)}: {json.dumps(value, ensure_ascii=is_ascii)}"
        for name, value in pairs
    )
    return ("{" + ", ".join(items) + "}").encode("utf-8", "surrogatepass")


def by_json(data: bytes) -> str:
    """The object by `json`, with its order and its types, or "invalid". What JSON cannot write stays text."""

    def number(text: str) -> float | str:
        return float(text) if abs(float(text)) < float("inf") else text

    try:
        found = json.loads(
            data.decode("utf-8", "surrogateescape"), parse_float=number, parse_constant=lambda name: name
        )
    except (ValueError, RecursionError):
        return "invalid"
    return repr(found) if isinstance(found, dict) else "invalid"


def by_cdxmill(data: bytes) -> str:
    try:
        return repr(parse_object(data))
    except ValueError:
        return "invalid"


@settings(deadline=None)
@given(PAIRS, st.booleans())
def test_every_object_is_read_as_json_reads_it(pairs: list[tuple[str, Any]], is_ascii: bool) -> None:
    data = written(pairs, is_ascii)
    assert by_cdxmill(data) == by_json(data)


@settings(deadline=None)
@given(PAIRS, st.integers(0), st.binary(max_size=3))
def test_every_changed_object_is_read_as_json_reads_it(
    pairs: list[tuple[str, Any]], position: int, inserted: bytes
) -> None:
    data = written(pairs, True)
    position %= len(data)
    changed = data[:position] + inserted + data[position + 1 :]
    assert by_cdxmill(changed) == by_json(changed)


def test_lines_with_6_fields_of_older_indexes_are_known() -> None:
    assert parse_fields(b"com,a)/ 2020 http://a.com/ 12 0 \xff.gz\r") == {
        "urlkey": "com,a)/",
        "timestamp": "2020",
        "url": "http://a.com/",
        "length": "12",
        "offset": "0",
        "filename": "\udcff.gz",
    }


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "b": 2, "a": 3}',
        b'{"a": NaN, "b": -Infinity}',
        b'{"a": 18446744073709551616, "b": -9223372036854775809}',
        b'{"a": %d}' % 10**4000,
        b'{"a": 1e400, "b": -0, "c": -0.0, "d": 1.0}',
        b'{"a": "\\ud800"}',
        b'{"\\udc80": "\\udc00\\ud800"}',
        b'{"a": "\\ud83d\\ude00"}',
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": {"b": [1, {"c": null}]}}',
        b'{"a": %b}' % (b"[" * 900 + b"]" * 900),
        b'{"a": "\x7f\\u0000"}',
        b"{}",
        # invalid
        b"{",
        b'{"a": "\x01"}',
        b'{"a": 01}',
        b'{"a": 1,}',
        b"{'a': 1}",
        b'{"a": 1} x',
        b'{"a": 1}{',
        b'{1: "a"}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": ' + b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:24]),
)
def test_unusual_objects_are_read_as_json_reads_them(data: bytes) -> None:
    assert by_cdxmill(data) == by_json(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'com,a)/ 2020 {"url": 1', "invalid JSON in a line"),
        (b'com,a)/ 2020 {"url": "http://a.com/', "invalid JSON in a line"),
        (b"com,a)/ 2020 x y", "invalid line, neither CDXJ nor CDX, with 4 fields"),
    ],
)
def test_invalid_lines_are_refused(data: bytes, reason: str) -> None:
    for read in (parse_fields, field_reader("url")):
        with pytest.raises(ValueError, match=reason):
            read(data)


def test_a_url_that_is_not_ascii_is_percent_encoded() -> None:
    for text in ("é", "\\u00e9"):
        assert parse_fields(f'k 2020 {{"u": "http://a/{text}"}}'.encode())["url"] == "http://a/%C3%A9"
    assert parse_fields(b'k 2020 {"url": "http://a/\xff"}')["url"] == "http://a/%FF"


@pytest.mark.parametrize("data", [b"[1]", b'"a"', b"1", b"null"])
def test_json_that_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="the JSON of a line is not an object"):
        parse_object(data)


@pytest.mark.parametrize("line", [b'com,a)/ 2020 {"mime": "a", "status": "2', b'com,a)/ 2020 {"status": "2'])
def test_a_field_of_a_truncated_line_is_not_read(line: bytes) -> None:
    with pytest.raises(ValueError, match="invalid JSON"):
        field_reader("status")(line)
