"""`cdxmill serve`: it configures and starts pywb, which shows the pages of the cluster in a browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bench.browser import dump_dom, find_chromium, screenshot
from cdxmill.commands.clusters.next_step import example_page
from cdxmill.commands.clusters.serve import _LOADERS, _RESOLVER

from ..material.wacz_files import make_wacz
from .conftest import enter_private_network

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

COMMAND = Path(sys.executable).parent / "cdxmill"


@pytest.fixture(scope="module")
def served(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory, run_cdxmill: RunCdxmill) -> Path:
    """A cluster with archives that pywb alone cannot read: Zstandard, and gzip in a WACZ. YAML would misread a name."""
    directory = tmp_path_factory.mktemp("serve")
    odd = directory / 'it\'s a "folder": # & \\1 ä😀\x7f\u2028'
    odd.mkdir()
    done = run_cdxmill("recompress", "-q", "-o", odd, pywb_warcs / "iana.warc.gz")
    assert done.returncode == 0, done.stderr
    wacz = directory / "example.wacz"
    wacz.write_bytes(make_wacz({"archive/example2.warc.gz": (pywb_warcs / "example2.warc.gz").read_bytes()}))
    done = run_cdxmill("build", "-s", "2", "-o", odd / "C", odd, wacz)
    assert done.returncode == 0, done.stderr
    return odd / "C"


@pytest.fixture
def network() -> Iterator[ThreadPoolExecutor]:
    """A thread with a network of its own: what its processes show comes from the archives."""
    with ThreadPoolExecutor(1, initializer=enter_private_network) as executor:
        yield executor


class Server:
    """A running `cdxmill serve`. `url` is the page that it says to open."""

    def __init__(self, cluster: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "serve", cluster, "--port", "0", *options],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.messages = ""
        for line in self.process.stderr:
            self.messages += line
            if line.startswith("or "):
                break
        found = re.search(r"^open (\S+)$", self.messages, re.M)
        assert found, self.messages
        self.url = found[1]
        self.site = self.url.partition("/web/")[0]

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.site + path, timeout=30) as answer:
            return str(answer.read().decode())

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit status, and what was printed since the start."""
        self.process.send_signal(number)
        _, rest = self.process.communicate(timeout=60)
        return self.process.returncode, rest


def test_a_browser_shows_the_page_that_serve_says_to_open(
    served: Path, network: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """pywb shows the page in a frame. Set CDXMILL_SCREENSHOT to a file to get the picture for the docs."""
    chromium = find_chromium()
    picture = Path(os.environ.get("CDXMILL_SCREENSHOT") or tmp_path / "page.png")

    def browse() -> tuple[str, str, str]:
        server = Server(served)
        try:
            framed = f"{server.site}/web/20140126200624mp_/http://www.iana.org/"
            screenshot(chromium, framed.replace("mp_", ""), picture, tmp_path)
            return server.url, dump_dom(chromium, server.url, tmp_path), dump_dom(chromium, framed, tmp_path)
        finally:
            server.stop()

    url, frame, page = network.submit(browse).result()
    assert url.endswith("/web/http://example.com/")
    assert f'src="{url.replace("/web/", "/web/mp_/")}' in frame
    assert "Internet Assigned Numbers Authority" in page
    assert 'href="http://127.0.0.1:' in page
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_server_too(served: Path, number: int, status: int) -> None:
    server = Server(served, "--title", 'a "title": # \\1')
    assert 'a "title": # \\1' in server.get("/web/")
    assert server.get("/web/cdx?url=http://www.iana.org/").startswith("org,iana)/ 20140126200624 ")
    assert "Example Domain" in server.get("/web/2020id_/http://example.com/")
    code, rest = server.stop(number)
    assert (code, "Traceback" in rest) == (status, False)
    with pytest.raises(OSError, match="refused"):
        server.get("/")


def test_a_moved_cluster_is_served_from_where_it_is(served: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(served, tmp_path / "D\\1")
    (moved / "cluster.loc").write_text("cdx-00000.gz\t/gone/cdx-00000.gz\n")
    server = Server(moved)
    assert "Example Domain" in server.get("/web/2020id_/http://example.com/")
    server.stop()


def test_the_end_of_pywb_is_the_end_of_serve(served: Path) -> None:
    server = Server(served)
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    server.process.communicate(timeout=60)
    assert server.process.returncode == 128 + signal.SIGKILL


def test_a_taken_port_is_reported_in_one_line(served: Path, run_cdxmill: RunCdxmill) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_cdxmill("serve", served, "--port", str(port))
    message = f"cdxmill: cannot listen on 127.0.0.1 port {port} (Address already in use); choose another --port or --bind\n"
    assert (done.returncode, done.stderr.decode()) == (2, message)


def test_an_address_of_another_machine_is_reported_in_one_line(served: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("serve", served, "--port", "0", "--bind", "192.0.2.1")
    assert done.returncode == 2
    assert done.stderr.startswith(b"cdxmill: cannot listen on 192.0.2.1 port 0 (")


def serve_beside(served: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run `serve` as if this Python were in `directory`. The wayback on the PATH may have no cdxmill."""
    code = (
        "import sys; sys.executable = sys.argv[2] + '/python'; from cdxmill.cli.main import main;"
        "sys.exit(main(['serve', sys.argv[1], '--port', '0']))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, served, directory],
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_pywb_serve_says_what_to_install(served: Path, tmp_path: Path) -> None:
    done = serve_beside(served, tmp_path)
    message = "cdxmill: pywb is not installed with cdxmill (no command wayback); pip install './cdxmill[serve]', with a checkout in ./cdxmill\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_a_pywb_that_does_not_start_is_reported(served: Path, tmp_path: Path) -> None:
    (tmp_path / "wayback").write_text("#!/bin/sh\necho no gevent >&2\nexit 5\n")
    (tmp_path / "wayback").chmod(0o755)
    done = serve_beside(served, tmp_path)
    message = "no gevent\ncdxmill: wayback did not start (exit status 5); see its messages above\n"
    assert (done.returncode, done.stderr) == (3, message)


def read_config(directory: Path) -> Any:
    """The configuration; in place of the resolver its arguments after pywb's loaders."""
    text = (directory / "config.yaml").read_text().replace(f"{_RESOLVER} [{_LOADERS}, ", "[")
    return yaml.safe_load(text)


def test_the_configuration_is_written_but_never_overwritten(
    served: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    directory = tmp_path / "conf"
    for _ in range(2):
        done = run_cdxmill("serve", served, "--config-only", directory)
        assert done.returncode == 0, done.stderr
    config = read_config(directory)
    web = config["collections"]["web"]
    assert (web["index"]["path"], web["archive_paths"]) == (f"{served}/cluster.idx", [[str(served), None]])
    assert (config["enable_auto_colls"], web["metadata"]) == (False, {"title": "C"})
    (directory / "config.yaml").write_text("mine")
    done = run_cdxmill("serve", served, "--config-only", directory)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"cdxmill: {directory}/config.yaml: already exists; use --replace")
    assert (directory / "config.yaml").read_text() == "mine"
    done = run_cdxmill("serve", served, "--config-only", directory, "--replace", "--archives", served.parent)
    assert done.returncode == 0
    paths = read_config(directory)["collections"]["web"]["archive_paths"]
    assert paths == [[str(served), str(served.parent)]]


def test_the_url_of_a_file_is_its_path(served: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("serve", served.as_uri(), "--config-only", tmp_path)
    assert done.returncode == 0, done.stderr
    web = read_config(tmp_path)["collections"]["web"]
    assert (web["index"]["path"], web["archive_paths"]) == (f"{served}/cluster.idx", [[str(served), None]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["https://host/C"],
            "https://host/C: pywb reads the index of a local cluster only; download the cluster",
        ),
        (["s3://bucket/C"], "cdxmill publish --index-only s3://bucket/C DIRECTORY"),
        (["absent"], "absent: not a ZipNum cluster (no such file or directory); check the path"),
        (["C"], "C: has no archives.tsv; use --archives LOCATION"),
        (
            ["C", "--archives", "absent"],
            "absent: neither a directory of archives, nor a WACZ, nor a path index; check the path",
        ),
        (["C", "--replace"], "--replace needs --config-only"),
        (["C", "--archives", ".", "--config-only", "C/cluster.idx"], "C/cluster.idx: is not a directory"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    arguments: list[str], message: str, served: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    shutil.copytree(served, tmp_path / "C")
    (tmp_path / "C/archives.tsv").unlink()
    done = run_cdxmill("serve", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert message in done.stderr.decode()


def test_the_page_to_open_is_the_shortest_url_of_a_page(served: Path) -> None:
    assert example_page(str(served)) == "http://example.com/"
