"""Each dialect: the answers that its clients read. pywb's is compared with pywb in tests/serving."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest

from cdxmill.formats.lines.capture_fields import parse_fields

from .conftest import CAPTURES, MANY, REPLAY, many_lines

if TYPE_CHECKING:
    from tests.conftest import Cluster
    from tests.material.cdx_server import CdxServer

IANA = "http://www.iana.org/"
HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]


def lines_of(cluster: Cluster, urlkey: bytes) -> list[bytes]:
    return [line for line in cluster.lines() if line.startswith(urlkey + b" ")]


def test_lines_are_those_of_the_cluster(server: CdxServer, samples_cluster: Cluster) -> None:
    answer = server.ask("/web/cdx", url=IANA)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/x-cdxj")
    assert answer.body.splitlines() == lines_of(samples_cluster, b"org,iana)/") != []
    assert server.ask("/web-index", url=IANA).body == answer.body
    everything = server.ask("/web/cdx", url="*").body.splitlines()
    assert everything == samples_cluster.lines()
    assert server.ask("/web/cdx", url=IANA, limit=0).body == answer.body  # as in pywb


def test_nothing_found_is_empty_for_pywb_and_404_for_clients_of_common_crawl(server: CdxServer) -> None:
    answer = server.ask("/web/cdx", url="http://absent.example/", output="json")
    assert (answer.status, answer.body) == (200, b"")
    answer = server.ask("/web-index", url="http://absent.example/", output="json")
    assert answer.status == 404
    assert json.loads(answer.body) == {"message": "No Captures found for: http://absent.example/"}


def test_a_page_beyond_the_last_is_400(server: CdxServer) -> None:
    pages = json.loads(server.ask("/many/cdx", url=MANY, showNumPages="true").body)
    assert pages == {"pages": 2, "pageSize": 10, "blocks": 17}
    found = [server.ask("/many-index", url=MANY, page=page).body for page in range(2)]
    assert b"".join(found) == server.ask("/many/cdx", url=MANY).body
    answer = server.ask("/many-index", url=MANY, page=2)
    assert answer.status == 400
    assert "page 2 does not exist" in json.loads(answer.body)["message"]


def test_the_wayback_dialect(server: CdxServer, samples_cluster: Cluster) -> None:
    fields = [parse_fields(line) for line in lines_of(samples_cluster, b"org,iana)/")]
    names = ("urlkey", "timestamp", "url", "mime", "status", "digest", "length")
    rows = [[one.get(name, "-") for name in names] for one in fields]
    answer = server.ask("/cdx/search/cdx", url=IANA, output="json")
    assert json.loads(answer.body) == [HEADER, *rows]
    text = server.ask("/web/cdx/search/cdx", url=IANA)
    assert [line.split(" ") for line in text.text.splitlines()] == rows
    asked = {"url": IANA, "output": "json", "fl": "timestamp,statuscode"}
    last = server.ask("/cdx/search/cdx", asked, limit=-2)
    assert json.loads(last.body) == [["timestamp", "statuscode"], *([row[1], row[4]] for row in rows[-2:])]
    found = server.ask(
        "/cdx/search/cdx", asked, filter=["statuscode:[23]0.", "!mimetype:warc/revisit"], offset=1
    )
    wanted = [[row[1], row[4]] for row in rows if row[4][:2] in ("20", "30") and row[3] != "warc/revisit"][1:]
    assert json.loads(found.body)[1:] == wanted
    assert json.loads(server.ask("/cdx/search/cdx", url="absent.example", output="json").body) == []
    assert server.ask("/many/cdx/search/cdx", url=MANY, showNumPages="true").body == b"2\n"


@pytest.mark.parametrize(
    "more", [{}, {"collapse": "timestamp:11"}, {"collapseTime": "11"}, {"filter": "timestamp:.*7"}]
)
@pytest.mark.parametrize("limit", [1, 3, 1500])
def test_resume_keys_skip_nothing_and_repeat_nothing(
    server: CdxServer, limit: int, more: dict[str, object]
) -> None:
    path, asked = (
        "/many/cdx/search/cdx",
        {"url": MANY, "matchType": "prefix", "fl": "timestamp,offset,digest", **more},
    )
    asked |= {"from": "20200101012"} if limit == 1 else {}
    whole = server.ask(path, asked).text.splitlines()
    assert whole
    if limit < 10:
        asked["url"], asked["from"] = MANY + "same", "2020"
        whole = server.ask(path, asked).text.splitlines()
    found: list[str] = []
    key: dict[str, object] = {}
    for _ in range(len(whole) + 1):
        lines, _, rest = server.ask(path, asked, limit=limit, showResumeKey="true", **key).text.partition(
            "\n\n"
        )
        found += lines.splitlines()
        if not rest:
            break
        key = {"resumeKey": rest.strip()}
    assert found == whole
    assert server.ask(path, asked, showResumeKey="true").text.splitlines() == whole
    rows = json.loads(server.ask(path, asked, limit=1, showResumeKey="true", output="json").body)
    assert rows[-2] == [] if len(whole) > 1 else [] not in rows


def test_the_outbackcdx_dialect(server: CdxServer, samples_cluster: Cluster) -> None:
    fields = [parse_fields(line) for line in lines_of(samples_cluster, b"org,iana)/")]
    names = [
        "urlkey",
        "timestamp",
        "url",
        "mime",
        "status",
        "digest",
        "redirect",
        "robotflags",
        "length",
        "offset",
        "filename",
    ]
    lines = [" ".join(str(one.get(name, "-")) for name in names) for one in fields]
    assert server.ask("/web", url=IANA).text.splitlines() == lines
    assert server.ask("/web", urlkey="org,iana)/", sort="reverse", limit=1).text.splitlines() == lines[-1:]
    rows = json.loads(server.ask("/web", url=IANA, output="json", fl="timestamp,status,url").body)
    assert rows[0] == ["timestamp", "status", "url"]
    assert rows[1] == [int(fields[0]["timestamp"]), int(fields[0]["status"]), fields[0]["url"]]
    objects = json.loads(server.ask("/web", url=IANA, output="jsondict").body)
    assert [one["filename"] for one in objects] == [one["filename"] for one in fields]
    closest = server.ask("/web", url=IANA, sort="closest", closest="20140127", limit=1, fl="timestamp").text
    assert closest == "20140127171238\n"
    dedup = {"fl": "timestamp,digest", "filter": "!mimetype:warc/revisit", "url": IANA, "limit": -1}
    assert server.ask("/cdx/search/cdx", dedup).text.split() == [
        fields[-2]["timestamp"],
        fields[-2]["digest"],
    ]


def test_openwayback_gets_one_request_and_its_results(server: CdxServer, samples_cluster: Cluster) -> None:
    count = len(lines_of(samples_cluster, b"org,iana)/"))
    asked = f"type:urlquery url:{quote(IANA, safe='')} date:20140126"
    document = ET.fromstring(server.ask("/web", q=asked).body)
    assert document.tag == "wayback"
    assert len(document.findall("request")) == 1
    assert len(document.findall("results/result")) == count
    assert document.findtext("request/numreturned") == str(count)
    assert [
        one.findtext("capturedate") for one in document.iter("result") if one.find("closest") is not None
    ] == ["20140126200624"]
    urls = ET.fromstring(server.ask("/many", q=f"type:prefixquery url:{quote(MANY, safe='')}").body)
    assert [one.findtext("numcaptures") for one in urls.iter("result")] == [str(CAPTURES), "5"]
    absent = server.ask("/web", q="type:urlquery url:absent.example")
    assert absent.status == 200
    assert [(one.tag, one.findtext("title")) for one in ET.fromstring(absent.body)] == [
        ("error", "Resource Not In Archive")
    ]
    assert server.ask("/web", q="type:other url:a.com").status == 400


def test_openwayback_gets_its_results_by_pages(server: CdxServer) -> None:
    asked = f"type:urlquery url:{quote(MANY, safe='')}"

    def stamps(page: int) -> list[str | None]:
        document = ET.fromstring(server.ask("/many", q=asked, count=2, start_page=page).body)
        return [one.findtext("capturedate") for one in document.iter("result")]

    whole = [line.split(" ")[1] for line in many_lines()[:6]]
    for page, begin in (0, 0), (1, 0), (2, 2), (3, 4):
        assert stamps(page) == whole[begin : begin + 2]


def test_openwayback_gets_the_captures_nearest_to_its_date(server: CdxServer) -> None:
    asked = f"type:urlquery url:{quote(MANY, safe='')} date:20200101010000"
    found = list(ET.fromstring(server.ask("/many", q=asked, count=3, start_page=1).body).iter("result"))
    stamps = [one.findtext("capturedate") for one in found]
    assert stamps == ["20200101005959", "20200101010000", "20200101010001"]
    assert [one.find("closest") is not None for one in found] == [False, True, False]
    assert server.ask("/many", q=asked + "9" * 9).status == 400


def test_the_availability_api(server: CdxServer) -> None:
    found = json.loads(server.ask("/wayback/available", url=IANA, timestamp="2014").body)
    closest = found["archived_snapshots"]["closest"]
    assert closest["url"] == f"{REPLAY}{closest['timestamp']}/{IANA}"
    for more, stamp in (("&timestamp=20140126", "20140126200624"), ("", "20140127171238")):
        found = json.loads(server.get(f"/wayback/available?url={IANA}{more}").body)
        assert found["archived_snapshots"]["closest"]["timestamp"] == stamp
    assert json.loads(server.ask("/web/available", url="absent.example").body)["archived_snapshots"] == {}


def test_memento(server: CdxServer, samples_cluster: Cluster) -> None:
    count = len(lines_of(samples_cluster, b"org,iana)/"))
    links = server.get(f"/web/timemap/link/{IANA}")
    assert links.headers["content-type"] == "application/link-format"
    assert links.text.count('rel="memento"') == count
    assert f'<{IANA}>; rel="original",\n<{server.site}/web/timemap/link/{IANA}>; rel="self"' in links.text
    assert 'datetime="Sun, 26 Jan 2014 20:06:24 GMT"' in links.text
    found = json.loads(server.get(f"/web/timemap/json/{IANA}").body)
    assert len(found["mementos"]["list"]) == count
    gate = server.get(f"/web/timegate/{IANA}", Accept_Datetime="Sun, 26 Jan 2014 20:00:00 GMT")
    assert (gate.status, gate.headers["location"]) == (302, f"{REPLAY}20140126200624/{IANA}")
    assert gate.headers["vary"] == "accept-datetime"
    newest = server.get(f"/web/timegate/{IANA}")
    assert newest.headers["location"].startswith(f"{REPLAY}20140127171238/")
    assert server.get("/web/timegate/http://absent.example/").status == 404
    assert server.get(f"/web/timegate/{IANA}", Accept_Datetime="soon").status == 400


@pytest.mark.parametrize(
    "query",
    [
        "/web/cdx?output=json",
        "/web/cdx?url=",
        "/web/cdx?url=a.com&limit=abc",
        "/web/cdx?url=a.com&limit=-1",
        "/web/cdx?url=a.com&page=-1",
        "/web/cdx?url=a.com&url=b.com",
        "/web/cdx?url=a.com&filter=~url:(",
        "/web/cdx?url=a.com&filter=status==200",
        "/web/cdx?url=a.com&output=xml",
        "/web/cdx?url=a.com&from=2015&to=2014",
        "/web/cdx?url=a.com&nope=1",
        "/web/cdx?url=a.com&fl=nope",
        "/web?url=a.com&urlkey=com,a)/",
        "/web",
        "/web?q=type:urlquery",
        "/cdx/search/cdx?url=a.com&filter=200",
        "/cdx/search/cdx?url=a.com&resumeKey=x",
        "/cdx/search/cdx?url=a.com&resumeKey=%FF",
        "/cdx/search/cdx?url=a.com&showResumeKey=true&limit=-1",
        "/cdx/search/cdx?url=a.com&showResumeKey=true&resolveRevisits=true",
        "/cdx/search/cdx?url=a.com&resumeKey=com,a)/+2020+0&offset=1",
        "/wayback/available?timestamp=2014",
        "/web/cdx?url=" + "a" * 70_000,
    ],
)
def test_wrong_parameters_are_refused_before_the_answer(server: CdxServer, query: str) -> None:
    try:
        answer = server.get(query)
    except ConnectionError:  # too long: it is not even read
        assert len(query) > 65_000
        return
    assert answer.status == 400
    assert len(answer.body.splitlines()) == 1


@pytest.mark.parametrize("more", [{}, {"collapse": "timestamp:11"}, {"resolveRevisits": "true"}])
def test_the_nearest_captures_are_those_of_a_sorted_answer(server: CdxServer, more: dict[str, str]) -> None:
    stamps = [line.split(" ")[1] for line in many_lines()[:CAPTURES]]
    asked = {"url": MANY, "fl": "timestamp", "output": "text", **more}
    for moment, limit in (("20200101003000", 7), ("20200101", 3), ("2019", 2), ("20200101003000", 1)):
        found = server.ask("/many/cdx", asked, closest=moment, limit=limit).text
        whole = server.ask("/many/cdx", asked, closest=moment).text
        assert found.split() == whole.split()[:limit]
        assert sorted(whole.split()) == stamps[:: 600 if "collapse" in more else 1]


@pytest.mark.parametrize("more", [{"reverse": "true"}, {"sort": "reverse"}, {"sort": "closest"}])
def test_the_nearest_captures_come_first_whatever_the_order(server: CdxServer, more: dict[str, str]) -> None:
    asked = {"url": MANY, "fl": "timestamp", "output": "text", "closest": "20200101003000", "limit": "5"}
    assert server.ask("/many/cdx", asked | more).text == server.ask("/many/cdx", asked).text
