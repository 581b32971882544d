"""Several clusters under one name: each dialect answers as if all their lines were in one cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

import cdxmill

from ..material.cdx_server import CdxServer, HttpAnswer, cdx_server
from .conftest import MANY, REPLAY, line, many_lines

if TYPE_CHECKING:
    from tests.conftest import Cluster

IANA = "http://www.iana.org/"
SAME, SECOND = MANY + "same", "20200101000000"
NOW = re.compile(rb"<enddate>\d+")
ASKED = [
    ("cdx", {"url": IANA}),
    ("cdx", {"url": "*"}),
    ("cdx", {"url": "*", "limit": 70}),
    ("cdx", {"url": "*.iana.org", "filter": ["=status:200", "!mime:text/html"], "output": "json"}),
    ("cdx", {"url": MANY, "limit": 7, "sort": "reverse"}),
    ("cdx", {"url": MANY, "limit": 1, "sort": "reverse", "from": "2019", "to": "202001010100"}),
    ("cdx", {"url": MANY, "closest": "20200101010101"}),
    ("cdx", {"url": MANY, "closest": "20200101010101", "limit": 5}),
    ("cdx", {"url": MANY, "collapseTime": 11, "limit": 9}),
    ("cdx", {"url": "iana.org/*", "collapse": "digest", "fl": "urlkey,digest"}),
    ("cdx", {"url": MANY + "*", "resolveRevisits": "true", "limit": 4}),
    ("cdx", {"url": SAME, "fl": "extra,offset", "output": "text"}),
    ("cdx", {"url": SAME, "fl": "nope"}),
    ("cdx", {"url": "http://absent.example/"}),
    ("cdx", {"url": "*.iana.org", "page": 0, "pageSize": 2}),
    ("cdx", {"url": "*.iana.org", "showNumPages": "true"}),
    ("-index", {"url": IANA, "limit": 3}),
    ("-index", {"url": "http://absent.example/"}),
    ("cdx/search/cdx", {"url": MANY, "limit": -3}),
    ("cdx/search/cdx", {"url": MANY, "collapse": "timestamp:11", "offset": 2, "limit": 3}),
    ("cdx/search/cdx", {"url": MANY + "*", "limit": 4990, "showResumeKey": "true"}),
    ("cdx/search/cdx", {"url": SAME, "resumeKey": "example,many)/same 20200101000000 2", "limit": 2}),
    ("", {"url": IANA, "output": "jsondict"}),
    ("", {"urlkey": "example,many)/", "sort": "closest", "closest": "2020", "limit": 3}),
    ("", {"q": f"type:urlquery url:{quote(MANY, safe='')} date:20200101010000", "count": 3}),
    ("", {"q": f"type:prefixquery url:{quote(MANY, safe='')}"}),
    ("available", {"url": IANA, "timestamp": "20140127"}),
    ("timemap/link/" + IANA, {}),
    ("timemap/json/" + IANA, {}),
    ("timegate/" + IANA, {}),
]


@pytest.fixture(scope="module")
def both(
    samples_cluster: Cluster, many_cluster: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CdxServer]:
    """A server with all lines in one cluster, `whole`, and in three, `parts`, which have some lines in common.

    One of the three has an overlay. Some lines of the samples are hidden.
    """
    directory, source = tmp_path_factory.mktemp("several"), Random(4)

    def write(name: str, lines: list[bytes]) -> str:
        path = directory / f"{name}.cdxj"
        path.write_bytes(b"".join(one + b"\n" for one in sorted(lines)))
        return str(path)

    def build(name: str, lines: list[bytes], numlines: int) -> str:
        cluster = str(directory / name)
        cdxmill.zipnum(write(name, lines), output=cluster, shards=1, numlines=numlines, processes=1)
        return cluster

    extra = [line("example,many)/same", SECOND, url=SAME, offset=str(n), extra="x") for n in range(9)]
    lines = [one.rstrip().encode() for one in (*many_lines(), *extra)] + samples_cluster.lines()
    parts: list[list[bytes]] = [[], [], []]
    for one in lines:
        for part in source.sample(parts, source.choice((1, 1, 2))):
            part.append(one)
    second = build("second", parts[1][::2], 120)
    cdxmill.add(second, write("added", parts[1][1::2]), cdx=True, mode="overlay", processes=1)
    rules = directory / "rules.aclj"
    rules.write_text('org,iana)/about - {"access": "exclude"}\n')
    with cdx_server(
        f"whole={build('whole', lines, 20)}",
        f"parts={build('first', parts[0], 20)},{second}",
        f"parts={build('third', parts[2], 1000)}",
        *("--replay", REPLAY, "--access", rules),
    ) as running:
        yield running


def ask(server: CdxServer, collection: str, path: str, asked: Mapping[str, object]) -> HttpAnswer:
    endpoint = f"/{collection}{path}" if path.startswith("-") else f"/{collection}/{path}".rstrip("/")
    if path.startswith("time"):
        return server.get(f"/{collection}/{path}", Accept_Datetime="Mon, 27 Jan 2014 00:00:00 GMT")
    return server.ask(endpoint, asked)


@pytest.mark.parametrize(("path", "asked"), ASKED)
def test_several_clusters_answer_as_one(both: CdxServer, path: str, asked: Mapping[str, object]) -> None:
    whole, parts = (ask(both, name, path, asked) for name in ("whole", "parts"))
    same = [NOW.sub(b"", one.body.replace(b"parts", b"whole")) for one in (parts, whole)]
    assert same[0] == same[1]
    assert (parts.status, parts.headers.get("location")) == (whole.status, whole.headers.get("location"))
    assert whole.status < 400 or "absent" in str(asked) or asked["fl"] == "nope"


@pytest.mark.parametrize("url", [MANY + "*", "*.iana.org", "*"])
def test_pages_of_several_clusters_have_all_lines(both: CdxServer, url: str) -> None:
    whole = both.ask("/whole/cdx", url=url).body
    pages = json.loads(both.ask("/parts/cdx", url=url, showNumPages="true", pageSize=9).body)["pages"]
    found = [both.ask("/parts/cdx", url=url, page=page, pageSize=9).body for page in range(pages)]
    assert len(found) > 1
    assert b"".join(found) == whole
    assert both.ask("/parts/cdx", url=url, page=pages, pageSize=9).status == 400
