"""WACZ files behind URLs: only the ranges that are needed are read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main
from cdxmill.errors import AbsentError, InputError
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.storage.location import locate
from cdxmill.storage.reading import open_unchanged
from cdxmill.storage.wacz import inside, place_of

from ..material.wacz_files import DATA, make_wacz
from .name_node import name_node
from .range_server import RangeServer

OTHER = "archive/b c%20d#.warc.gz"


@pytest.fixture
def body(pywb_warcs: Path) -> bytes:
    return (pywb_warcs / "example.warc.gz").read_bytes()


@pytest.fixture
def wacz(body: bytes, pywb_warcs: Path) -> bytes:
    return make_wacz({DATA: body, OTHER: (pywb_warcs / "iana.warc.gz").read_bytes(), "x": bytes(1 << 20)})


@pytest.fixture(params=["path", "file", "http", "whole", "s3", "hdfs"])
def url(
    request: pytest.FixtureRequest,
    wacz: bytes,
    server: RangeServer,
    moto_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[str]:
    """The WACZ in each storage; `whole` is a web server that supports no ranges and does not say how large files are."""
    kind = request.param
    (tmp_path / "in x.wacz").write_bytes(wacz)
    if kind in ("http", "whole"):
        served = server.add("/in x.wacz", wacz)
        served.knows_ranges = served.tells_length = kind == "http"
        yield f"{server.url}/in%20x.wacz"
    elif kind == "s3":
        monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        client: Any = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="waczs")
        client.put_object(Bucket="waczs", Key="a/in x.wacz", Body=wacz)
        yield "s3://waczs/a/in x.wacz"
    elif kind == "hdfs":
        with name_node() as running:
            monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
            running.put("/a/in x.wacz", wacz)
            yield "hdfs:///a/in x.wacz"
    else:
        path = tmp_path / "in x.wacz"
        yield path.as_uri() if kind == "file" else str(path)


def test_all_storages_give_the_same_lines(
    url: str, pywb_warcs: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    status = main(["index", "-q", "-p", "1", "-o", "-", url])
    found, err = capfdbinary.readouterr()
    assert (status, err) == (0, b"")
    for name in ("example.warc.gz", "iana.warc.gz"):
        main(["index", "-q", "-p", "1", "-o", "-", str(pywb_warcs / name)])
    names = {b'"example.warc.gz"': b'"data.warc.gz"', b'"iana.warc.gz"': b'"b c%20d#.warc.gz"'}
    expected = capfdbinary.readouterr().out
    for old, new in names.items():
        expected = expected.replace(old, new)
    assert sorted(found.splitlines()) == sorted(expected.splitlines())


def test_records_are_fetched(url: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    main(["index", "-q", "-p", "1", "-o", "-", url])
    lines = capfdbinary.readouterr().out.splitlines()
    fields = [json.loads(line.split(b" ", 2)[2]) for line in lines]
    with closing(ArchiveStore(url)) as archives:
        for one in fields:
            record = archives.fetch(one["filename"], int(one["offset"]), int(one["length"])).record
            assert record.headers[b"warc-target-uri"].decode() == one["url"]


def test_what_is_not_in_the_wacz(url: str) -> None:
    absent = inside(url, "archive/absent.warc.gz")
    assert not locate(absent).exists()
    assert locate(absent).size() == 0
    with pytest.raises(AbsentError, match="is not in the WACZ"), locate(absent).open_ranges():
        pass


def test_an_absent_wacz_is_absent(server: RangeServer, tmp_path: Path) -> None:
    for url in (f"{server.url}/absent.wacz", str(tmp_path / "absent.wacz")):
        assert not locate(inside(url, DATA)).exists()
        with pytest.raises(AbsentError), locate(inside(url, DATA)).open_ranges():
            pass
        assert main(["index", "-q", "-o", "-", url]) == 1


def test_a_directory_may_have_the_name_of_a_wacz(
    body: bytes, server: RangeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.add(f"/in.wacz/{DATA}", body)
    path = tmp_path / "in.wacz" / DATA
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        running.put(f"/a/in.wacz/{DATA}", body)
        for url in (str(tmp_path / "in.wacz"), f"{server.url}/in.wacz", "hdfs:///a/in.wacz"):
            with locate(inside(url, DATA)).open_ranges() as read_at:
                assert read_at(0, 1 << 20) == body
            assert locate(inside(url, DATA)).size() == len(body)


def test_only_a_part_of_a_large_wacz_is_read(server: RangeServer, wacz: bytes) -> None:
    large = make_wacz({"raw/1": bytes(3 << 20), DATA: b"x" * 1000, "raw/2": bytes(3 << 20)})
    server.add("/large.wacz", large)
    with locate(inside(f"{server.url}/large.wacz", DATA)).open_ranges() as read_at:
        assert read_at(900, 500) == b"x" * 100
        assert read_at(999, 500) == b"x"
        assert read_at(2000, 5) == b""
    ranges = [re.fullmatch(r"bytes=(\d+)-(\d+)", wanted or "") for wanted in server.ranges("/large.wacz")]
    assert all(ranges)
    assert sum(int(one[2]) - int(one[1]) + 1 for one in ranges if one) < 200_000


def test_a_query_stays_at_the_end() -> None:
    url = "https://example.com/a.wacz/x.wacz?b=c/d.wacz/e"
    assert place_of(url) == ("https://example.com/a.wacz?b=c/d.wacz/e", "x.wacz")
    assert place_of("https://x.wacz/a.warc.gz") is None
    assert place_of("https://example.com/a.wacz/") is place_of("https://example.com/a.wacz/?b=c") is None
    assert place_of("absent.wacz/a.warc.gz") is None
    assert place_of("s3://x.wacz/a.warc.gz") is None
    assert place_of("https://example.com/a.warc.gz?x=b.wacz/c") is None


def test_a_wacz_that_changes_while_it_is_read_is_a_failure(wacz: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    path.write_bytes(wacz)
    with (
        pytest.raises(InputError, match="changed while it was read"),
        open_unchanged(inside(str(path), DATA)) as read_at,
    ):
        read_at(0, 10)
        os.truncate(path, 500)
        with pytest.raises(InputError, match="was truncated while it was read"):
            read_at(600, 10)


def test_a_wacz_that_was_replaced_is_read_again(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    for content in (b"one", b"two", b"more"):
        path.write_bytes(make_wacz({DATA: content}))
        os.utime(path, ns=(len(content), ord(content[:1])))
        with locate(inside(str(path), DATA)).open_ranges() as read_at:
            assert read_at(0, 9) == content


def test_an_archive_with_a_wrong_name_in_the_list_of_files_is_not_passed_over(
    body: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another name would be that of a file of another kind."""
    wacz = make_wacz({DATA: body})
    at = wacz.rindex(DATA.encode()) + len(DATA) - 1
    (tmp_path / "a.wacz").write_bytes(wacz[:at] + b"y" + wacz[at + 1 :])
    assert main(["index", "-q", "-p", "1", "-o", str(tmp_path / "out"), str(tmp_path / "a.wacz")]) == 1
    assert "the header of archive/data.warc.gy in the zip has another name" in capsys.readouterr().err
