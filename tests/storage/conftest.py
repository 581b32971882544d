"""Servers on loopback: a web server that fails on request, and moto's S3. A third is in name_node.py."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from cdxmill.storage import hosts, patience, s3
from cdxmill.storage.hadoop import hdfs
from cdxmill.storage.location import locate
from cdxmill.storage.walk import files_below
from cdxmill.storage.web import connections

from ..material.background import in_background
from ..material.clock import Clock
from .name_node import name_node
from .range_server import RangeServer, Served, serving
from .web_file import BODY, A


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy, credentials or Hadoop settings of the user who runs the tests, and new clients."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):  # the tests of Spark set one for all their tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME", "CDXMILL_WEBHDFS"):
        monkeypatch.delenv(name, raising=False)
    for made in (s3._client, hdfs._client, connections._manager):
        made.cache_clear()
    hosts.begin_run()
    yield
    for made in (s3._client, hdfs._client, connections._manager):
        made.cache_clear()


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def down() -> Iterator[str]:
    """The URL of a port that is taken, and on which nobody listens: each connection is refused."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{port.getsockname()[1]}"


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of a port on which no connection is made: its queue is full."""
    with socket.socket() as port, ExitStack() as waiting:
        port.bind(("127.0.0.1", 0))
        port.listen(0)
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(port.getsockname())
        yield f"http://127.0.0.1:{port.getsockname()[1]}"


@pytest.fixture
def file(server: RangeServer) -> Served:
    return server.add(A, BODY)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and renamed, in order."""
    made: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        made.append("sync file" if path.is_file() else f"sync {path.name}/")
        fsync(handle)

    def note_rename(path: Path, target: Path) -> Path:
        made.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_rename)
    return made


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make waits between tries short."""
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries in seconds; none is really waited for."""
    seconds: list[float] = []
    for module in (patience, hosts):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=seconds.append, monotonic=time.monotonic))
    return seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of all waits, which stands until it is set. Nothing is known of servers."""
    standing = Clock()
    for module in (patience, hosts):
        monkeypatch.setattr(module, "time", standing)
    monkeypatch.setattr(hosts, "_tables", [])
    return standing


class QuickHandler(MotoRequestHandler):
    """Keeps connections open and writes no log: a third of the time of a request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """moto's S3 over HTTP. It alone: for all services, each request would be searched for its own."""
    app = create_backend_app("s3")
    with in_background(
        lambda: make_server("127.0.0.1", 0, app, threaded=True, request_handler=QuickHandler)
    ) as running:
        yield f"http://127.0.0.1:{running.port}"


@pytest.fixture(params=["s3", "hdfs"])
def elsewhere(
    request: pytest.FixtureRequest, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of a folder that is empty, for this process and those that it starts."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="elsewhere")
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        place = "s3://elsewhere/out" if request.param == "s3" else "hdfs:///out"
        yield place
        for url in files_below(place).files:
            locate(url).remove()
