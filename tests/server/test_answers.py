"""The status and the content type of every page and endpoint, and parts of answers, asked in this process."""

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
from .conftest import REPLAY, line

URLS = [f"http://many.example/{name}" for name in ("a", "b", "c")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Three URLs, of which the second has three captures and two contents."""
    directory = tmp_path_factory.mktemp("answers")
    rows = [(url, year, "x") for url in URLS for year in (2020, 2021, 2022)]
    lines = [
        line(f"example,many)/{url[-1]}", f"{year}0101000000", url=url, digest="y" if year == 2022 else "x")
        for url, year, _ in rows
        if url[-1] == "b" or year == 2020
    ]
    (directory / "many.cdxj").write_text("".join(lines))
    collection = Collection("many", find_sources(str(directory / "many.cdxj"), None), None)
    return Server({"many": collection}, Settings(directory, REPLAY))


def asked(server: Server, path: str) -> Answered:
    place, _, query = path.partition("?")
    return asyncio.run(ask(server, place, query))


TEXT, JSON = "text/plain; charset=utf-8", "application/json; charset=utf-8"
KINDS = {
    "/": (200, "text/html; charset=utf-8"),
    "/page.css": (200, "text/css; charset=utf-8"),
    "/page.js": (200, "text/javascript; charset=utf-8"),
    "/health": (200, JSON),
    "/metrics": (200, "text/plain; version=0.0.4; charset=utf-8"),
    "/collinfo.json": (200, JSON),
    "/many/cdx?url=many.example/a": (200, "text/x-cdxj"),
    "/many/cdx?url=many.example/a&output=json": (200, "text/x-ndjson"),
    "/many/cdx?url=many.example/a&output=text": (200, "text/plain"),
    "/many/cdx?url=many.example/a&output=csv": (200, "text/csv"),
    "/many/cdx?url=many.example/a&output=xml": (400, JSON),
    "/many-index?url=many.example/a": (200, "text/x-cdxj"),
    "/many-index?url=other.example/": (404, JSON),
    "/many?url=many.example/a": (200, TEXT),
    "/many?url=many.example/a&output=json": (200, JSON),
    "/many?url=many.example/a&output=jsondict": (200, JSON),
    "/many?url=many.example/a&output=cdxj": (200, "text/x-cdxj"),
    "/many?url=many.example/a&output=xml": (400, TEXT),
    "/many?q=url:many.example/a": (200, "application/xml; charset=utf-8"),
    "/many?url=a&q=url:many.example/a": (400, TEXT),
    "/cdx/search/cdx?url=many.example/a": (200, TEXT),
    "/many/cdx/search/cdx?url=many.example/a&output=json": (200, JSON),
    "/wayback/available?url=many.example/a": (200, JSON),
    "/many/available?url=many.example/a": (200, JSON),
    "/many/available": (400, JSON),
    "/many/report": (404, TEXT),
    "/many/timemap/link/http://many.example/a": (200, "application/link-format"),
    "/many/timemap/json/http://many.example/a": (200, "application/json"),
    "/many/timegate/http://many.example/a": (302, TEXT),
    "/many/timemap/http://many.example/a": (404, TEXT),
    "/other/cdx?url=many.example/a": (404, TEXT),
}


@pytest.mark.parametrize("path", KINDS)
def test_the_status_and_the_content_type(path: str, server: Server) -> None:
    place, _, query = path.partition("?")
    found, headers = asyncio.run(exchange(server, place, query))
    assert (found.status, headers[b"content-type"].decode()) == KINDS[path]
    assert headers[b"access-control-allow-origin"] == b"*"
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert found.body or found.status == 302


def test_openwayback_gets_urls_by_parts(server: Server) -> None:
    """Each with its captures and how often its content has changed."""

    def urls(more: str) -> list[tuple[str | None, ...]]:
        found = asked(server, f"/many?q=type:prefixquery+url:{quote('http://many.example/', safe='')}{more}")
        names = ("originalurl", "numcaptures", "numversions", "firstcapturets", "lastcapturets")
        return [tuple(map(one.findtext, names)) for one in ET.fromstring(found.body).iter("result")]

    first = "20200101000000"
    whole = [
        (URLS[0], "1", "1", first, first),
        (URLS[1], "3", "2", first, "20220101000000"),
        (URLS[2], "1", "1", first, first),
    ]
    assert urls("") == whole
    assert urls("+limit:2") == whole[:2]
    assert urls("+limit:1+offset:1") == whole[1:2]
    assert urls("&count=2&start_page=2") == whole[2:]


def test_the_request_in_an_answer_for_openwayback(server: Server) -> None:
    found = asked(server, f"/many?q=url:{quote(URLS[1], safe='')}+offset:1+limit:5")
    (request,) = ET.fromstring(found.body).iter("request")
    names = ("firstreturned", "numreturned", "numresults", "resultsrequested", "resultstype", "type", "url")
    wanted = ["1", "2", "3", "5", "resultstypecapture", "urlquery", URLS[1]]
    assert list(map(request.findtext, names)) == wanted
    assert request.findtext("startdate") == "19960101000000"


@pytest.mark.parametrize(
    ("query", "years"),
    [
        ("limit=0", [2020, 2021, 2022]),
        ("limit=2", [2020, 2021]),
        ("offset=1", [2021, 2022]),
        ("limit=1&offset=1", [2021]),
        ("limit=-1", [2022]),
        ("limit=-2&offset=0", [2021, 2022]),
        ("limit=-5", [2020, 2021, 2022]),
        ("limit=2&sort=reverse", [2022, 2021]),
        ("limit=1&closest=20210102000000&sort=closest", [2021]),
        ("from=2021&limit=1", [2021]),
        ("resumeKey=example,many)/b+20200101000000+1", [2021, 2022]),
        ("resumeKey=example,many)/b+20200101000000+0", [2020, 2021, 2022]),
        ("resumeKey=example,many)/b+20200101000000+1&limit=1", [2021]),
        ("resumeKey=example%2Cmany%29%2Fb%2B20210101000000%2B1", [2022]),
        ("resumeKey=example,many)/b+20220101000000+1", []),
        ("resumeKey=example,many)/a+2030+1", [2020, 2021, 2022]),
        ("resumeKey=example,many)/c+2020+1", []),
    ],
)
def test_the_lines_of_a_wayback_answer(query: str, years: list[int], server: Server) -> None:
    found = asked(server, f"/many/cdx/search/cdx?url=many.example/b&fl=timestamp&{query}")
    assert [int(one[:4]) for one in found.body.split()] == years, found


@pytest.mark.parametrize(
    ("query", "years"),
    [
        ("", [2020, 2021, 2022]),
        ("&sort=default", [2020, 2021, 2022]),
        ("&sort=reverse", [2022, 2021, 2020]),
        ("&reverse=true", [2022, 2021, 2020]),
        ("&sort=reverse&limit=1", [2022]),
        ("&sort=closest", [2020, 2021, 2022]),
        ("&sort=closest&closest=20211231&limit=2", [2022, 2021]),
    ],
)
def test_the_order_of_an_answer_for_pywb(query: str, years: list[int], server: Server) -> None:
    found = asked(server, f"/many/cdx?url=many.example/b&fl=timestamp&output=text{query}")
    assert [int(one[:4]) for one in found.body.split()] == years, found


@pytest.mark.parametrize(("limit", "has_key"), [(1, True), (2, True), (3, False), (0, False)])
def test_a_resume_key_is_shown_if_there_is_more(limit: int, has_key: bool, server: Server) -> None:
    path = f"/many/cdx/search/cdx?url=many.example/b&fl=timestamp&limit={limit}&showResumeKey=true"
    lines = asked(server, path).body.decode().split("\n")
    times = [f"{year}0101000000" for year in (2020, 2021, 2022)][: limit or 3]
    key = ["", f"example%2Cmany%29%2Fb+{times[-1]}+1"] if has_key else []
    assert lines == [*times, *key, ""]
    rows = json.loads(asked(server, f"{path}&output=json").body)
    assert rows == [["timestamp"], *([time] for time in times), *([[], [key[1]]] if has_key else [])]


def test_the_captures_of_a_url_in_all_forms(server: Server) -> None:
    start = "/many?url=many.example/a"
    assert json.loads(asked(server, f"{start}&output=json&fl=urlkey,status").body) == [
        ["urlkey", "status"],
        ["example,many)/a", 200],
    ]
    absent = "/many?url=many.example/absent"
    empty = [asked(server, f"{absent}&output={kind}").body for kind in ("cdx", "cdxj", "json", "jsondict")]
    assert empty == [b"", b"", b"[]\n", b"[]\n"]
    assert asked(server, "/many?url=many.example/b&fl=timestamp&limit=2").body.split() == [
        b"20200101000000",
        b"20210101000000",
    ]
    found = asked(server, "/many/cdx?url=many.example/b&output=csv&fl=timestamp,status&limit=1")
    assert found.body.split() == [b"timestamp,status", b"20200101000000,200"]
    links = asked(server, "/many/timemap/link/http://many.example/a").body.decode()
    assert links.count(",\n") == 3
    assert 'rel="timegate"' in links


def test_an_answer_that_is_kept_is_the_same_and_a_client_that_has_it_gets_no_other(
    many_cluster: Path, tmp_path: Path
) -> None:
    collection = Collection("many", find_sources(str(many_cluster), None), None)
    keeps = Server({"many": collection}, Settings(tmp_path, None, cache=1 << 20))
    path, query = "/many/cdx", "url=many.example/same&fl=offset"

    async def answers() -> list[tuple[Answered, dict[bytes, bytes]]]:
        found = [await exchange(keeps, path, query) for _ in range(4)]
        tag = found[-1][1][b"etag"].decode()
        found += [
            await exchange(keeps, path, query, if_none_match=one) for one in (tag, f'W/"1", {tag}', 'W/"1"')
        ]
        found.append(await exchange(keeps, path, query + "&limit=1", if_none_match=tag))
        return found

    found = asyncio.run(answers())
    assert {one for one, _ in found[:4]} == {found[0][0]}
    assert len({headers[b"etag"] for _, headers in found[:7]}) == 1
    assert [one.status for one, _ in found[4:]] == [304, 304, 200, 200]
    assert [one.body for one, _ in found[4:6]] == [b"", b""]
    assert found[7][1][b"etag"] != found[0][1][b"etag"]
    for one, headers in found:
        assert headers[b"cache-control"] == b"public, max-age=60"
        assert (b"content-length" in headers) == (one.status == 200)
    refused, headers = asyncio.run(exchange(keeps, "/many-index", "url=absent.example"))
    assert (refused.status, b"etag" in headers) == (404, False)
    collection.close()
