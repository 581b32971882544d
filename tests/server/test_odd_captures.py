"""Captures whose values a format cannot have as they are, and requests that a dialect does not support."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest

from cdxmill.search.sources import find_sources
from cdxmill.server.app import Server, Settings
from cdxmill.server.collections import Collection

from .asking import Answered, ask, exchange
from .conftest import REPLAY

URL = "http://a.com/"
USUAL = {
    "mime": "text/html",
    "status": "200",
    "digest": "A",
    "length": "9",
    "offset": "0",
    "filename": "a.gz",
}
LINES = [
    ("com,a)/", "20200101000000", {"url": URL, **USUAL}),
    ("com,a)/", "20200101000010", {"url": "http://a.com/\x01\n &<\x7f", "offset": "1", "filename": "a b.gz"}),
    ("com,a)/", "20200101000020", {"url": "http://a.com/\udcff", **USUAL, "status": "-", "length": "9" * 19}),
    ("com,a)/", "soon", {"url": URL, **USUAL, "mime": ""}),
    ("com,b)/", "soon", {"url": "http://b.com/", **USUAL}),
    ("com,d)/", "20200101000000", {"url": "http://d.com/", **USUAL, "status": "²", "length": "٣"}),
]  # fmt: skip


def served(directory: Path, replay: str | None = REPLAY) -> Server:
    place = directory / "odd.cdxj"
    text = "".join(f"{key} {time} {json.dumps(fields, ensure_ascii=False)}\n" for key, time, fields in LINES)
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
    collection = Collection("odd", find_sources(str(place), None), None)
    return Server({"odd": collection}, Settings(directory, replay))


def test_digits_of_other_scripts_are_no_numbers(server: Server) -> None:
    found = asked(server, "", "url=d.com&output=jsondict")
    (row,) = json.loads(found.body)
    assert (row["status"], row["length"], row["offset"]) == ("²", "٣", 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return served(tmp_path_factory.mktemp("odd"))


def asked(server: Server, path: str, query: str = "") -> Answered:
    return asyncio.run(ask(server, f"/odd{path}", query))


def test_values_of_text_have_no_spaces_and_no_control_characters(server: Server) -> None:
    rows = asked(server, "/cdx/search/cdx", f"url={URL}&fl=timestamp,original,mimetype").body.splitlines()
    assert rows == [
        b"20200101000000 http://a.com/ text/html",
        b"20200101000010 http://a.com/%01%0A%20&<%7F -",
        b"20200101000020 http://a.com/%FF text/html",
        b"soon http://a.com/ -",
    ]


def test_outbackcdx_writes_cdxj(server: Server) -> None:
    query = f"url={URL}&output=cdxj&fl=urlkey,url,status,length"
    found, headers = asyncio.run(exchange(server, "/odd", query))
    assert headers[b"content-type"] == b"text/x-cdxj"
    lines = [line.split(b" ", 2) for line in found.body.splitlines()]
    assert [line[:2] for line in lines] == [[key.encode(), time.encode()] for key, time, _ in LINES[:4]]
    assert [json.loads(line[2]) for line in lines] == [
        {
            name: text.replace("\udcff", "%FF")
            for name in ("url", "status", "length")
            if (text := fields.get(name, "-")) != "-"
        }
        for _, _, fields in LINES[:4]
    ]


def test_outbackcdx_gives_numbers_that_every_reader_can_hold(server: Server) -> None:
    rows = json.loads(asked(server, "", f"url={URL}&output=json&fl=timestamp,status,length,url").body)
    assert rows[1] == [20200101000000, 200, 9, URL]
    assert rows[3][:3] == [20200101000020, "-", "9" * 19]
    assert rows[4][0] == "soon"
    objects = json.loads(asked(server, "", f"url={URL}&output=jsondict&fl=status,length").body)
    assert objects == [{"status": 200, "length": 9}, {}, {"length": "9" * 19}, {"status": 200, "length": 9}]


def test_what_xml_cannot_have_is_percent_encoded(server: Server) -> None:
    document = ET.fromstring(asked(server, "", f"q=type:urlquery+url:{quote(URL, safe='')}").body)
    urls = [one.findtext("url") for one in document.iter("result")]
    assert urls == ["http://a.com/", "http://a.com/%01\n &<\x7f", "http://a.com/%FF", "http://a.com/"]
    ends = [one.findtext("compressedendoffset") for one in document.iter("result")]
    assert ends == ["9", None, "9" * 19, "9"]


@pytest.mark.parametrize(("date", "closest"), [("20200101000004", 0), ("20200101000006", 1), ("2030", 2)])
def test_a_capture_without_a_date_is_never_the_closest(server: Server, date: str, closest: int) -> None:
    document = ET.fromstring(asked(server, "", f"q=url:{quote(URL, safe='')}+date:{date}").body)
    found = [one.find("closest") is not None for one in document.iter("result")]
    assert found == [number == closest for number in range(4)]


def test_a_date_chooses_captures_and_no_urls(server: Server) -> None:
    query = f"q=type:prefixquery+url:{quote(URL, safe='')}"
    assert asked(server, "", f"{query}+date:2020&count=1").body == asked(server, "", f"{query}&count=1").body
    assert b"<result>" in asked(server, "", f"{query}+date:2020").body


def test_openwayback_may_ask_for_a_part(server: Server) -> None:
    def times(query: str, **more: int) -> list[str | None]:
        rest = "".join(f"&{name}={value}" for name, value in more.items())
        document = ET.fromstring(asked(server, "", f"q=url:{quote(URL, safe='')}{query}{rest}").body)
        return [one.findtext("capturedate") for one in document.iter("result")]

    whole = [time for key, time, _ in LINES if key == "com,a)/"]
    assert times("") == whole
    assert times("+limit:2") == whole[:2]
    assert times("+limit:2+offset:1") == whole[1:3]
    assert times("+offset:1") == whole[1:]
    assert times("", count=2, start_page=2) == whole[2:]
    assert times("", count=2, start_page=0) == times("", count=2, start_page=1) == whole[:2]


def test_a_capture_without_a_date_is_no_memento(server: Server) -> None:
    links = asked(server, f"/timemap/link/{URL}").body
    assert links.count(b'rel="memento"') == 3
    assert b"soon" not in links
    assert len(json.loads(asked(server, f"/timemap/json/{URL}").body)["mementos"]["list"]) == 3
    for path in ("/timemap/link/http://b.com/", "/timemap/json/http://b.com/", "/timemap/link/http://c.com/"):
        assert asked(server, path).status == 404


def test_a_header_ends_where_the_server_ends_it(server: Server) -> None:
    date = "Wed, 01 Jan 2020 00:00:10 GMT"
    found, headers = asyncio.run(exchange(server, f"/odd/timegate/{URL}", "", accept_datetime=date))
    assert found.status == 302
    assert headers[b"location"] == REPLAY.encode() + b"20200101000010/http://a.com/%01%0A &<%7F"


@pytest.mark.parametrize("kind", ["timemap/link", "timemap/json", "timegate"])
def test_mementos_need_the_address_of_a_replay_server(kind: str, tmp_path: Path) -> None:
    server = served(tmp_path, None)
    found = asked(server, f"/{kind}/{URL}")
    assert (found.status, found.body) == (
        404,
        b"this server knows no replay server; it needs the option --replay\n",
    )
    closest = json.loads(asked(server, "/available", f"url={URL}").body)["archived_snapshots"]["closest"]
    assert closest == {"status": "200", "available": True, "timestamp": "soon"}


@pytest.mark.parametrize("url", [quote(URL, safe=""), "a.com", "a.com/", URL])
def test_the_url_in_a_path_may_be_encoded(server: Server, url: str) -> None:
    assert asked(server, f"/timegate/{url}").status == 302


def test_the_url_in_a_path_has_its_own_query(server: Server) -> None:
    assert asked(server, f"/timegate/{URL}", "b=c").status == 404


REFUSED = {
    "/cdx": {
        "allowFuzzy=true": "allowFuzzy is not supported",
        "allowFuzzy=maybe": "allowFuzzy=maybe: expected true or false",
        "limit=1.5": "limit=1.5: expected a whole number, at least 0",
        "limit=-1": "at least 0",
        "pageSize=0": "pageSize=0: expected a whole number, at least 1",
        "limit=%C2%B2": "expected a whole number",
        "matchType=suffix": "matchType=suffix is not supported; expected one of exact, prefix, host, domain",
        "filter=~url:" + "a" * 1001: "it has more than 1000 characters",
        "filter=~url:(%3F=a)": "the server reads the syntax of RE2",
        "&".join(["filter=status:200"] * 200): "there are more than 200 parameters",
        "limit=1&limit=2": "the parameter limit was given 2 times",
        "closest=x": "x",
        "nope=": "unknown parameter 'nope'; known are url, matchType,",
        "filter=~url:(": "missing ): (; the server reads the syntax of RE2, without lookaround",
    },
    "": {
        "omitSelfRedirects=true": "omitSelfRedirects is not supported",
        "filter=:200": "invalid filter ':200': expected FIELD:REGEX or !FIELD:REGEX",
        "filter=!status": "invalid filter '!status'",
        "urlkey=com,a)/": "give either url or urlkey",
    },
    "/cdx/search/cdx": {
        f"{key}={value}&showResumeKey=true": "resume keys do not go with"
        for key, value in {"limit": -1, "page": 0, "offset": 1, "closest": 2020, "resolveRevisits": 1}.items()
    }
    | {
        f"resumeKey={key}": "invalid resumeKey"
        for key in ("com,a)/+1", "com,a)/+2020+x", "com,a)/+2020+" + "1" * 10, "com,a)/+2020+-1")
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "query", "reason"),
    [(path, query, reason) for path, queries in REFUSED.items() for query, reason in queries.items()],
    ids=lambda text: text[:40],
)
def test_what_is_not_supported_is_refused(server: Server, path: str, query: str, reason: str) -> None:
    found = asked(server, path, f"url={URL}&{query}")
    assert (found.status, reason in found.body.decode()) == (400, True), found.body


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/cdx", "allowFuzzy=false"),
        ("/cdx", "allowFuzzy="),
        ("/cdx", "limit=99999999999"),
        ("/cdx", "filter=~url:" + ("a" * 993) + ".*|http"),
        ("/cdx", "&".join(["filter=status:200"] * 199)),
        ("", "omitSelfRedirects=0"),
        ("/cdx/search/cdx", "showResumeKey=false&limit=-9"),
        ("/cdx/search/cdx", "resumeKey=com,a)/+2020+" + "0" * 9),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_just_supported_is_answered(server: Server, path: str, query: str) -> None:
    found = asked(server, path, f"url={URL}&{query}")
    assert (found.status, b"20200101000000" in found.body) == (200, True), found.body


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("q=type:urlquery", "q has no url:"),
        ("q=url:a.com+limit:x", "'x': expected a whole number"),
        ("q=url:a.com+offset:-1", "'-1': expected a whole number"),
        ("q=url:a.com+limit:" + "1" * 10, "expected a whole number"),
        ("q=url:a.com+date:202", "date:202 is not a timestamp"),
        ("q=url:a.com+date:" + "1" * 18, "is not a timestamp"),
        ("q=url:a.com+date:20x0", "date:20x0 is not a timestamp"),
        ("q=type:other+url:a.com", "type:other is not supported; expected one of urlquery, prefixquery"),
        ("q=url:a.com&count=0", "count=0: expected a whole number, at least 1"),
    ],
)
def test_a_wrong_xml_query_is_refused(server: Server, query: str, reason: str) -> None:
    found = asked(server, "", query)
    assert (found.status, reason in found.body.decode()) == (400, True), found.body


@pytest.mark.parametrize(
    "path",
    [
        "/cdx?url=",
        "-index?url=",
        "/cdx/search/cdx?url=",
        "?url=",
        "?q=url:",
        "/available?url=",
        "/timemap/link/",
    ],
)
def test_what_is_no_url_is_refused(server: Server, path: str) -> None:
    place, _, query = f"{path}*a.com".partition("?")
    found = asyncio.run(ask(server, f"/odd{place}", query))
    assert (found.status, b"a * is allowed only at the end" in found.body) == (400, True), found.body


@pytest.mark.parametrize("date", ["2020", "20200101000000000"])
def test_the_shortest_and_the_longest_date_of_an_xml_query(server: Server, date: str) -> None:
    assert asked(server, "", f"q=url:a.com+date:{date}").status == 200


@pytest.mark.parametrize(
    "date", ["", "soon", "2020", "Thu, 31 May 99999 20:35:00 GMT", "Fri, 31 Dec 9999 23:59:59 -0100"]
)
def test_a_wrong_accept_datetime_is_refused(server: Server, date: str) -> None:
    found, _ = asyncio.run(exchange(server, f"/odd/timegate/{URL}", "", accept_datetime=date))
    assert (found.status, b"invalid Accept-Datetime" in found.body) == (400, True)


@pytest.mark.parametrize("path", ["/cdx", "", "/cdx/search/cdx", "/available"])
def test_an_answer_that_takes_too_long_ends(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.server.watch.SECONDS", -1.0)
    found, headers = asyncio.run(exchange(server, f"/odd{path}", f"url={URL}"))
    assert (found.status, b"ask for less, or page by page" in found.body) == (503, True)
    assert b"retry-after" in headers


def test_a_websocket_is_refused(server: Server) -> None:
    async def never(*_: object) -> None:
        raise AssertionError

    with pytest.raises(RuntimeError, match="websocket is not supported"):
        asyncio.run(server({"type": "websocket"}, never, never))  # type: ignore[arg-type]
