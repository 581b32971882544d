"""The tests of single conditions, and of lists with labels."""

from __future__ import annotations

from typing import Any

import pytest

from cdxmill.formats.archives.warc_header import Head
from cdxmill.stages.scan import conditions
from cdxmill.stages.scan.conditions import FieldTest, LiteralTest, make_test
from cdxmill.stages.scan.expressions import Condition, parse_expression
from cdxmill.stages.scan.fields import Field, Level


def made(text: str, value: Any = None, lines: list[bytes] | None = None) -> FieldTest:
    """The test of a condition on records that have a value in its field."""
    condition = parse_expression(text)
    assert isinstance(condition, Condition)
    fields = {condition.field: Field(Level.HEADER, lambda record: value)}
    return make_test(condition, lambda path: lines or [], fields)


def holds(text: str, value: Any, lines: list[bytes] | None = None) -> bool:
    return made(text, value, lines).holds(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "fitting", "others"),
    [
        ("status<300", ["200", "299", "000", "20"], ["300", "2x0", "", "-1"]),
        ("status<=300", ["300"], ["301", "\u00b2"]),
        ("status>300", ["301"], ["300"]),
        ("status>=300", ["300"], ["299"]),
        ("size<5", [4, 4.9], [5, 6]),
        ("size>=5", [5, 6], [4]),
        ("time<2014", ["20131231235959", "2013"], ["20140101000000", "2014"]),
        ("time<=2014", ["20141231235959"], ["20150101000000"]),
        ("time>201401", ["20140201000000"], ["20140131235959"]),
        ("time=2014", ["20140201000000"], ["20130201000000"]),
        ("time:0201", ["20140201000000"], ["20140301000000"]),
        ("time^=2014", ["20140201000000"], ["20130201000000"]),
        ("declared_lang=en", ["en", "en-us"], ["eng", "de", "us-en"]),
        ("declared_lang=en-us", ["en-us"], ["en", "en-gb"]),
        ("domain=a.org", ["a.org", "x.a.org", "y.x.a.org"], ["xa.org", "org", "a.org.x"]),
        ("host=a.org", ["a.org"], ["x.a.org"]),
        ("url=http://a.org/X", ["http://a.org/X", "HTTP://A.org/X"], ["http://a.org/x"]),
        ("url=http://a.org", ["http://a.org/", "http://A.org"], ["http://a.org/x"]),
        ("url^=HTTP://a.org/X", ["http://A.org/Xy"], ["http://a.org/xy"]),
        ("url:X", ["http://a.org/X"], ["http://a.org/x"]),
        ("url~X", ["http://a.org/X"], ["http://a.org/x"]),
        ("host:A", ["a.org"], ["b.org"]),
        ("host~^A", ["a.org"], ["ba.org"]),
        ("mime^=TEXT", ["text/html"], ["x/text"]),
        ("mime~HTML", ["text/html"], ["x/text"]),
        ("charset=utf8", ["UTF-8", "utf-8"], ["latin1", "nope"]),
        ("surt=com,a)/", ["com,a)/", "COM,a)/"], ["com,a)/x"]),
        ("surt^=com,a", ["com,a)/", "COM,a,b)/"], ["com,b)/"]),
        ("body:x", [b"axb"], [b"X"]),
        ("body~x.z", [b"xyz"], [b"xz"]),
        ("title=x", ["x"], ["X", "x "]),
        ("links:b", [["a", "b"], ["ab"]], [[], ["a"]]),
        ("links!:b", [["a"], []], [["a", "b"]]),
        ("status!=200", ["201"], ["200"]),
    ],
)
def test_which_values_fit(text: str, fitting: list[Any], others: list[Any]) -> None:
    assert [value for value in fitting if not holds(text, value)] == []
    assert [value for value in [*others, None] if holds(text, value)] == []


LISTS: list[tuple[str, list[bytes], Any, list[str]]] = [
    ("host", [b"a.org\tone", b"b.org"], "a.org", ["one"]),
    ("host", [b"a.org\tone", b" B.org "], "b.org", ["b.org"]),
    ("host", [b"a.org"], "x.a.org", []),
    ("domain", [b"a.org\tone", b"org\ttwo", b"a.org\tthree", b"a.org\tone"], "x.a.org", ["one", "three", "two"]),
    ("domain", [b"a.org"], "ba.org", []),
    ("url", [b"HTTP://a.org\tone"], "http://A.org/", ["one"]),
    ("url", [b"http://a.org/x"], "http://a.org/X", []),
    ("time", [b"2014\tyear", b"2014-05\tmonth", b"201406"], "20140501000000", ["year", "month"]),
    ("time", [b"2014"], "20130501000000", []),
    ("surt", [b"com,a)/\tone", b"com,\ttwo"], "COM,a)/x", ["two", "one"]),
    ("surt", [b"com,a)/"], "com,b)/", []),
    ("declared_lang", [b"EN\tone", b"en-US\ttwo"], "en-us", ["two", "one"]),
    ("declared_lang", [b"en-us"], "en", []),
    ("size", [b"5\tone", b"7"], 5, ["one"]),
    ("size", [b"5", b"7"], 7, ["7"]),
    ("links", [b"http://a.org/\tone", b"http://b.org/\tone"], ["http://b.org/", "http://a.org/", "x"], ["one"]),
    ("charset", [b"latin1\tone"], "ISO-8859-1", ["one"]),
    ("warc.x", [b" a\tone", b"b\t"], " a", ["one"]),
    ("warc.x", [b" a", b"b\t"], "b", ["b"]),
    ("body", [b"a b\tone", b"\xff\ttwo", b"c"], b"xa b\xff", ["one", "two"]),
    ("body", [b"a b"], b"ab\ncontent-encoding: x", []),
    ("text", [b"a b\tone", "\u00e9".encode()], "x\u00e9 a b\nTransfer-Encoding", ["one", "\u00e9"]),
    ("title", [b"a b"], "A B", []),
]  # fmt: skip


@pytest.mark.parametrize(("field", "lines", "value", "labels"), LISTS)
def test_a_list_fits_with_the_labels_of_its_lines(
    field: str, lines: list[bytes], value: Any, labels: list[str]
) -> None:
    lines = [b"", *lines, b" ", b" \tlabel", b"\tlabel"]
    test, negated = (made(f"{field}{sign}list", value, lines) for sign in ("@", "!@"))
    assert test.labels is not None
    assert sorted(test.labels(None)) == sorted(labels)  # type: ignore[arg-type]
    assert holds(f"{field}@list", value, lines) == bool(labels)
    assert holds(f"{field}!@list", value, lines) == (not labels)
    assert not holds(f"{field}@list", None, lines)
    assert made(f"{field}@list", None, lines).labels(None) == []  # type: ignore[misc, arg-type]
    assert (test.may_hold is not None) == (field == "body")
    assert negated.may_hold is None


def test_the_labels_of_domains_and_languages_start_with_the_nearest() -> None:
    for field, lines, value in (
        ("domain", [b"org\tfar", b"a.org\tnear"], "x.a.org"),
        ("declared_lang", [b"en\tfar", b"en-us\tnear"], "en-us"),
    ):
        test = made(f"{field}@list", value, lines)
        assert test.labels is not None
        assert test.labels(None) == ["near", "far"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "lines", "reason"),
    [
        ("host", [], "host@list: the file has no lines"),
        ("host", [b" ", b"\tx"], "host@list: the file has no lines"),
        ("host", [b"a.org", b"b c"], "host@list, line 2, 'b c': expected a host alone"),
        ("host", [b"x" * 99 + b" y"], f"host@list, line 1, '{'x' * 40}': expected"),
        ("title", [b"a", b"\xff"], "title@list, line 2, '\ufffd': is not UTF-8"),
        ("title", [b"a\0b"], "has a NUL byte, and cannot be searched"),
        ("body", [b"a" * 10_001], "has 10001 bytes, more than 10000, and cannot be searched"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(field: str, lines: list[bytes], reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        made(f"{field}@list", None, lines)
    assert reason in str(error.value)


def test_the_longest_line_and_the_most_lines_can_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = b"ab" * 5000
    assert holds("body@list", longest, [longest])
    assert not holds("body@list", longest[1:], [longest])
    monkeypatch.setattr(conditions, "_MOST", 3)
    assert holds("body@list", b"c", [b"a", b"b", b"c"])
    with pytest.raises(ValueError, match="the file has 4 lines; at most 3 can be searched; split it"):
        made("body@list", None, [b"a", b"b", b"c", b"d"])


def test_the_bytes_of_a_record_refuse_only_what_certainly_does_not_fit() -> None:
    test = LiteralTest([b"needle", b"other"], is_text=False)
    for data in (b"a needle", b"x\nContent-Encoding: gzip", b"x\ntransfer-encoding: y", bytearray(b"other")):
        assert test.may_hold(data)
    for data in (b"", b"content-encoding: gzip", b"a needl e"):
        assert not test.may_hold(data)
    assert not test(b"x\nContent-Encoding: gzip")
    assert test(b"x\nContent-Encoding: gzip needle")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("meta=x", "meta cannot be tested; use meta.NAME"),
        ("tags=x", "tags cannot be tested"),
        ("title<x", "title is not a number; < is for time, status"),
        ("size:1", "size is a number; expected =, <, <=, > or >="),
        ("title~(", "not a regular expression"),
        ("body~(", "not a regular expression"),
    ],
)
def test_a_condition_that_a_field_does_not_have_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        made(text)
    assert reason in str(error.value)
    assert text.startswith("meta") or "meta.NAME" not in str(error.value)


def head_of(url: bytes, kind: bytes = b"response") -> Head:
    return Head(kind, url)


@pytest.mark.parametrize(
    ("text", "url", "holds"),
    [
        ("url:shop", b"http://a.org/shop", True),
        ("url:shop", b"http://a.org/", False),
        ("url!:shop", b"http://a.org/shop", False),
        ("url!:shop", b"http://a.org/", True),
        ("host=a.org", b"http://a.org/", True),
        ("host=a.org", b"http://b.org/", False),
        ("host!=a.org", b"http://b.org/", True),
        ("host!=a.org", b"no url", False),
        ("host=a.org", b"no url", False),
        ("domain@list", b"http://x.a.org/", True),
        ("domain@list", b"http://b.org/", False),
        ("type=response", b"http://a.org/", True),
        ("type!=response", b"http://a.org/", False),
    ],
)
def test_the_type_and_the_url_decide_some_conditions(text: str, url: bytes, holds: bool) -> None:
    condition = parse_expression(text)
    assert isinstance(condition, Condition)
    test = make_test(condition, lambda path: [b"a.org"])
    assert test.holds_for_head is not None
    assert test.holds_for_head(head_of(url)) is holds
    assert (test.labels is not None) == ("@" in text)


@pytest.mark.parametrize("text", ["url~shop", "host!~shop", "status=200", "time=2014", "title:x", "length>1"])
def test_other_conditions_need_the_record(text: str) -> None:
    condition = parse_expression(text)
    assert isinstance(condition, Condition)
    test = make_test(condition, lambda path: [])
    assert (test.holds_for_head, test.labels, test.may_hold) == (None, None, None)
