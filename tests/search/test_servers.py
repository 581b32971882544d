"""What a CDX server is asked, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.options.queries import Query
from cdxmill.search import servers
from cdxmill.search.servers import is_server, with_servers
from cdxmill.search.several import lookup_in_sources
from cdxmill.search.sources import find_sources
from cdxmill.storage import patience

from ..storage.range_server import RangeServer, serving

LINES = [b"com,a)/%d 2020 {}" % number for number in range(6)]
END = "&limit=999999999&nosource=true"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    for name, value in (("FIRST_WAIT", 0.001), ("TRIES", 2), ("MORE_TRIES", 2)):
        monkeypatch.setattr(patience, name, value)
    servers._has_endpoint.cache_clear()
    with serving() as running:
        yield running


def answer(server: RangeServer, url: str, query: Query = Query()) -> list[bytes]:  # noqa: B008
    sources = find_sources(f"{server.url}/x/cdx", None)
    (found,) = lookup_in_sources(sources, [url], query)
    if found.error is not None:
        raise found.error
    return [line for lines in found.lists for line in lines]


def serve(server: RangeServer, question: str, body: bytes) -> None:
    server.add(unquote(f"/x/cdx?{question}"), body)


def text(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def asked(server: RangeServer) -> list[str]:
    """The questions, each once, in order."""
    return list(dict.fromkeys(path.partition("?")[2] for _, path, _ in server.seen))


def test_one_url_is_one_question(server: RangeServer) -> None:
    serve(server, f"url=a.com%2F0{END}", text(LINES[0]))
    assert answer(server, "a.com/0") == LINES[:1]
    assert asked(server) == [f"url=a.com%2F0{END}"]


def test_what_the_server_can_do_is_asked_of_it(server: RangeServer) -> None:
    query = Query(
        match_type="exact", from_ts="2020", to="2021", filter=("=status:200", "!~status:4.*"), limit=2
    )
    wanted = "url=a.com%2F0&matchType=exact&from=2020&to=2021&filter=%3Dstatus%3A200&filter=%21~status%3A4.%2A&limit=2&nosource=true"
    serve(
        server,
        f"{wanted}",
        text(b'com,a)/0 20200601000000 {"status": "200"}', b'com,a)/0 20200602000000 {"status": "404"}'),
    )
    assert answer(server, "a.com/0", query) == [b'com,a)/0 20200601000000 {"status": "200"}'], (
        "what it ignored is done here"
    )


@pytest.mark.parametrize("shape", [b"%d", b'{"pages": %d, "pageSize": 5}'])
def test_a_long_answer_is_asked_for_page_by_page(shape: bytes, server: RangeServer) -> None:
    first = "url=a.com%2F%2A&limit=1&nosource=true&showNumPages=true"
    serve(server, f"{first}", shape % 3)
    pages = [f"url=a.com%2F%2A{END}&page={page}" for page in range(3)]
    for page, name in enumerate(pages):
        serve(server, f"{name}", text(*LINES[2 * page : 2 * page + 2]))
    assert answer(server, "a.com/*") == LINES
    assert asked(server) == [first, *pages]


@pytest.mark.parametrize("body", [b"com,a)/0 2020 {}\n", b'{"other": 1}', b'"3"', b"null"])
def test_a_server_without_pages_is_asked_once(body: bytes, server: RangeServer) -> None:
    serve(server, "url=a.com%2F%2A&limit=1&nosource=true&showNumPages=true", body)
    serve(server, f"url=a.com%2F%2A{END}", text(*LINES))
    assert answer(server, "a.com/*") == LINES


def test_with_a_limit_no_page_is_asked_for(server: RangeServer) -> None:
    serve(server, "url=a.com%2F%2A&limit=3&nosource=true", text(*LINES))
    assert answer(server, "a.com/*", Query(limit=3)) == LINES[:3]
    assert len(asked(server)) == 1


def test_a_server_that_says_404_has_no_lines_if_it_is_one(server: RangeServer) -> None:
    """Common Crawl's server answers so if nothing is found."""
    with pytest.raises(AbsentError):
        answer(server, "a.com/0")
    serve(server, "url=a.com%2F0&limit=1&nosource=true&showNumPages=true", b"0")
    assert answer(server, "a.com/0") == []
    serve(server, "url=a.com%2F%2A&limit=1&nosource=true&showNumPages=true", b"2")
    server.seen.clear()
    assert answer(server, "a.com/*") == []
    assert sum("showNumPages" in path for path in asked(server)) == 1


@pytest.mark.parametrize(
    "line", [b"<html>", b"com,a)/ x {}", b"com,a)/", b" 2020 {}", b"com,a)/ 202012345678901234 {}"]
)
def test_what_is_no_line_is_an_error(line: bytes, server: RangeServer) -> None:
    serve(server, f"url=a.com%2F0{END}", text(LINES[0], line))
    with pytest.raises(InputError, match=r"/x/cdx: the answer has a line that is no CDX line"):
        answer(server, "a.com/0")


def test_of_a_long_line_that_is_none_the_start_is_told(server: RangeServer) -> None:
    serve(server, f"url=a.com%2F0{END}", text(b"x" * 200))
    with pytest.raises(InputError, match=r"\(b'x{80}'\); give the URL of a CDX server with pywb's API$"):
        answer(server, "a.com/0")


def test_a_url_of_other_bytes_is_asked_for_as_it_is(server: RangeServer) -> None:
    with pytest.raises(AbsentError):
        answer(server, "http://a.com/\udcff")
    assert asked(server)[0] == f"url=http%3A%2F%2Fa.com%2F%FF{END}"


def test_an_invalid_url_is_not_sent(server: RangeServer) -> None:
    with pytest.raises(UsageError, match="not a URL that can be looked up"):
        answer(server, "http://a.com:port/")
    assert server.seen == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cdx+http://h/x", True),
        ("cdx+https://h/x?y", True),
        ("cdx+s3://h/x", False),
        ("http://h/x/cdx", True),
        ("HTTPS://h/x/cdx", True),
        ("http://h/cdx", True),
        ("http://h/CC-MAIN-2020-05-index", True),
        ("http://h/x/cdx/", False),
        ("http://h/x", False),
        ("http://h/x/cdx?url=a", False),
        ("x/cdx", False),
    ],
)
def test_an_endpoint_is_known_by_its_ending(text: str, wanted: bool) -> None:
    assert is_server(text) == wanted


def test_a_collection_is_searched_by_its_endpoint_if_it_is_no_cluster(server: RangeServer) -> None:
    site = server.url
    server.add("/x/cdx?url=example.com&limit=1", b"")
    server.add("/c/cluster.idx", b"")
    server.add("/c/cdx?url=example.com&limit=1", b"")
    assert (
        with_servers(f"{site}/x, local, {site}/c,{site}/none") == f"{site}/x/cdx,local,{site}/c,{site}/none"
    )
    server.seen.clear()
    for name in ("a, b", f"{site}/x/cdx", f"{site}/x.cdxj", f"{site}/x/", f"{site}"):
        assert with_servers(name) == name
    assert with_servers(f"{site}/x") == f"{site}/x/cdx"
    assert server.seen == [], "the first answer is kept"


@pytest.mark.parametrize("status", [401, 403])
def test_a_collection_that_refuses_its_index_is_searched_by_its_endpoint(
    status: int, server: RangeServer
) -> None:
    """A server answers so for a missing file, too."""
    server.add("/x/cluster.idx", b"").statuses = [status] * 99
    server.add("/x/cdx?url=example.com&limit=1", b"").statuses = [status]
    assert with_servers(f"{server.url}/x") == f"{server.url}/x"
    servers._has_endpoint.cache_clear()
    assert with_servers(f"{server.url}/x") == f"{server.url}/x/cdx"


def test_another_dialect_is_refused(server: RangeServer) -> None:
    sources = find_sources("http://h/cdx/search/cdx", None)
    with pytest.raises(
        UsageError, match="its lines have no archives and offsets; give an endpoint of pywb's API"
    ):
        list(lookup_in_sources(sources, ["a.com"], Query()))
