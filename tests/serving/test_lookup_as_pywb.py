"""`cdxmill lookup` gives the answers of a running pywb server, for hundreds of random questions.

The query parameters of pywb become options of the command. The bytes of the answers are compared. CDXMILL_EXAMPLES sets the
number of questions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import UsageError
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup
from cdxmill.search.query import PreparedQuery

from ..material.cdx_server import CdxServer, cdx_server

if TYPE_CHECKING:
    from tests.conftest import Cluster
    from tests.serving.conftest import Wayback

QUESTIONS = int(os.environ.get("CDXMILL_EXAMPLES", "600"))
FILTERS = [
    *(
        "=status:200",
        "!=status:200",
        "=status:404",
        "status:30",
        "!status:2",
        "~status:[23]..",
        "!~status:[45]",
    ),
    *(
        "=mime:text/html",
        "mime:image/",
        "!mime:image/",
        "~mime:.*html",
        "!~mime:text/.*",
        "=mime:warc/revisit",
    ),
    *(
        "~url:.*\\.(png|gif|js)$",
        "url:www",
        "!url:?",
        "=u:http://www.iana.org/",
        "original:iana",
        "m:css",
        "d:A",
    ),
    *("~urlkey:org,(iana|archive)", "!urlkey:archive", "k:iana", "~timestamp:2014", "t:2013", "=mimetype:-"),
    *(
        "=statuscode:200",
        "s:1",
        "l:99",
        "~length:[0-9]{4}$",
        "filename:iana",
        "f:example",
        "o:0",
        "charset:x",
    ),
    *(
        "!charset:x",
        "=method:",
        "~method:.*",
        "iana",
        "!iana",
        "~org,iana",
        "~.*revisit",
        ":iana",
        "=:",
        "url:a:b",
    ),
]
SOURCES = b" web web"
_WHOLE_LINE = re.compile("!?~(?![a-z]+:)")
"""With resolveRevisits, pywb compares such a pattern with the fields as JSON."""
FIELDS = ["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename", "method"]


def url_of(source: Random, lines: list[bytes]) -> str:
    """The URL of a line, or a similar one."""
    url: str = json.loads(source.choice(lines).split(b" ", 2)[2])["url"]
    scheme, colon, rest = url.partition("://")
    if not colon:  # dns:
        return url
    host, slash, path = rest.partition("/")
    return source.choice(
        [
            url,
            url,
            rest,
            f"{scheme}://{host}/",
            host,
            f"{scheme}://{host}/{path[: source.randrange(len(path) + 1)]}",
            f"{scheme}://{host}{slash}{path}x",
            f"http://absent.{host}/",
        ]
    )


def scope_of(source: Random, url: str) -> dict[str, Any]:
    """URL and match type; the match type is given as a parameter or by a `*`."""
    host = url.partition("://")[2].partition("/")[0] or url.partition("/")[0]
    host = host or url
    below = host.split(".", source.randrange(max(1, host.count(".") + 1)))[-1]
    return source.choice(
        [
            {"url": url},
            {"url": url, "matchType": "exact"},
            {"url": url + "*"},
            {"url": url, "matchType": "prefix"},
            {"url": url, "matchType": "host"},
            {"url": below, "matchType": "domain"},
            {"url": f"*.{below}"},
        ]
    )


def time_of(source: Random, lines: list[bytes]) -> str:
    return source.choice(lines).split(b" ")[1].decode()[: source.choice([4, 4, 5, 6, 7, 8, 10, 12, 14])]


def sometimes(source: Random, chance: float, made: dict[str, Any]) -> dict[str, Any]:
    return made if source.random() < chance else {}


def questions(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Random query parameters for pywb."""
    source, made = Random(20), 0
    while made < QUESTIONS:
        asked = _question(source, lines)
        if not ("resolveRevisits" in asked and any(map(_WHOLE_LINE.match, asked.get("filter", ())))):
            made += 1
            yield asked


def _question(source: Random, lines: list[bytes]) -> dict[str, Any]:
    return {
        **scope_of(source, url_of(source, lines)),
        **sometimes(source, 0.25, {"from": time_of(source, lines)}),
        **sometimes(source, 0.25, {"to": time_of(source, lines)}),
        **sometimes(source, 0.5, {"filter": source.sample(FILTERS, source.choice([1, 1, 2]))}),
        **sometimes(source, 0.2, {"collapseTime": source.choice([1, 4, 6, 8, 10, 14])}),
        **sometimes(source, 0.25, {"resolveRevisits": "true"}),
        **sometimes(source, 0.2, {"sort": "reverse"}),
        **sometimes(source, 0.15, {"closest": time_of(source, lines)}),
        **sometimes(source, 0.3, {"limit": source.choice([1, 2, 3, 10, 50])}),
        **sometimes(source, 0.3, {"fl": ",".join(source.sample(FIELDS, source.randrange(1, 6)))}),
        "output": source.choice(["cdxj", "json", "text"]),
        "pageSize": 1000,
    }


def query_of(asked: dict[str, Any]) -> Query:
    fields = asked.get("fl")
    return Query(
        match_type=asked.get("matchType"),
        from_ts=asked.get("from"),
        to=asked.get("to"),
        filter=tuple(asked.get("filter", ())),
        collapse=str(asked["collapseTime"]) if "collapseTime" in asked else None,
        resolve_revisits="resolveRevisits" in asked,
        sort=asked.get("sort", "default"),
        closest=asked.get("closest"),
        limit=asked.get("limit"),
        fields=tuple(fields.split(",")) if fields else None,
        output=asked["output"],
    )


def is_possible(asked: dict[str, Any]) -> bool:
    """Whether `from` is not after `to`. Otherwise the command reports an error, and the answer of pywb is empty."""
    try:
        PreparedQuery(query_of(asked))
    except UsageError as error:
        assert "ends before it begins" in str(error)
        return False
    return True


def answer_of(wayback: Wayback, asked: dict[str, Any]) -> bytes:
    """The answer of pywb. Text of all fields is taken with the names of sources, and these are removed.

    With `nosource`, pywb prints such lines unchanged in place of their values. With sources, filters of whole lines
    have other lines, so these questions are asked for JSON.
    """
    if asked["output"] != "text" or "fl" in asked:
        return wayback.cdx(**asked, allowFuzzy="0")
    if all(re.match("!?[=~]?[a-z]+:", text) for text in asked.get("filter", ())):
        lines = wayback.cdx(**asked, allowFuzzy="0", nosource="false").splitlines(keepends=True)
        assert all(line.count(SOURCES) == 1 for line in lines), lines
        return b"".join(line.replace(SOURCES, b"") for line in lines)
    lines = wayback.cdx(**{**asked, "output": "json"}, allowFuzzy="0").splitlines()
    return b"".join(" ".join(map(str, json.loads(line).values())).encode() + b"\n" for line in lines)


def test_hundreds_of_random_questions_have_the_same_answers(wayback: Wayback, cluster: Cluster) -> None:
    """The answers of `lookup` and of the CDX server, which takes pywb's parameters as they are."""
    with cdx_server(f"web={cluster.directory}") as server:
        compare(wayback, cluster, server)


def compare(wayback: Wayback, cluster: Cluster, server: CdxServer) -> None:
    answered = 0
    for asked in questions(cluster.lines()):
        theirs = answer_of(wayback, asked)
        if not is_possible(asked):
            assert theirs == b""
            assert server.ask("/web/cdx", asked).status == 400
            continue
        served = server.ask("/web/cdx", asked)
        assert (served.status, served.body) == (200, theirs), json.dumps(asked)
        ours = b"".join(line + b"\n" for line in lookup(cluster.directory, asked["url"], query_of(asked)))
        assert ours == theirs, json.dumps(asked)
        answered += bool(ours)
    assert answered > QUESTIONS // 4


@pytest.mark.parametrize("page_size", [1, 2, 7, 10])
def test_pages_have_the_same_number_and_content(
    wayback: Wayback, cluster: Cluster, page_size: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = Random(page_size)
    lines = cluster.lines()
    for _ in range(min(60, 15 * page_size)):  # small pages are many
        asked = scope_of(source, url_of(source, lines))
        given = ["lookup", str(cluster.directory), asked["url"], "--page-size", str(page_size)]
        if "matchType" in asked:
            given += ["--matchType", asked["matchType"]]
        params = {**asked, "pageSize": page_size, "allowFuzzy": "0"}
        assert main([*given, "--showNumPages"]) == 0
        ours = capfdbinary.readouterr().out
        theirs = wayback.cdx(**params, showNumPages="true")
        assert json.loads(ours) == json.loads(theirs), asked
        for page in range(json.loads(ours)["pages"]):
            assert main([*given, "--page", str(page)]) == 0
            assert capfdbinary.readouterr().out == wayback.cdx(**params, page=page), asked


def test_the_command_accepts_the_parameter_names_of_the_server(
    wayback: Wayback, cluster: Cluster, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    options = ["--filter", "=status:200", "--filter", "!~mime:image/.*", "--from", "2013", "--to", "2014"]
    options += ["--limit", "20", "--sort", "reverse", "--fl", "url,status", "--output", "json"]
    assert main(["lookup", str(cluster.directory), "*.iana.org", *options]) == 0
    params: dict[str, Any] = {
        "from": "2013",
        "to": "2014",
        "filter": ["=status:200", "!~mime:image/.*"],
        "limit": 20,
    }
    theirs = wayback.cdx(
        url="*.iana.org", sort="reverse", fl="url,status", output="json", pageSize=1000, **params
    )
    assert capfdbinary.readouterr().out == theirs != b""
