"""`cdxmill lookup http://server/NAME`: the answers of the server's cluster."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cdxmill

from .conftest import MANY

if TYPE_CHECKING:
    from tests.conftest import Cluster, RunCdxmill
    from tests.material.cdx_server import CdxServer

ENDPOINTS = ["{site}/many", "{site}/many/cdx", "{site}/many-index", "cdx+{site}/many/cdx"]
QUESTIONS = [
    [MANY],
    [MANY + "same"],
    ["*.example"],
    [MANY + "*", "--limit", "7"],
    [MANY, "--limit", "7"],
    ["many.example/*", "--from", "202001010110", "--to", "202001010111"],
    ["*", "--filter", "=timestamp:20200101000000", "--filter", "!~digest:0.*"],
    [MANY + "*", "--collapse", "11", "--limit", "3"],
    [MANY + "*", "--sort", "reverse", "--limit", "3"],
    [MANY, "--closest", "20200101003000", "--limit", "3"],
    [MANY + "same", "--resolve-revisits", "--output", "json"],
    ["*", "--count"],
    ["http://absent.example/"],
    ["absent.example/*"],
    ["absent.example/*", "--limit", "3"],
]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_server_answers_as_its_cluster_does(
    server: CdxServer, many_cluster: Path, run_cdxmill: RunCdxmill, question: list[str]
) -> None:
    own = run_cdxmill("lookup", many_cluster, *question)
    assert (own.returncode, bool(own.stdout)) == (0, not question[0].count("absent"))
    endpoints = ENDPOINTS if question[0] in ("*.example", "http://absent.example/") else ENDPOINTS[2:3]
    for endpoint in endpoints:
        asked = run_cdxmill("lookup", endpoint.format(site=server.site), *question)
        assert (asked.returncode, asked.stdout, asked.stderr) == (0, own.stdout, own.stderr), endpoint


def test_from_python_with_a_cluster_and_many_urls(
    server: CdxServer, samples_cluster: Cluster, many_cluster: Path
) -> None:
    both = f"{server.site}/web,{many_cluster}"
    whole = list(cdxmill.lookup(f"{samples_cluster.directory},{many_cluster}", "*"))
    assert list(cdxmill.lookup(both, "*")) == whole
    urls = ["http://www.iana.org/", MANY + "same", "http://absent.example/"]
    found = dict(cdxmill.lookup_many(f"{server.site}/web-index,{many_cluster}", urls))
    assert [len(found[url]) for url in urls] == [3, 5, 0]


@pytest.fixture
def other_server() -> Iterator[str]:
    """A server that answers everything with a page, and /none-index with 404."""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if self.path.startswith("/none") else 200)
            self.send_header("Content-Length", "15")
            self.end_headers()
            self.wfile.write(b"<html>\n</html>\n")

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("place", "question", "status", "message"),
    [
        ("{site}/nope", MANY, 2, "not a ZipNum cluster"),
        ("{site}/nope-index", MANY, 1, "cannot be read (404 Not Found)"),
        ("{site}/cdx/search/cdx", MANY, 2, "its lines have no archives and offsets"),
        ("{site}/many/cdx", MANY + " --page 1", 2, "only clusters have pages"),
        ("{site}/many/cdx", MANY + " --filter ~url:(?=x)", 1, "without lookaround"),
        ("{other}/web/cdx", MANY, 1, "the answer has a line that is no CDX line (b'<html>')"),
        ("{other}/web/cdx", "*", 1, "the answer has a line that is no CDX line (b'<html>')"),
        ("{other}/none-index", MANY, 1, "cannot be read (404"),
    ],
)
def test_what_is_no_such_server_is_reported(
    server: CdxServer,
    other_server: str,
    run_cdxmill: RunCdxmill,
    place: str,
    question: str,
    status: int,
    message: str,
) -> None:
    named = place.format(site=server.site, other=other_server)
    done = run_cdxmill("lookup", named, *question.split(" "))
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()
