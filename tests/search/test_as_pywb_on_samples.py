"""Random queries to clusters of all samples: the answers are those of pywb's reader, in this process.

docs/searching.md lists what pywb does otherwise: no query here has a time that is no date, or a field that no line has.
CDXMILL_EXAMPLES sets the number of queries per cluster.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cdxmill.errors import UsageError
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup

from ..material.clusters import shards_of

if TYPE_CHECKING:
    from tests.conftest import BuildCluster

pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")  # pywb imports it

EXAMPLES = int(os.environ.get("CDXMILL_EXAMPLES", "300"))
OUTPUTS = ("cdxj", "json", "text")
VALUES = {
    "status": ("200", "302", "404", "-", "2", "[23]..", ""),
    "mime": ("text/html", "image/", "warc/revisit", ".*/.*ml", "-", "text/dns"),
    "url": ("http", "www", ".*\\.(gif|png)$", "?", "%", "dns:"),
    "digest": ("A", "sha1", ".{32}$"),
    "length": ("9", "[0-9]{4}$"),
    "filename": ("warc", ".*arc.gz$", "jwat"),
    "timestamp": ("2012", "20(08|12)", "-"),
    "urlkey": ("org,", "com,.*", ")/"),
    "charset": ("UTF-8", "x"),
    "redirect": ("http", "-"),
}


class Built(NamedTuple):
    """A cluster and its lines."""

    directory: Path
    lines: list[bytes]


@pytest.fixture(scope="module", params=[(), ("--cdx11",), ("--cdx9",)], ids=["cdxj", "cdx11", "cdx9"])
def built(
    request: pytest.FixtureRequest,
    build_cluster: BuildCluster,
    samples: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Built:
    directory = tmp_path_factory.mktemp("samples") / "cluster"
    build_cluster(directory, [samples], 3, "--numlines", "50", *request.param)
    return Built(directory, b"".join(shards_of(directory)).split(b"\n")[:-1])


def url_of(source: Random, line: bytes) -> str:
    """The URL of a line, or a similar one."""
    url: str = parse_fields(line)["url"]
    scheme, colon, rest = url.partition("://")
    host, _, path = rest.partition("/")
    if not colon or not host:
        return url
    part = f"{scheme}://{host}/{path[: source.randrange(len(path) + 1)]}"
    return source.choice(
        [url, url, rest, host, part, url + "x", url.upper(), f"http://www.{host}/", f"{url}#top"]
    )


def filter_of(source: Random) -> str:
    name = source.choice(list(VALUES))
    alias = source.choice([name, name, *(["statuscode", "s"] if name == "s" else [])])
    operator = source.choice(["", "=", "~", "!", "!=", "!~"])
    value = source.choice(VALUES[name])
    if "~" in operator:
        value = value.replace("?", "\\?").replace(")/", "\\)/")
    return f"{operator}{alias}:{value}"


def time_of(source: Random, line: bytes) -> str:
    found: str = parse_fields(line)["timestamp"]
    digits = found if found != "-" else "2014"
    return digits[: source.choice([4, 6, 8, 10, 12, 14])]


def asked(source: Random, lines: list[bytes]) -> dict[str, Any]:
    """Query parameters of pywb."""

    def sometimes(chance: float, **params: Any) -> dict[str, Any]:
        return params if source.random() < chance else {}

    url = url_of(source, source.choice(lines))
    scope = source.choice([{}, {}, *({"matchType": kind} for kind in ("exact", "prefix", "host", "domain"))])
    if source.random() < 0.2:
        url, scope = source.choice([f"{url}*", "*.com", "*.org", "*.dk"]), {}
    return {
        "url": url,
        **scope,
        **sometimes(0.25, **{"from": time_of(source, source.choice(lines))}),
        **sometimes(0.25, to=time_of(source, source.choice(lines))),
        **sometimes(0.4, filter=[filter_of(source) for _ in range(source.choice([1, 1, 2]))]),
        **sometimes(0.2, collapseTime=str(source.choice([1, 4, 6, 8, 10, 14]))),
        **sometimes(0.2, resolveRevisits="true"),
        **sometimes(0.2, sort="reverse"),
        **sometimes(0.2, closest=time_of(source, source.choice(lines))),
        **sometimes(0.3, limit=str(source.choice([1, 2, 3, 10, 50]))),
        **sometimes(0.3, fields=",".join(source.sample(list(VALUES), source.randrange(1, 6)))),
    }


def by_pywb(directory: Path, output: str, params: dict[str, Any]) -> bytes | str:
    """The answer of pywb's reader and operations; the name of its error, if it has none."""
    from pywb.utils.canonicalize import UrlCanonicalizeException
    from pywb.warcserver.index.cdxobject import CDXException
    from pywb.warcserver.index.cdxops import process_cdx
    from pywb.warcserver.index.query import CDXQuery
    from pywb.warcserver.index.zipnum import ZipNumIndexSource

    try:
        query = CDXQuery({**params, "pageSize": "1000"})
        lines = process_cdx(ZipNumIndexSource(str(directory / "cluster.idx")).load_index(query.params), query)
        # a server adds the name of the source to each line, so its text has the values of the line
        fields = query.fields
        made = [
            getattr(line, f"to_{output}")(list(line) if output == "text" and not fields else fields)
            for line in lines
        ]
    except (CDXException, UrlCanonicalizeException, ValueError) as error:
        return type(error).__name__
    if output == "text":  # pywb prints control characters as they are
        made = [
            re.sub(r"[\x00-\x1f\x7f]", lambda found: f"%{ord(found[0]):02X}", line[:-1]) + "\n"
            for line in made
        ]
    return "".join(made).encode("utf-8", "surrogateescape")


def by_cdxmill(directory: Path, output: str, params: dict[str, Any]) -> bytes | str:
    fields = params.get("fields")
    query = Query(
        match_type=params.get("matchType"),
        from_ts=params.get("from"),
        to=params.get("to"),
        filter=tuple(params.get("filter", ())),
        collapse=params.get("collapseTime"),
        resolve_revisits="resolveRevisits" in params,
        sort=params.get("sort", "default"),
        closest=params.get("closest"),
        limit=int(params["limit"]) if "limit" in params else None,
        fields=tuple(fields.split(",")) if fields else None,
        output=output,
    )
    try:
        return b"".join(line + b"\n" for line in lookup(directory, params["url"], query))
    except UsageError as error:
        return str(error)


def is_undated(lines: list[bytes]) -> bool:
    """Whether a capture has no date. For `closest`, pywb stops at it."""
    return any(line.split(b" ")[1] == b"-" for line in lines)


def test_random_queries_have_the_answers_of_pywb(built: Built) -> None:
    source = Random(14)
    answered = 0
    for number in range(EXAMPLES):
        params = asked(source, built.lines)
        output = OUTPUTS[number % 3]
        ours, theirs = (ask(built.directory, output, params) for ask in (by_cdxmill, by_pywb))
        if isinstance(ours, str):
            assert theirs == b"" or isinstance(theirs, str), (params, ours)
            continue
        if isinstance(theirs, str) and "closest" in params:
            plain = {name: value for name, value in params.items() if name in ("url", "matchType")}
            found = by_cdxmill(built.directory, "cdxj", plain)
            assert isinstance(found, bytes)
            assert is_undated(found.splitlines()), (params, theirs)
            continue
        assert ours == theirs, (params, output)
        answered += bool(ours)
    assert answered > EXAMPLES // 4
