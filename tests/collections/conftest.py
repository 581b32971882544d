"""Lines of archives, and an S3."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.storage import s3
from tests.conftest import RunCdxmill
from tests.storage.conftest import moto_url

__all__ = ["moto_url"]


@pytest.fixture(scope="session")
def real(run_cdxmill: RunCdxmill, pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of two archives."""
    directory = tmp_path_factory.mktemp("real")
    names = [pywb_warcs / name for name in ("iana.warc.gz", "example.warc.gz")]
    assert run_cdxmill("index", "-q", "-o", directory, *names).returncode == 0
    texts = [gzip.decompress(path.read_bytes()) for path in directory.rglob("*.cdx.gz")]
    return sorted({line for text in texts for line in text.splitlines() if not line.startswith(b" CDX")})


@pytest.fixture
def bucket(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    s3._client.cache_clear()
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="collections")
    yield "s3://collections"
    s3._client.cache_clear()
