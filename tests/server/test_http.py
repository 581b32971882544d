"""What all endpoints have in common: methods, caches, compression, limits, errors, changes, and the end."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cdx_parameters import NAMES, VALUES

from ..material.cdx_server import COMMAND, CdxServer, cdx_server
from .conftest import MANY, line

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

IANA = "http://www.iana.org/"
ENDPOINTS = [
    "/web/cdx",
    "/web-index",
    "/cdx/search/cdx",
    "/many/cdx/search/cdx",
    "/web",
    "/wayback/available",
]


def test_a_client_that_has_the_answer_gets_304_until_it_changes(server: CdxServer) -> None:
    first = server.ask("/web/cdx", url=IANA)
    same = server.get(f"/web/cdx?url={IANA}", If_None_Match=first.headers["etag"])
    assert server.ask("/web/cdx", url=IANA).headers["etag"] == first.headers["etag"]
    assert (same.status, same.body) == (200, first.body)  # another spelling is another question
    quoted = "/web/cdx?url=http%3A%2F%2Fwww.iana.org%2F"
    answers = [server.get(quoted, If_None_Match=first.headers["etag"]) for _ in range(9)]
    found = [(one.status, one.body) for one in answers]
    anew = found.count((200, first.body))  # by the other worker, which has not opened the collection yet
    assert anew <= 1
    assert found.count((304, b"")) == len(found) - anew
    assert server.get(quoted, If_None_Match='W/"0"').status == 200


def test_answers_are_compressed_if_the_client_can_read_that(server: CdxServer) -> None:
    for url in (MANY, MANY + "same"):
        plain = server.ask("/many/cdx", url=url)
        packed = server.get(f"/many/cdx?url={url}", Accept_Encoding="br, gzip")
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
        assert gzip.decompress(packed.body) == plain.body
        assert len(plain.body) > 1024


def test_methods(server: CdxServer) -> None:
    head = server.get(f"/web/cdx?url={IANA}", "HEAD")
    assert (head.status, head.body, head.headers["content-type"]) == (200, b"", "text/x-cdxj")
    options = server.get("/web/cdx", "OPTIONS")
    assert (options.status, options.headers["access-control-allow-origin"]) == (204, "*")
    refused = server.get("/web/cdx", "POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/web/nope",
        "/web/20140126200624id_/http://www.iana.org/",
        "//",
        "/web/cdx/",
        "/%00",
        "/web-index-index",
    ],
)
def test_other_paths_are_404_because_pywb_would_replay_a_200(server: CdxServer, path: str) -> None:
    assert server.get(path).status == 404


def test_health_metrics_and_the_list_of_collections(server: CdxServer) -> None:
    assert json.loads(server.get("/health").body) == {"status": "ok"}
    server.ask("/web/cdx", url=IANA)
    numbers = re.findall(
        r'^cdxmill_requests_total{endpoint="pywb",status="200"} (\d+)', server.get("/metrics").text, re.M
    )
    assert len(numbers) == 1
    assert int(numbers[0]) >= 1
    listed = json.loads(server.get("/collinfo.json").body)
    assert [one["id"] for one in listed] == ["web", "many"]
    assert listed[0]["cdx-api"] == f"{server.site}/web-index"


def test_the_page_asks_no_other_host(server: CdxServer) -> None:
    for path in ("/", "/page.js", "/page.css"):
        answer = server.get(path)
        assert answer.status == 200
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|url\(|@import""", answer.text)


def test_parameters_of_strangers_never_break_the_server(server: CdxServer) -> None:
    words = st.sampled_from(VALUES) | st.text(max_size=8)

    @settings(max_examples=int(os.environ.get("CDXMILL_EXAMPLES", "300")), deadline=None)
    @given(st.sampled_from(ENDPOINTS), st.lists(st.tuples(st.sampled_from(NAMES), words), max_size=6))
    def check(path: str, given_pairs: list[tuple[str, str]]) -> None:
        from urllib.parse import urlencode

        answer = server.get(f"{path}?{urlencode(given_pairs, errors='surrogatepass')}")
        assert answer.status in (200, 400, 404), (given_pairs, answer.body)
        assert b"internal" not in answer.body.lower()

    check()


@pytest.mark.parametrize("mode", ["rewrite", "overlay"])
def test_a_change_is_seen_without_a_restart(run_cdxmill: RunCdxmill, tmp_path: Path, mode: str) -> None:
    (tmp_path / "one.cdxj").write_text(line("example,many)/", "20200101000000"))
    (tmp_path / "two.cdxj").write_text(line("example,many)/", "20210101000000"))
    run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "c", tmp_path / "one.cdxj")
    with cdx_server(tmp_path / "c") as server:
        for _ in range(4):  # so that its text and the answer are kept in memory
            first = server.ask("/c/cdx", url=MANY)
            assert first.body.count(b"\n") == 1
            assert int(first.headers["content-length"]) == len(first.body)
        added = run_cdxmill("add", "-q", "--mode", mode, "--cdx", tmp_path / "c", tmp_path / "two.cdxj")
        assert added.returncode == 0
        second = server.ask("/c/cdx", url=MANY)
        assert second.body.count(b"\n") == 2
        assert second.headers["etag"] != first.headers["etag"]
        arguments = ("-q", "-s", "1", "--replace", "-o", tmp_path / "c", tmp_path / "two.cdxj")
        assert run_cdxmill("zipnum", *arguments).returncode == 0
        for _ in range(3):
            assert server.ask("/c/cdx", url=MANY).body == (tmp_path / "two.cdxj").read_bytes()
        assert server.stop()[0] == 0


def test_each_client_gets_timemaps_with_the_address_that_it_knows(server: CdxServer) -> None:
    for host in ("one.example", "two.example") * 3:
        found = server.get(f"/many/timemap/link/{MANY}same", Host=host)
        assert f"<http://{host}/many/timemap/link/{MANY}same>" in found.text


def test_the_head_of_an_answer_that_is_kept_has_no_body(server: CdxServer) -> None:
    path = f"/many/cdx?url={MANY}same&fl=digest"
    answers = [server.get(path) for _ in range(4)]
    assert len({one.body for one in answers}) == 1
    assert len({one.headers["content-type"] for one in answers}) == 1
    head = server.get(path, "HEAD")
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", answers[0].headers["etag"])
    assert server.get(path).body == answers[0].body


def test_a_damaged_block_in_the_middle_breaks_the_connection(many_cluster: Path, tmp_path: Path) -> None:
    cluster = tmp_path / "c"
    shutil.copytree(many_cluster, cluster)
    shard = next(cluster.glob("cdx-*.gz"))
    data = bytearray(shard.read_bytes())
    data[len(data) * 3 // 4] ^= 0xFF
    shard.write_bytes(data)
    with cdx_server(cluster) as server:
        with pytest.raises(http.client.IncompleteRead):
            server.ask("/c/cdx", url="*")
        with pytest.raises(ConnectionResetError):
            ask_with_http_1_0(server, "/c/cdx?url=*")
        assert server.ask("/c/cdx", url=MANY, limit=5).status == 200
        status, said = server.stop()
    assert status == 0
    assert said.count("the answer is broken off") == 2
    assert "Traceback" not in said


@pytest.mark.parametrize("is_missing", [False, True])
def test_an_error_shows_no_path_to_clients_and_all_to_the_operator(
    many_cluster: Path, tmp_path: Path, is_missing: bool
) -> None:
    cluster = tmp_path / "c"
    shutil.copytree(many_cluster, cluster)
    (cluster / "cluster.loc").unlink()  # it names the shards of the other one
    [shard] = cluster.glob("cdx-*.gz")
    data = shard.read_bytes()
    shard.unlink()
    if not is_missing:
        shard.write_bytes(bytes(len(data)))
    with cdx_server(f"web={cluster}") as server:
        for path in ("/web/cdx", "/web", "/cdx/search/cdx", "/web-index", "/web/available"):
            answer = server.ask(path, url=MANY + "same")
            assert answer.status == 500
            assert b"messages of the server" in answer.body
            assert str(tmp_path).encode() not in answer.body
        _, said = server.stop()
    assert said.count("same: ") == 5
    assert f"{tmp_path}" in said


def ask_with_http_1_0(server: CdxServer, target: str) -> tuple[bytes, bytes]:
    """The header and the body of an answer, which ends with its connection."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(f"GET {target} HTTP/1.0\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            header, _, body = answer.read().partition(b"\r\n\r\n")
    return header.lower(), body


def test_a_client_with_http_1_0_gets_no_chunks(server: CdxServer) -> None:
    for query, has_length in (("url=*", False), (f"url={MANY}same", True)):
        header, body = ask_with_http_1_0(server, f"/many/cdx?{query}")
        assert body == server.get(f"/many/cdx?{query}").body
        assert (b"transfer-encoding" in header, b"content-length" in header) == (False, has_length)
        assert b"connection: close" in header


def test_a_client_is_limited_and_told_when_to_come_back(many_cluster: Path) -> None:
    with cdx_server(many_cluster, "--rate", 1, "--workers", 2) as server:
        found = [server.ask("/many/cdx", url=MANY, limit=1) for _ in range(15)]
        assert [one.status for one in found[:10]] == [200] * 10
        refused = [one for one in found if one.status == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert server.get("/health").status == 200


def test_the_log_has_a_line_for_each_request(many_cluster: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with cdx_server(many_cluster, "--log", log) as server:
        server.ask("/many/cdx", url=MANY, limit=1)
        server.get('/nope?"%0a')
        server.stop()
    lines = log.read_text().splitlines()
    assert len(lines) == 2
    assert re.fullmatch(
        r'127\.0\.0\.1 - - \[[^]]+\] "GET /many/cdx\?url=http%3A%2F%2Fmany.example%2F&limit=1 HTTP/1.1" 200 \d+ \d\.\d+',
        lines[0],
    )
    assert '"GET /nope?%22%0a HTTP/1.1" 404' in lines[1]


def test_rules_are_read_again_without_a_lost_request(many_cluster: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.aclj"
    rules.write_text('example,other)/ - {"access": "exclude"}\n')
    with cdx_server(many_cluster, "--access", rules) as server:
        assert server.ask("/many-index", url=MANY, limit=1).status == 200
        rules.write_text('example,many)/ - {"access": "exclude"}\n')
        server.process.send_signal(signal.SIGHUP)
        for _ in range(100_000):
            if (status := server.ask("/many-index", url=MANY, limit=1).status) != 200:
                break
        assert status == 404
        assert server.stop()[0] == 0


def test_a_request_that_is_too_long_is_not_kept(server: CdxServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection, pytest.raises(OSError):
        for _ in range(1000):
            connection.sendall(b"GET / HTTP/1.1\r\n" if _ == 0 else b"X-Long: " + b"x" * 1000 + b"\r\n")
            if _ > 200 and not connection.recv(1):
                raise ConnectionResetError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere"),
        (["many", "many"], "two collections are named many; give them names: NAME=many"),
        (["cdx=many"], "'cdx' cannot be the name of a collection"),
        (["odd name"], "'odd name' cannot be the name of a collection; give one: NAME=odd name"),
        (["many", "--access", "no.aclj"], "no.aclj"),
        (["many", "--access", "bad.aclj"], "line 1 is no access rule"),
        (["many", "--embargo", "soon"], "invalid embargo 'soon'"),
        (["many", "--log", "no/log"], "no/log: the log cannot be written"),
        (["many", "--port", "{taken}"], "choose another --port or --bind"),
    ],
)
def test_what_cannot_be_served_is_said_at_the_start(
    many_cluster: Path,
    tmp_path: Path,
    run_cdxmill: RunCdxmill,
    arguments: list[str],
    message: str,
    server: CdxServer,
) -> None:
    for name in ("many", "odd name"):
        (tmp_path / name).symlink_to(many_cluster)
    (tmp_path / "bad.aclj").write_text("example,many)/ - exclude\n")
    given_arguments = [one.format(taken=server.port) for one in arguments]
    done: Any = run_cdxmill("cdx-server", *given_arguments, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr.decode()
    assert COMMAND.exists()


def test_the_head_of_an_answer_comes_with_its_body(server: CdxServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(f"GET /web/cdx?url={IANA}&limit=1 HTTP/1.1\r\nHost: a.example\r\n\r\n".encode())
        first = connection.recv(1 << 16)
    assert first.endswith(server.ask("/web/cdx", url=IANA, limit=1).body)


class Received(io.BytesIO):
    """The bytes of several responses, which `http.client` reads one after the other."""

    def makefile(self, mode: str) -> Received:
        """The file of the next response."""
        return self

    def close(self) -> None:
        """Stay open for the next response."""


def test_requests_that_come_together_are_answered_in_their_order(server: CdxServer) -> None:
    targets = [
        f"/web/cdx?url={IANA}&limit=1",  # at once
        "/many/cdx?url=*",  # in a thread, in many slices
        *(f"/many/cdx?url={MANY}same&limit={number % 5 + 1}" for number in range(400)),
        "/web/cdx?url=*&showNumPages=true",
    ]
    requests = [f"GET {target} HTTP/1.1\r\nHost: a.example\r\n" for target in targets]
    requests[-1] += "Connection: close\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall("".join(f"{one}\r\n" for one in requests).encode())
        with connection.makefile("rb") as answers:
            received = Received(answers.read())
    for target in targets:
        response = http.client.HTTPResponse(cast("socket.socket", received))
        response.begin()
        assert response.read() == server.get(target).body


def test_a_worker_that_ends_while_its_parent_waits_for_its_answer_is_seen(
    many_cluster: Path, tmp_path: Path
) -> None:
    """A worker answers its parent within a minute, or is replaced. One that is gone must not take this minute."""
    script = tmp_path / "served.py"
    script.write_text(
        "import os, sys\nfrom uvicorn.supervisors.multiprocess import Process\nfrom cdxmill.cli.main import main\n"
        "def pong(worker):\n    worker.child_conn.recv()\n    os._exit(3)\n"
        "Process.pong = pong\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    command = [sys.executable, str(script), "cdx-server", str(many_cluster), "--port", "0"]
    done = subprocess.run(command, capture_output=True, timeout=40)
    assert done.returncode == 3, done.stderr


def test_a_worker_that_cannot_start_ends_the_server_in_one_line(many_cluster: Path, tmp_path: Path) -> None:
    """The cluster goes after it was checked."""
    shutil.copytree(many_cluster, tmp_path / "c")
    code = (
        "import os, sys\nfrom cdxmill.server import start\nfrom cdxmill.cli.main import main\n"
        "check = start._check\n"
        "def checked(*asked):\n    check(*asked)\n    os.rename('c', 'gone')\n"
        "start._check = checked\nsys.argv = ['cdxmill', 'cdx-server', 'c', '--port', '0']\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 3, done.stderr
    _, why, last = done.stderr.decode().splitlines()
    assert why.startswith("c: ")
    assert last == "cdxmill: the server could not start; see the messages above"
