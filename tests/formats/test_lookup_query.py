"""The parts of a query: ranges of keys and times, and filters, at their borders."""

from __future__ import annotations

import pytest

from cdxmill.formats.clusters.zipnum import BEYOND
from cdxmill.formats.lines.lookup_query import (
    KeyRange,
    TimeRange,
    ignored_part,
    key_range,
    narrowed,
    parse_filter,
    time_range,
)


@pytest.mark.parametrize(
    ("url", "match_type", "low", "high"),
    [
        ("*", None, b"", BEYOND),
        ("example.com", None, b"com,example)/", b"com,example)/!"),
        ("example.com/a", "exact", b"com,example)/a", b"com,example)/a!"),
        ("example.com/a*", None, b"com,example)/a", b"com,example)/b"),
        ("example.com/a/", "prefix", b"com,example)/a/", b"com,example)/a0"),
        ("example.com/a?", "prefix", b"com,example)/a?", b"com,example)/a@"),
        ("example.com/", "prefix", b"com,example)/", b"com,example)0"),
        ("www.example.com/a", "host", b"com,example)/", b"com,example*"),
        ("*.example.com/a", None, b"com,example)/", b"com,example-"),
        ("example.com", "domain", b"com,example)/", b"com,example-"),
        ("com", "domain", b"com,", b"com-"),
        ("example.com/a example.org/b", "range", b"com,example)/a", b"org,example)/b"),
        ("example.com/a  example.com/a", "range", b"com,example)/a", b"com,example)/a"),
    ],
)
def test_a_url_has_a_range_of_keys(url: str, match_type: str | None, low: bytes, high: bytes) -> None:
    found = key_range(url, match_type)
    assert found == KeyRange(low, high, high == low + b"!")


@pytest.mark.parametrize(
    ("url", "match_type", "reason"),
    [
        ("", None, "the URL is empty"),
        (" ", "prefix", "the URL is empty"),
        ("*", "exact", "only at the end"),
        ("*example.com", None, "only at the end"),
        ("example.com", "other", "invalid match type 'other': expected one of"),
        ("example.com", "range", "expected two URLs separated by a space"),
        ("a.com b.com c.com", "range", "expected two URLs separated by a space"),
        ("b.com a.com", "range", r"the range ends before it begins: 'com,a\)/' sorts before 'com,b\)/'"),
    ],
)
def test_an_invalid_range_is_refused(url: str, match_type: str | None, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        key_range(url, match_type)


@pytest.mark.parametrize(
    ("url", "match_type", "part"),
    [
        ("example.com/a", "host", "a"),
        ("example.com/a*", "domain", "a*"),
        ("example.com/*", "host", ""),
        ("example.com", "domain", ""),
        ("*.example.com/a*", None, "a*"),
        ("example.com/a*", None, ""),
        ("ex*mple.com/a", None, "com,ex*mple"),
        ("example.com/a*b", None, ""),
    ],
)
def test_what_a_range_does_not_depend_on_is_known(url: str, match_type: str | None, part: str) -> None:
    assert ignored_part(url, match_type) == part


@pytest.mark.parametrize(
    ("first", "last", "bounds"),
    [
        (None, None, (b"", b"")),
        ("", "", (b"", b"")),
        ("2014", None, (b"20140101000000", b"")),
        (None, "2014", (b"", b"20141231235959")),
        ("2", "2", (b"20000101000000", b"29991231235959")),
        ("20140102030405", "20140102030405", (b"20140102030405",) * 2),
        ("20140102030405678", "20140102030405678", (b"20140102030405678",) * 2),
        ("20141231235960", "20150000000000", (b"20141231235960", b"20150000000000")),
        ("201413"[:5], "20149", (b"20141101000000", b"20149231235959")),
    ],
)
def test_a_time_of_fewer_digits_is_completed(
    first: str | None, last: str | None, bounds: tuple[bytes, bytes]
) -> None:
    assert time_range(first, last) == bounds


@pytest.mark.parametrize(
    "text",
    ["201413", "20140132", "2014010124", "201401010060", "20140101000061", "2014x", "1" * 18, "\u0663", "-"],
)
def test_a_time_that_no_timestamp_begins_with_is_refused(text: str) -> None:
    for bounds in ((text, None), (None, text)):
        with pytest.raises(ValueError, match="invalid timestamp"):
            time_range(*bounds)


def test_a_time_range_does_not_end_before_it_begins() -> None:
    with pytest.raises(ValueError, match="the time range ends before it begins: 2013 is before 2014"):
        time_range("2014", "2013")
    assert time_range("2014", "2014") == TimeRange(b"20140101000000", b"20141231235959")


@pytest.mark.parametrize(
    ("first", "last", "low", "high"),
    [
        ("2014", None, b"k 20140101000000", b"k!"),
        (None, "2014", b"k", b"k 20141231235959!"),
        ("2014", "2015", b"k 20140101000000", b"k 20151231235959!"),
        (None, None, b"k", b"k!"),
    ],
)
def test_only_the_range_of_one_url_is_narrowed_by_times(
    first: str | None, last: str | None, low: bytes, high: bytes
) -> None:
    times = time_range(first, last)
    found = narrowed(KeyRange(b"k", b"k!", is_one_url=True), times)
    assert found == (low, high, not any(times))
    assert narrowed(KeyRange(b"k", b"k!"), times) == KeyRange(b"k", b"k!")


LINE = b'com,a)/ 2020 {"mime": "text/html", "status": "200", "url": "http://a.com/=b"}\r\n'


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("=status:200", True),
        ("=status:20", False),
        ("!=status:20", True),
        ("status:20", True),
        ("!status:20", False),
        ("~status:20", True),
        ("~status:0", False),
        ("!~status:0", True),
        ("=none:", True),
        ("~mime:.*html$", True),
        ("=statuscode:200", True),
        ("text/html", True),
        ("=text/html", False),
        ("~com,a", True),
        ('~.*b"}$', True),
        (":com,a", True),
        ("=url:http://a.com/=b", True),
        ("a.com/=b", True),
    ],
)
def test_a_filter_is_equal_to_a_field_or_in_it_or_a_pattern_of_its_start(text: str, passes: bool) -> None:
    assert parse_filter(text).passes(LINE) is passes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("!", "it is empty"),
        ("=", "it is empty"),
        ("!~", "it is empty"),
        ("status=200", "expected =status:200"),
        ("status!=200", "expected !=status:200"),
        ("mime~html", "expected ~mime:html"),
        ("!mime!~html", "expected !~mime:html"),
        ("statuscode==404", "expected =statuscode:404"),
        ("~status:(", "not a regular expression"),
        ("~(", "not a regular expression"),
    ],
)
def test_an_invalid_filter_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"invalid filter .*{reason}".replace("(", r"\(")):
        parse_filter(text)


def test_a_filter_knows_its_field() -> None:
    fields = {text: parse_filter(text).field for text in ("=status:200", "!~mime:a", "a:b", ":b", "b")}
    assert fields == {"=status:200": "status", "!~mime:a": "mime", "a:b": "a", ":b": None, "b": None}
