"""A cluster of known lines, in a directory and on a web server that counts requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.running.failures import Failures
from cdxmill.storage import patience

from ..material.cdx_files import write_plain
from ..storage.range_server import RangeServer, serving

PAGES = 400
HOSTS = ("a.com", "b.com", "c.org")


def line_of(host: str, page: int, day: int = 1) -> bytes:
    """The capture of a page; a page in ten was not found."""
    key = ",".join(reversed(host.split(".")))
    status = 404 if page % 10 == 0 else 200
    return (
        f'{key})/page/{page:04d} 202001{day:02d}000000 {{"url": "http://{host}/page/{page:04d}", "status": "{status}"}}'
    ).encode()


def lines_of(host: str) -> list[bytes]:
    return [line_of(host, page, day) for page in range(PAGES) for day in (1, 2)]


ALL = sorted(line for host in HOSTS for line in lines_of(host))


class Remote(NamedTuple):
    """A cluster behind a web server."""

    server: RangeServer
    url: str

    def reads(self, ending: str = ".gz") -> list[str]:
        """The ranges that were asked of files whose names end so, in order, since last time."""
        found = [
            f"{path.rpartition('/')[2]} {wanted}"
            for _, path, wanted in self.server.seen
            if path.endswith(ending)
        ]
        self.server.seen.clear()
        return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """3 shards, blocks of 20 lines."""
    path = write_plain(tmp_path / "a.cdxj", ALL)
    build_cluster(
        [str(path)], tmp_path / "C", ZipnumOptions(shards=3, block_lines=20, quiet=True), Failures()
    )
    return tmp_path / "C"


@pytest.fixture
def remote(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """What is published of `folder`: the index and the shards."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    with serving() as server:
        for path in (directory / "cluster.idx", *directory.glob("cdx-*.gz")):
            server.add(f"/c/{path.name}", path.read_bytes())
        yield Remote(server, f"{server.url}/c")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
