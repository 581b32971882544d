"""An object of S3 that was changed, but has the size and the metadata of the output that it replaced."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main
from cdxmill.storage import s3
from cdxmill.storage.location import locate

BUCKET = "changed"
KEPT = "kept, but it was changed, or cdxmill has no record of it"


@pytest.fixture
def client(moto_url: str, pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of S3 with a bucket, and an archive in the current directory."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.chdir(tmp_path)
    s3._client.cache_clear()
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    os.utime("a.warc.gz", (1_700_000_000, 1_700_000_000))  # times of S3 have no fractions of a second
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    yield client
    s3._client.cache_clear()


def change(client: Any, key: str, **more: str) -> bytes:
    """Change a byte of an object, but not its size or metadata. In gzip data it is a byte of the time, else the last byte."""
    found = client.get_object(Bucket=BUCKET, Key=key)
    body: bytes = found["Body"].read()
    at = 4 if key.endswith(".gz") else len(body) - 1
    body = body[:at] + bytes([(body[at] + 1) % 256]) + body[at + 1 :]
    client.put_object(Bucket=BUCKET, Key=key, Body=body, Metadata=found["Metadata"], **more)
    return body


@pytest.mark.parametrize("command", [["index"], ["recompress"], ["recompress", "--index"]])
def test_it_is_not_up_to_date(command: list[str], client: Any, capfd: pytest.CaptureFixture[str]) -> None:
    place = uuid.uuid4().hex
    call = [*command, "-q", "-o", f"s3://{BUCKET}/{place}", "a.warc.gz"]
    assert main(call) == 0
    for item in client.list_objects_v2(Bucket=BUCKET, Prefix=place)["Contents"]:
        if item["Key"].endswith(".proof.json"):  # it has its own message
            continue
        body = change(client, item["Key"])
        capfd.readouterr()
        assert main(call) == 2
        assert "was changed, or cdxmill has no record of it" in capfd.readouterr().err
        assert client.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read() == body
        assert main([*call, "--update"]) == 0
        assert KEPT in capfd.readouterr().err
        assert client.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read() == body
        assert main([*call, "--replace"]) == 0
        assert main(call) == 0


def test_what_was_uploaded_in_other_parts_is_the_same(client: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Its ETag differs, so it is read. That of objects with a key of KMS says nothing."""
    key, body = uuid.uuid4().hex, bytes(9 << 20)
    place = locate(f"s3://{BUCKET}/{key}")
    with place.write_atomic(stamp=lambda: "mine") as file:
        file.write(body)
    metadata = client.head_object(Bucket=BUCKET, Key=key)["Metadata"]
    assert place.stamped()[1] == "mine"
    client.put_object(Bucket=BUCKET, Key=key, Body=body, Metadata=metadata)
    assert place.stamped()[1] == "mine"
    change(client, key, ServerSideEncryption="aws:kms")
    assert place.stamped()[1] == "mine"
    change(client, key)
    assert place.stamped()[1] == ""


def test_an_unchanged_object_is_not_read(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (0, 5, 8 << 20, (8 << 20) + 1, 20 << 20):
        place = locate(f"s3://{BUCKET}/{uuid.uuid4().hex}")
        with place.write_atomic(stamp=lambda: "mine") as file:
            file.write(bytes(size))
        with monkeypatch.context() as patched:
            patched.setattr(s3, "_Object", None)
            assert place.stamped()[1] == "mine", size
