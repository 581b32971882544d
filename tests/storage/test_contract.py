"""Every storage keeps to the same contract, by way of `choose` as commands use it."""

from __future__ import annotations

from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.storage.location import locate

from .contract import check_storage, check_writing
from .range_server import RangeServer


def test_local_files_keep_the_contract(tmp_path: Path) -> None:
    def put(name: str, body: bytes) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
        return str(tmp_path / name)

    check_storage(put)
    check_writing(str(tmp_path / "written"))


def test_file_urls_keep_the_contract(tmp_path: Path) -> None:
    def put(name: str, body: bytes) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
        return (tmp_path / name).as_uri()

    check_storage(put)
    check_writing((tmp_path / "written").as_uri())


@pytest.mark.parametrize("knows_ranges", [True, False])
@pytest.mark.parametrize("tells_size", [True, False])
def test_web_servers_keep_the_contract(server: RangeServer, knows_ranges: bool, tells_size: bool) -> None:
    def put(name: str, body: bytes) -> str:
        file = server.add("/" + name, body)
        file.knows_ranges, file.tells_length, file.tells_total = knows_ranges, tells_size, tells_size
        return f"{server.url}/{name}"

    def size(url: str) -> int:
        told = locate(url).size()
        file = server.files.get(url.removeprefix(server.url))
        if tells_size or file is None:
            return told
        assert told == 0, "it cannot be told"
        return len(file.body)

    check_storage(put, size)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_s3_keeps_the_contract(moto_url: str, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="archives")

    def put(name: str, body: bytes) -> str:
        client.put_object(Bucket="archives", Key=f"crawl/{name}", Body=body)
        return f"{scheme}://archives/crawl/{name}"

    check_storage(put)
    check_writing(f"{scheme}://archives/written-{scheme}", has_directories=False)
