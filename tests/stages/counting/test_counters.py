"""What is counted in a record, and what is not."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.capture import Record
from cdxmill.stages.counting import counters
from cdxmill.stages.counting.counters import COUNTERS, BadRecord, MissingLibrary, NotWanted
from cdxmill.stages.counting.tally import DictTally
from cdxmill.stages.counting.wat_records import WatLinks, links_of, server_values
from cdxmill.stages.pages.nesting import NESTED
from cdxmill.stages.pages.parse_page import CUT

HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n%b\r\n%b"
URL = b"http://www.example.com/a/"
TEXT = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def counted(what: str, block: bytes, kind: bytes = b"response", **fields: bytes) -> dict[bytes, int]:
    """What is counted in a record."""
    headers = {b"warc-type": kind, b"warc-target-uri": URL}
    headers.update({name.replace("_", "-").encode(): value for name, value in fields.items()})
    tally = DictTally()
    COUNTERS[what].add(Record(0, 0, headers, block, len(block)), tally)
    rows = (line.split(b"\t") for line in tally.take(b"\n").splitlines())
    return {item: int(count) for item, count in rows}


def wat(what: str, value: object) -> dict[bytes, int]:
    """What is counted in a record of a WAT file."""
    return counted(what, json.dumps(value).encode(), b"metadata", content_type=b"application/json")


def response(**values: object) -> dict[str, Any]:
    """The JSON about a response."""
    header = {"WARC-Type": "response", "WARC-Target-URI": URL.decode()}
    named = {name.replace("_", "-"): value for name, value in values.items()}
    return {
        "Envelope": {"WARC-Header-Metadata": header, "Payload-Metadata": {"HTTP-Response-Metadata": named}}
    }


def test_each_value_of_server_counts_once_per_response() -> None:
    head = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nX-Server: no\r\nSERVER:\tApache\t2\r\n x \r\nserver: nginx\r\nServer: \r\n\r\nServer: b"
    assert counted("servers", head) == {b"nginx": 1, b"Apache 2   x": 1}
    assert wat("servers", response(Headers={"server": " nginx ", "Server": ["Apache\t2", "nginx", ""]})) == {
        b"nginx": 1,
        b"Apache 2": 1,
    }


def test_a_response_without_server_is_told_apart_from_other_records() -> None:
    for value in (response(Headers={"Servers": "x"}), response(), response(Headers={"Server": None})):
        with pytest.raises(NotWanted, match="without a Server"):
            wat("servers", value)
    for other in (
        {},
        {"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {"Headers": {"Server": "x"}}}}},
    ):
        with pytest.raises(NotWanted, match=r"^$"):
            wat("servers", other)
    with pytest.raises(NotWanted, match=r"^$"):
        counted("servers", b"GET / HTTP/1.1\r\nServer: x\r\n\r\n", b"request")


def test_json_that_is_none_is_reported() -> None:
    for block in (b'{"Envelope": {', b"", b"\xff", b"[" * 100_000):
        with pytest.raises(BadRecord, match="JSON is corrupt"):
            counted("servers", block, b"metadata", content_type=b"application/json")


NAMES = (
    "Envelope",
    "Payload-Metadata",
    "HTTP-Response-Metadata",
    "Headers",
    "Server",
    "HTML-Metadata",
    "Links",
    "Head",
)
MORE = ("Base", "url", "path", "A@/href", "WARC-Header-Metadata", "WARC-Target-URI", "\ud800", "http://b/")
LIKE_WAT = st.recursive(
    st.sampled_from([*MORE, None, 1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, *MORE]), inner, max_size=6),
    max_leaves=30,
)  # fmt: skip


@given(st.one_of(JSON, LIKE_WAT, LIKE_WAT.map(lambda value: response(Headers=value, HTML_Metadata=value))))
@settings(max_examples=300)
def test_the_short_way_finds_what_the_whole_json_has(value: Any) -> None:
    def at(value: Any, *names: str) -> Any:
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    block = json.dumps(value).encode()
    found = at(value, "Envelope", "Payload-Metadata", "HTTP-Response-Metadata")
    servers = at(found, "Headers", "Server")
    values = servers if isinstance(servers, list) else [servers]
    expected = [item.encode("utf-8", "replace") for item in values if isinstance(item, str)]
    assert server_values(block) == (None if found is None else expected)
    page, url = at(found, "HTML-Metadata"), at(value, "Envelope", "WARC-Header-Metadata", "WARC-Target-URI")
    if not isinstance(page, dict) or not isinstance(url, str) or not page:
        assert links_of(block) in (None, WatLinks(str(url), None, []))
        return
    links, base = page.get("Links"), at(page, "Head", "Base")
    urls = [
        link["url"]
        for link in (links if isinstance(links, list) else [])
        if isinstance(link, dict) and link.get("path") == "A@/href" and isinstance(link.get("url"), str)
    ]
    assert links_of(block) == WatLinks(url, base if isinstance(base, str) else None, urls)


LINKS = (
    "/x", "http://example.com/y", "https://Other.example.com:8443/", "//other.example.com", "mailto:a@b.c",
    "http://127.0.0.1/", "http://b\u00fccher.example/", "http://user@www.b.org/#x", "http://[::1]/", "http:///c", " HTTP://B.ORG",
)  # fmt: skip
HOSTS = {
    b"com.example com.example.other": 2,
    b"com.example example.xn--bcher-kva": 1,
    b"com.example org.b": 2,
    b"com.example c": 1,
}


def test_links_to_other_hosts_are_counted_in_pages_and_in_wat_records() -> None:
    page = "".join(f"<a href='{link}'>x</a>" for link in LINKS) + "<img src='http://img.net/'>"
    assert counted("links", HTML % (b"", page.encode())) == HOSTS
    links = [{"path": "A@/href", "url": link} for link in LINKS]
    value = response(HTML_Metadata={"Links": [*links, {"path": "IMG@/src", "url": "http://img.net/"}]})
    assert wat("links", value) == HOSTS


def test_the_base_of_a_page_can_make_all_links_external() -> None:
    page = b"<base href='http://b.org/c'><a href='x'>1</a><area href='/y'><a href='http://example.com/'>3</a><a>4</a>"
    assert counted("links", HTML % (b"", page)) == {b"com.example org.b": 2}
    links = [{"path": path, "url": url} for path, url in (("A@/href", "x"), ("AREA@/href", "/y"))]
    assert wat("links", response(HTML_Metadata={"Head": {"Base": "http://b.org"}, "Links": links})) == {
        b"com.example org.b": 2
    }


def test_tags_are_those_of_the_decoded_page() -> None:
    page = b"<p><P>\xff<b>"
    assert counted("tags", HTML % (b"Content-Encoding: gzip\r\n", gzip.compress(page))) == {b"p": 2, b"b": 1}
    assert counted("tags", HTML % (b"", "\ufeff<p>".encode("utf-16-le"))) == {b"p": 1}
    assert counted("tags", page, b"resource", content_type=b"text/html") == {b"p": 2, b"b": 1}


def test_what_is_no_page_is_not_counted() -> None:
    plain = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n<p>"
    identified = HTML % (b"", b"<p>")
    for block, kind, fields in (
        (plain, b"response", {}),
        (identified, b"response", {"warc_identified_payload_type": b"image/png"}),
        (identified, b"revisit", {}),
    ):
        with pytest.raises(NotWanted, match=r"^$"):
            counted("tags", block, kind, **fields)
    with pytest.raises(NotWanted, match="binary"):
        counted("tags", HTML % (b"", b"\x89PNG\r\n\x1a\n\0<p>"))


def test_words_are_counted_in_plain_text_only() -> None:
    assert counted("words", b"a b\xc2\xa0a\n", b"conversion", content_type=b"text/plain") == {
        b"a": 2,
        b"b": 1,
    }
    with pytest.raises(NotWanted):
        counted("words", b"a", b"conversion", content_type=b"text/html")


LONG = ".".join(["a" * 61] * 3)
NODES = {
    "www.b.org": "org.b",
    "www": "www",
    "www.org": "org",
    "www.www.org": "org.www",
    "b.www.org": "org.www.b",
    "under_score.org": "org.under_score",
    "-.org": "",
    "a-.org": "",
    "a..org": "",
    "1.2.3.4": "",
    "1.2.3.x": "x.3.2.1",
    f"{'a' * 63}.org": f"org.{'a' * 63}",
    f"{'a' * 64}.org": "",
    f"{LONG}.{'b' * 63}.c": ".".join(["c", "b" * 63, *LONG.split(".")]),
    f"{LONG}.{'b' * 63}.cc": ".".join(["cc", "b" * 63, *LONG.split(".")]),
    f"{LONG}.{'b' * 63}.ccc": ".".join(["ccc", "b" * 63, *LONG.split(".")]),
    f"{LONG}.{'b' * 63}.{'c' * 4}": "",
}


@pytest.mark.parametrize(("host", "node"), NODES.items())
def test_the_name_of_a_host_in_a_graph(host: str, node: str) -> None:
    expected = {f"com.example {node}".encode(): 1} if node else {}
    assert counted("links", HTML % (b"", b"<a href='http://%b/'>x</a>" % host.encode())) == expected


@pytest.mark.parametrize("read", [server_values, links_of])
def test_json_that_is_nested_too_deeply_is_corrupt(read: Callable[[bytes], object]) -> None:
    with pytest.raises(ValueError, match="the JSON is corrupt"):
        read(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_links_of_a_page_without_a_name_are_not_counted() -> None:
    page = HTML % (b"", b"<a href='http://b.org/'>x</a>")
    for url in (b"http://127.0.0.1/", b"http:///"):
        assert counted("links", page, warc_target_uri=url) == {}
    assert counted("links", page, warc_target_uri=b"<http://a.org/>") == {b"org.a org.b": 1}


def problems(what: str, block: bytes, **fields: bytes) -> list[str]:
    headers = {b"warc-type": b"response", b"warc-target-uri": URL}
    headers |= {name.replace("_", "-").encode(): value for name, value in fields.items()}
    return COUNTERS[what].add(Record(0, 0, headers, block, len(block)), DictTally()) or []


@pytest.mark.parametrize("what", ["tags", "links"])
def test_a_page_of_which_a_part_is_not_counted_is_noted(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = b"<p>" * 9 + b"<b><i>"
    assert problems(what, HTML % (b"", page)) == []
    cut = problems(what, HTML % (b"Content-Encoding: gzip\r\n", gzip.compress(page)[:-9]))
    assert len(cut) == 1
    assert problems(what, HTML % (b"Content-Encoding: odd\r\n", page)) == ["unknown content encoding 'odd', taken as none"]  # fmt: skip
    monkeypatch.setattr(counters, "MAX_HTML", len(page))
    assert problems(what, HTML % (b"", page)) == []
    monkeypatch.setattr(counters, "MAX_HTML", len(page) - 3)
    assert problems(what, HTML % (b"", page)) == [CUT]
    assert b"i" not in counted("tags", HTML % (b"", page))
    assert counted("tags", HTML % (b"", page))[b"b"] == 1
    monkeypatch.setattr(counters, "MAX_CONTENT", 6)
    packed = HTML % (b"Content-Encoding: gzip\r\n", gzip.compress(page))
    assert problems(what, packed) == ["the decoded body is larger than 6 bytes"]
    assert counted("tags", packed) == {b"p": 2}


def test_a_page_nested_too_deeply_is_noted() -> None:
    page = HTML % (b"", b"<div>" * 100_000 + b"<a href='http://b.org/'>x</a>")
    assert problems("links", page) == [NESTED]


def test_a_page_that_cannot_be_decoded_names_the_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("brotli", "brotlicffi"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibrary, match="brotli"):
        counted("tags", HTML % (b"Content-Encoding: br\r\n", b"x"))


@pytest.mark.parametrize(
    ("kind", "media", "is_counted"),
    [
        (b"conversion", b"text/plain", True),
        (b"resource", b"text/plain; charset=utf-8", True),
        (b"conversion", b"text/plain" + b";" * 500, True),
        (b"conversion", b"text/plainer", False),
        (b"conversion", b"", False),
    ],
)
def test_words_are_those_of_records_of_plain_text(kind: bytes, media: bytes, is_counted: bool) -> None:
    if is_counted:
        assert counted("words", b"a", kind, content_type=media) == {b"a": 1}
    else:
        with pytest.raises(NotWanted, match=r"^$"):
            counted("words", b"a", kind, content_type=media)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (b"resource", {}),
        (b"conversion", {}),
        (b"revisit", {}),
        (b"response", {"warc_target_uri": b"dns:a.org"}),
        (b"metadata", {"content_type": b"text/plain"}),
        (b"resource", {"content_type": b"application/json"}),
    ],
)
def test_only_a_response_has_a_server(kind: bytes, fields: dict[str, bytes]) -> None:
    block = b"HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\n"
    with pytest.raises(NotWanted, match=r"^$"):
        counted("servers", block, kind, **fields)
    assert counted("servers", block) == {b"nginx": 1}


def about(header: Any) -> dict[str, Any]:
    """A page whose record has this header."""
    found = response(HTML_Metadata={"Head": {}})
    found["Envelope"]["WARC-Header-Metadata"] = header
    return found


PAGES: list[tuple[Any, Any]] = [
    (response(), None),
    (response(HTML_Metadata={}), WatLinks(URL.decode(), None, [])),
    (response(HTML_Metadata={"Head": {}}), WatLinks(URL.decode(), None, [])),
    (response(HTML_Metadata={"Head": {"Base": "http://b.org/"}}), WatLinks(URL.decode(), "http://b.org/", [])),
    (
        response(HTML_Metadata={"Links": [
            {"path": "A@/href", "url": "/1"}, {"path": "AREA@/href", "url": "/2"}, {"path": "IMG@/src", "url": "/3"},
            {"path": "A@/href"}, {"url": "/4"}, {"path": "A@/href", "url": ""},
        ]}),
        WatLinks(URL.decode(), None, ["/1", "/2"]),
    ),
    ({"Envelope": {"Payload-Metadata": response(HTML_Metadata={"Head": {}})["Envelope"]["Payload-Metadata"]}}, None),
    ({"Envelope": {}}, None),
    ({"Envelope": None}, None),
    ({"Envelope": {"Payload-Metadata": None}}, None),
    ({"Envelope": {"Payload-Metadata": {"HTTP-Response-Metadata": None}}}, None),
    (response(HTML_Metadata=None), None),
    (response(HTML_Metadata=[3]), None),
    (response(HTML_Metadata={"Head": None, "Links": None}), WatLinks(URL.decode(), None, [])),
    (response(HTML_Metadata={"Head": {"Base": 3}}), WatLinks(URL.decode(), None, [])),
    (response(HTML_Metadata={"Links": [3, {"path": "A@/href", "url": 3}, {"path": 3, "url": "x"}]}), WatLinks(URL.decode(), None, [])),
    (about(None), None),
    (about({}), None),
    (about({"WARC-Target-URI": ""}), None),
    (about({"WARC-Target-URI": 3}), None),
    ({}, None),
    ([], None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), PAGES)
@pytest.mark.parametrize("is_odd", [False, True])
def test_links_of_json_are_found_in_both_ways(value: Any, expected: Any, is_odd: bool) -> None:
    """Half a surrogate pair, and a value of another type, are left to Python's own parser."""
    if is_odd and value != []:
        value = {**value, "x": "\ud800"}
    assert links_of(json.dumps(value).encode()) == expected


@pytest.mark.parametrize("more", [{}, {"x": "\ud800"}])
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Server": "a"}, [b"a"]),
        ({"SERVER": ["a", 3, "b"], "x": "y"}, [b"a", b"b"]),
        ({"Server": 3}, []),
        ({"Servers": "x"}, []),
        ({"Server": "\ud800"}, [b"?"]),
        ([], []),
        (None, []),
        ({"Server": [["x"]], "server": {"x": "y"}}, []),
    ],
)
def test_servers_of_json_are_found_in_both_ways(headers: Any, expected: list[bytes], more: Any) -> None:
    value = response(Headers=headers) | more
    assert server_values(json.dumps(value).encode()) == expected
    nothing: list[dict[str, Any]] = [
        {},
        {"Envelope": None},
        {"Envelope": {}},
        {"Envelope": {"Payload-Metadata": None}},
    ]
    for none in nothing:
        assert server_values(json.dumps({**none, **more}).encode()) is None
