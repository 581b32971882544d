"""`copy` to and from S3 and HDFS; `bin/remote_copy` with the options that its users know."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main
from cdxmill.storage.location import Location, join, locate

from ..conftest import RunCdxmill
from ..material.crawls import CRAWLS, HOSTS, PAGES, make_crawls
from .name_node import NameNode, name_node

REMOTE_COPY = Path(__file__).resolve().parents[2] / "bin/remote_copy"
CRAWL = CRAWLS[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make_crawls(tmp_path_factory.mktemp("crawls"))


@pytest.fixture
def bucket(moto_url: str, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> Any:
    """A client of moto. The bucket `crawls` has all crawls, the bucket `mine` is empty."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("CDXMILL_COMMONCRAWL", "s3://crawls")
    client: Any = boto3.client("s3", region_name="us-east-1")
    for name in ("crawls", "mine"):
        client.create_bucket(Bucket=name)
        for item in client.list_objects_v2(Bucket=name).get("Contents", ()):
            client.delete_object(Bucket=name, Key=item["Key"])
    for path, body in files.items():
        client.put_object(Bucket="crawls", Key=path[1:], Body=body)
    return client


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running


def pages_of(directory: str) -> int:
    """The number of pages in the archives of a copy; its files are complete."""
    names = sorted(locate(directory).entries())
    assert [name.rpartition("-")[2] for name in names] == ["00000.cdxj", "00000.tsv", "00000.warc.gz"]
    lines = locate(join(directory, names[0])).read_bytes().splitlines()
    assert len(lines) == len(locate(join(directory, names[1])).read_bytes().splitlines()) - 1
    pages = gzip.decompress(locate(join(directory, names[2])).read_bytes()).count(b"<p>")
    assert pages == len(lines)
    return pages


def test_captures_are_copied_from_s3_to_s3_and_once(bucket: Any, run_cdxmill: RunCdxmill) -> None:
    call = ("copy", "-o", "s3://mine/all/example", CRAWL, "*.example.com")
    done = run_cdxmill(*call)
    assert done.returncode == 0, done.stderr
    assert pages_of("s3://mine/all/example") == 2 * PAGES
    again = run_cdxmill(*call)
    assert (again.returncode, b"12 captures already there; 0 requests" in again.stderr) == (0, True)
    assert pages_of("s3://mine/all/example") == 2 * PAGES


def test_a_list_of_a_copy_is_read_once(
    bucket: Any, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["copy", "-q", "-o", "s3://mine/once/example", CRAWL, "*.example.com"]
    assert run_cdxmill(*call).returncode == 0
    read, read_bytes = [], Location.read_bytes

    def noted(place: Location) -> bytes:
        read.append(place.name)
        return read_bytes(place)

    monkeypatch.setattr(Location, "read_bytes", noted)
    assert main(call) == 0
    assert read.count("example-00000.tsv") == 1


def test_a_second_run_beside_it_is_refused_on_s3(
    bucket: Any, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("copy", "-q", "-o", "s3://mine/held", CRAWL, "*.example.com")
    lock = {"run": "x", "process": os.getpid(), "host": socket.gethostname(), "since": "now"}

    def held(**changed: object) -> None:
        data = json.dumps({**lock, "renewed": time.time(), **changed}).encode()
        bucket.put_object(Bucket="mine", Key="held/.lock", Body=data)

    for other in ({}, {"host": "elsewhere", "process": 1}):
        held(**other)
        refused = run_cdxmill(*call)
        assert refused.returncode == 2
        assert b"another run writes to this directory (process " in refused.stderr
        assert list(locate("s3://mine/held").entries()) == [".lock"]
    held(process=2**22 + 1)  # was killed, on this machine
    assert run_cdxmill(*call).returncode == 0
    held(host="elsewhere", renewed=time.time() - 7200)
    assert run_cdxmill(*call).returncode == 0
    assert pages_of("s3://mine/held") == 2 * PAGES


def test_captures_are_copied_to_hdfs(bucket: Any, node: NameNode, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("copy", "-q", "-o", "hdfs:///copies/example", CRAWL, "*.example.com")
    assert (done.returncode, done.stderr) == (0, b"")
    assert pages_of("hdfs:///copies/example") == 2 * PAGES


def test_captures_are_copied_from_hdfs(
    files: dict[str, bytes], node: NameNode, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    for path, body in files.items():
        if CRAWL in path:
            with locate(f"hdfs://{path}").write_atomic() as file:
                file.write(body)
    index = f"hdfs:///cc-index/collections/{CRAWL}/indexes"
    done = run_cdxmill("copy", "-q", "-o", tmp_path / "out", "--archives", "hdfs:///", index, "*.example.com")
    assert (done.returncode, done.stderr) == (0, b"")
    assert pages_of(str(tmp_path / "out")) == 2 * PAGES


def remote_copy(*words: str | Path) -> subprocess.CompletedProcess[str]:
    call: list[str | Path] = [sys.executable, REMOTE_COPY, *words, "--index", CRAWL]
    return subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ)


def test_remote_copy_checks_and_copies_as_it_did(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = remote_copy("check", "com.example.blog, org.other")
    assert checked.returncode == 0, checked.stderr
    rows = [line.split()[:3] for line in checked.stdout.splitlines()]
    assert rows[1:] == [
        ["*.blog.example.com", str(PAGES), "1"],
        ["*.other.org", str(PAGES), "1"],
        ["total", str(2 * PAGES), "2"],
    ]
    options = ("--bucket", "mine", "--key", "common_crawl/blogs", "--parallel", "2")
    secrets = ("-O", os.environ["AWS_ACCESS_KEY_ID"], "-W", os.environ["AWS_SECRET_ACCESS_KEY"])
    with monkeypatch.context() as patch:
        patch.delenv("AWS_ACCESS_KEY_ID")
        patch.delenv("AWS_SECRET_ACCESS_KEY")
        copied = remote_copy("copy", "com.example.blog, org.other", *options, *secrets)
    assert copied.returncode == 0, copied.stderr
    assert pages_of("s3://mine/common_crawl/blogs") == 2 * PAGES


def test_remote_copy_takes_a_file_and_a_path(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "domains.txt").write_text("com.example\norg.other\n")
    checked = remote_copy("check", tmp_path / "domains.txt", "--json")
    sizes = json.loads(checked.stdout)
    assert [one["query"] for one in sizes["queries"]] == ["*.example.com", "*.other.org"]
    assert sizes["total"]["captures"] == len(HOSTS) * PAGES
    path = remote_copy("check", "com.example/1", "--json")
    assert json.loads(path.stdout)["total"]["captures"] == 1
    assert remote_copy("copy", "org.other").returncode == 2


def test_remote_copy_says_what_is_missing() -> None:
    call: list[str | Path] = [
        sys.executable,
        "-I",
        "-S",
        REMOTE_COPY,
        "check",
        "example.com",
    ]  # a Python without packages
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("remote_copy: no module ")
