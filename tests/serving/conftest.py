"""The real pywb server, started on a cluster that `cdxmill build` made."""

from __future__ import annotations

import ctypes
import fcntl
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import pytest
import yaml

from cdxmill.commands.collections import watch

from ..material.clock import Clock

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, Cluster

CLONE_NEWNET = 0x40000000  # <linux/sched.h>
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1  # <linux/sockios.h>, <net/if.h>
START_SECONDS = 60

# Beside pywb's own: WARC of many hosts, ARC with subdomains and dns records, a plain WARC.
FROM_SAMPLES = [
    "ukwa+webarchive-test-suite/wikipedia-sopa-blackout-2012/wikipedia-post-blackout/post-blackout.warc.gz",
    "netarchivesuite+jwat/jwat-arc/src/test/resources/IAH-20080430204825-00000-blackbook.arc.gz",
    "iipc+webarchive-commons/src/test/resources/org/archive/format/warc/IAH-urls-wget.warc",
]


class Answer(NamedTuple):
    """A response as it was received; redirects are not followed."""

    status: int
    headers: dict[str, str]
    body: bytes


def enter_private_network() -> None:
    """Give the calling thread, and the processes it starts, a network with only a loopback device.

    So everything that is served comes from the archives. This needs root (or CAP_SYS_ADMIN);
    without it the thread stays in the machine's network.
    """
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


class Wayback:
    """A running `wayback`. One thread starts it and sends all requests, because the network belongs to that thread."""

    def __init__(self, directory: Path, network: ThreadPoolExecutor | None = None) -> None:
        self._directory = directory
        self._log = directory / "wayback.log"
        self._network = network or ThreadPoolExecutor(1, initializer=enter_private_network)
        self._process = self._network.submit(self._start).result()

    def get(self, path: str) -> Answer:
        """Request a path of the server. It starts with a slash."""
        return self._network.submit(self._get, path).result()

    def cdx(self, collection: str = "web", **params: object) -> bytes:
        """The answer of a collection to a query of the CDX API, by default without the names of pywb's sources."""
        answer = self.get(f"/{collection}/cdx?" + urlencode({"nosource": "true", **params}, doseq=True))
        assert answer.status == 200, answer
        return answer.body

    def run(self, ask: Callable[[str], Any]) -> Any:
        """What `ask` gives for the address of the server, in its network."""
        return self._network.submit(ask, f"http://127.0.0.1:{self._port}").result()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._network.shutdown()

    def _start(self) -> subprocess.Popen[bytes]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        wayback = Path(sys.executable).parent / "wayback"
        options = ["-b", "127.0.0.1", "-p", str(self._port)]
        with self._log.open("wb") as log:
            process = subprocess.Popen([wayback, "-d", self._directory, *options], stdout=log, stderr=log)
        self._wait_until_up(process)
        return process

    def _wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        give_up = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < give_up:
            try:
                self._get("/")
            except ConnectionRefusedError:
                time.sleep(0.1)
            else:
                return
        process.kill()
        process.wait()
        raise RuntimeError(f"wayback did not start: {self._log.read_text()}")

    def _get(self, path: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The time of `serve --watch`, which a test sets."""
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(watch, "time", clock)
        yield clock


@pytest.fixture(scope="session")
def served_archives(samples: Path, pywb_archives: list[Path]) -> list[Path]:
    return [*pywb_archives, *(samples / name for name in FROM_SAMPLES)]


@pytest.fixture(scope="session")
def cluster(
    build_cluster: BuildCluster, served_archives: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Cluster:
    """A cluster of small blocks, which give several pages, in 4 shards."""
    return build_cluster(
        tmp_path_factory.mktemp("served") / "cluster", served_archives, 4, "--numlines", "10"
    )


def fill_in(sample: str, index_directory: Path, archives: list[Path]) -> str:
    """The sample configuration with its two paths replaced. The archives are in several folders."""
    directories = sorted({path.parent for path in archives})
    archive_paths = "".join(f"      - '{directory}/'\n" for directory in directories)
    return sample.replace("/data/cluster", str(index_directory)).replace(
        "      - '/data/warcs/'\n", archive_paths, 1
    )


def spelled_out(sample: str) -> str:
    """The collection in a comment of the sample configuration, as YAML."""
    _, _, commented = sample.partition("  # web:\n")
    return "".join(line.removeprefix("  # ") for line in commented.splitlines(keepends=True))


@pytest.fixture(scope="session")
def pywb_directory(
    root: Path, cluster: Cluster, served_archives: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """conf/pywb/config.yaml as the collection `web`, and two more collections of the same lines.

    `index-moved`: cluster.idx and cluster.loc in a folder of their own. `shards-moved`: the form that
    the sample spells out in a comment; the index without a loc file, the shards in another folder.
    """
    directory, moved, shards = (tmp_path_factory.mktemp(name) for name in ("pywb", "moved", "shards"))
    for name in ("cluster.idx", "cluster.loc"):
        shutil.copy(cluster.directory / name, moved)
    for shard in cluster.directory.glob("cdx-*.gz"):
        shutil.copy(shard, shards)
    sample = (root / "conf/pywb/config.yaml").read_text()
    web = fill_in(sample, cluster.directory, served_archives)
    more = yaml.safe_load(fill_in(sample, moved, served_archives))["collections"]["web"]
    apart = yaml.safe_load(spelled_out(sample))
    apart["index"]["path"] = str(
        shutil.copy(cluster.directory / "cluster.idx", tmp_path_factory.mktemp("index"))
    )
    apart["index"]["shard_index_loc"]["replace"] = f"{shards}/"
    (directory / "config.yaml").write_text(
        f"{web}\n  index-moved: {json.dumps(more)}\n  shards-moved: {json.dumps(apart)}\n"
    )
    return directory


@pytest.fixture(scope="session")
def wayback(pywb_directory: Path) -> Iterator[Wayback]:
    server = Wayback(pywb_directory)
    try:
        yield server
    finally:
        server.stop()
