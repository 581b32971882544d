"""The forms in which dialects read questions and write answers, each function by itself."""

from __future__ import annotations

import json
import re
import time
from xml.etree import ElementTree

import pytest

from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.server.answers import RequestError, Response
from cdxmill.server.collections import Collection
from cdxmill.server.dialects import memento, outback, xml_query
from cdxmill.server.dialects.request import Request
from cdxmill.server.parameters import Parameters
from cdxmill.server.watch import Watch


def asked(query: str) -> xml_query._Query:
    return xml_query._parse(Parameters(query.encode(), xml_query.KNOWN))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=url:a.com", ("urlquery", "a.com", "", 0, 10_000)),
        ("q=type:urlquery+url:a.com", ("urlquery", "a.com", "", 0, 10_000)),
        ("q=TYPE:x+type:PrefixQuery+url:a.com", ("prefixquery", "a.com", "", 0, 10_000)),
        ("q=url:http%253A%252F%252Fa.com%252F", ("urlquery", "http://a.com/", "", 0, 10_000)),
        ("q=url:http://a.com/", ("urlquery", "http://a.com/", "", 0, 10_000)),
        ("q=url:a.com+limit:5", ("urlquery", "a.com", "", 0, 5)),
        ("q=url:a.com+limit:0", ("urlquery", "a.com", "", 0, 10_000)),
        ("q=url:a.com+limit:999999999", ("urlquery", "a.com", "", 0, 999_999_999)),
        ("q=url:a.com+limit:5+offset:7", ("urlquery", "a.com", "", 7, 5)),
        ("q=url:a.com+limit:5&count=6", ("urlquery", "a.com", "", 0, 6)),
        ("q=url:a.com&count=6&start_page=0", ("urlquery", "a.com", "", 0, 6)),
        ("q=url:a.com&count=6&start_page=1", ("urlquery", "a.com", "", 0, 6)),
        ("q=url:a.com&count=6&start_page=2", ("urlquery", "a.com", "", 6, 6)),
        ("q=url:a.com+offset:7&count=6&start_page=3", ("urlquery", "a.com", "", 12, 6)),
        ("q=url:a.com+limit:5&start_page=2", ("urlquery", "a.com", "", 5, 5)),
        ("q=url:a.com+date:2020", ("urlquery", "a.com", "2020", 0, 10_000)),
        ("q=url:a.com+date:20200101000000123", ("urlquery", "a.com", "20200101000000123", 0, 10_000)),
        ("q=url:a.com&accesspoint=x", ("urlquery", "a.com", "", 0, 10_000)),
    ],
)
def test_an_xml_query_has_words_and_pages(query: str, expected: tuple[str, str, str, int, int]) -> None:
    assert asked(query) == expected


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "the parameter q is missing"),
        ("q=type:urlquery", "q has no url:"),
        ("q=url:", "q has no url:"),
        ("q=url:a+type:x", "type:x is not supported; expected one of urlquery, prefixquery"),
        ("q=url:a+limit:1000000000", "'1000000000': expected a whole number"),
        ("q=url:a+limit:-1", "'-1': expected a whole number"),
        ("q=url:a+limit:", "'': expected a whole number"),
        ("q=url:a+offset:x", "'x': expected a whole number"),
        ("q=url:a+offset:%C2%B2", "'²': expected a whole number"),
        ("q=url:a+date:202", "date:202 is not a timestamp"),
        ("q=url:a+date:202001010000001234", "date:202001010000001234 is not a timestamp"),
        ("q=url:a+date:202x", "date:202x is not a timestamp"),
        ("q=url:a+date:%D9%A3%D9%A3%D9%A3%D9%A3", "date:٣٣٣٣ is not a timestamp"),
        ("q=url:a&count=0", "count=0: expected a whole number, at least 1"),
        ("q=url:a&start_page=-1", "start_page=-1: expected a whole number, at least 0"),
    ],
)
def test_a_wrong_xml_query_is_refused(query: str, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(query)
    assert (caught.value.code, str(caught.value)) == (400, reason)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b\t\n\r", "a b\t\n\r"),
        ("<&>", "&lt;&amp;&gt;"),
        ("\0\x0b\x1f", "%00%0B%1F"),
        ("\x7f\xe9\ud7ff\ue000\ufffd\U0010ffff", "\x7f\xe9\ud7ff\ue000\ufffd\U0010ffff"),
        ("\udc80\udcff", "%80%FF"),
        ("\udc7f\ud800", "%3F%3F"),
        ("\ufffe\uffff", "%EF%BF%BE%EF%BF%BF"),
        (7, "7"),
    ],
)
def test_what_xml_cannot_have_is_percent_encoded(text: object, expected: str) -> None:
    assert xml_query._text(text) == expected


@pytest.mark.parametrize("kind", ["urlquery", "prefixquery"])
@pytest.mark.parametrize("results", [[], ["<a>1</a>"], ["<a>1</a>", "<a>2</a>", "<a>3</a>"]])
def test_an_xml_answer_has_results_and_one_request_or_an_error(kind: str, results: list[str]) -> None:
    query = xml_query._Query(kind, "http://a/?b&c", "", 7, 9)
    text = b"".join(xml_query._document(iter(results), query)).decode()
    root = ElementTree.fromstring(text)
    if not results:
        assert [one.tag for one in root] == ["error"]
        assert root.findtext("error/title") == "Resource Not In Archive"
        return
    assert [one.tag for one in root] == ["results", "request"]
    assert [one.findtext("a") for one in root.findall("results/result")] == list("123")[: len(results)]
    (request,) = root.findall("request")
    values = {one.tag: one.text for one in request}
    assert re.fullmatch(r"2\d{13}", values.pop("enddate") or "")
    assert values == {
        "startdate": "19960101000000",
        "type": kind,
        "firstreturned": "7",
        "url": "http://a/?b&c",
        "resultsrequested": "9",
        "resultstype": "resultstypecapture" if kind == "urlquery" else "resultstypeurl",
        "numreturned": str(len(results)),
        "numresults": str(7 + len(results)),
    }


def test_urls_are_counted_by_changes_of_their_contents() -> None:
    captures = [
        {"urlkey": "a", "timestamp": number, "digest": digest} for number, digest in enumerate("xxyx")
    ]
    found = xml_query._url([*captures, {"urlkey": "a", "timestamp": 9, "url": "http://a/"}])
    for name, value in (
        ("urlkey", "a"),
        ("originalurl", "http://a/"),
        ("numversions", 4),
        ("numcaptures", 5),
        ("firstcapturets", 0),
        ("lastcapturets", 9),
    ):
        assert f"<{name}>{value}</{name}>" in found
    assert "<originalurl>-</originalurl>" in xml_query._url(captures)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://a.com/ ~", b"http://a.com/ ~"),
        ("\x1f\x7f\r\n", b"%1F%7F%0D%0A"),
        ("é\udcff", b"%C3%A9%FF"),
        ("", b""),
    ],
)
def test_a_header_has_printable_ascii_only(value: str, expected: bytes) -> None:
    assert memento._header(value) == expected


def unreported(_: Collection) -> Response:
    raise AssertionError("no report is asked for")


def request_of(**headers: bytes) -> Request:
    scope = {"headers": [(b"host", b"h:8")], "scheme": "https", "root_path": "/r"}
    sent = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return Request(Collection("web", [], None), b"", sent, scope, None, Watch(), unreported, "http://a/")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (b"Thu, 31 May 2007 20:35:00 GMT", "20070531203500"),
        (b"Thu, 31 May 2007 20:35:09 +0200", "20070531183509"),
        (b"Thu, 31 May 2007 20:35:00", "20070531203500"),
        (b"Thu, 31 May 2007 20:35:00 -0000", "20070531203500"),
    ],
)
def test_the_date_of_a_client_is_in_utc(
    date: bytes, expected: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Also one without a time zone, wherever the server is."""
    request.addfinalizer(time.tzset)
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        assert memento._accepted(request_of(accept_datetime=date)) == expected
    assert memento._accepted(request_of(accept_datetime=date)) == expected
    assert memento._accepted(request_of()) is None


@pytest.mark.parametrize(
    "date", [b"", b"yesterday", b"\xff", b"Thu, 31 Foo 2007 20:35:00 GMT", b"Fri, 31 Dec 9999 23:59:59 -0100"]
)
def test_a_date_that_is_none_is_refused(date: bytes) -> None:
    with pytest.raises(RequestError, match="invalid Accept-Datetime") as caught:
        memento._accepted(request_of(accept_datetime=date))
    assert caught.value.code == 400


def test_the_links_beside_a_capture() -> None:
    original = '<http://a/>; rel="original"'
    timemap = '<https://h:8/r/web/timemap/link/http://a/>; rel="{}"; type="application/link-format"'
    assert list(memento._beside(request_of())) == [original]
    assert list(memento._beside(request_of(), "timemap")) == [original, timemap.format("timemap")]
    gate = '<https://h:8/r/web/timegate/http://a/>; rel="timegate"'
    assert list(memento._beside(request_of(), "self")) == [original, timemap.format("self"), gate]


@pytest.mark.parametrize(("url", "key"), [(None, None), ("a", "b"), ("", ""), ("", "b")])
def test_a_question_is_for_a_url_or_a_urlkey(url: str | None, key: str | None) -> None:
    with pytest.raises(RequestError, match="give either url or urlkey"):
        outback._wanted(url, key)


def test_a_urlkey_is_asked_for_as_it_is() -> None:
    assert outback._wanted("a.com", None) == "a.com"
    assert outback._wanted(None, "com,a)/\udcff") == KeyRange(
        b"com,a)/\xff", b"com,a)/\xff!", is_one_url=True
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("status", "200", 200),
        ("length", "9" * 18, int("9" * 18)),
        ("length", "9" * 19, "9" * 19),
        ("offset", "0", 0),
        ("timestamp", "20200101000000", 20200101000000),
        ("status", "-", "-"),
        ("status", "-1", "-1"),
        ("status", "²", "²"),
        ("status", "", ""),
        ("digest", "7", "7"),
    ],
)
def test_numbers_of_json_are_numbers(name: str, text: str, expected: object) -> None:
    found = outback._value(name, text)
    assert (found, type(found)) == (expected, type(expected))


LINE = b'com,a)/ 2020 {"url": "http://a.com/", "status": "200", "mime": "a b"}'
NAMES = ("urlkey", "timestamp", "status", "digest", "mime")
OBJECT = {"urlkey": "com,a)/", "timestamp": 2020, "status": 200, "mime": "a b"}


@pytest.mark.parametrize("lists", [[], [[]], [[LINE]], [[], [LINE]], [[LINE], [], [LINE, LINE], []]])
def test_objects_of_json_are_one_array(lists: list[list[bytes]]) -> None:
    text = b"".join(outback._as_objects(NAMES, lists))
    number = sum(map(len, lists))
    assert json.loads(text) == [OBJECT] * number
    assert text.endswith(b"]\n")
    assert text.count(b"\n") == max(1, number)


def test_lines_of_cdxj_begin_with_urlkey_and_timestamp() -> None:
    row = b'com,a)/ 2020 {"status": "200", "mime": "a b"}\n'
    assert list(outback._as_cdxj(NAMES, [[LINE], [], [LINE, LINE]])) == [row, b"", row * 2]
    assert list(outback._as_cdxj(("mime",), [[LINE]])) == [b'com,a)/ 2020 {"mime": "a b"}\n']
    assert list(outback._as_cdxj(("digest",), [[LINE]])) == [b"com,a)/ 2020 {}\n"]
