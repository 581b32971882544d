"""One Spark for all tests of a module: starting it takes seconds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill.spark.engine import Engine
from cdxmill.storage.location import locate, pieces
from cdxmill.storage.walk import files_below
from tests.jobs.conftest import HardInputs, hard_inputs
from tests.storage.conftest import moto_url

__all__ = ["HardInputs", "hard_inputs", "moto_url"]


@pytest.fixture(scope="module")
def s3(moto_url: str) -> Iterator[str]:
    """The URL of a bucket. The workers of Spark inherit the variables that lead to it."""
    import boto3  # type: ignore[import-untyped]

    from cdxmill.storage import s3 as storage_s3

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", moto_url)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        boto3.client("s3").create_bucket(Bucket="spark")
        storage_s3._client.cache_clear()  # of an endpoint of another test
        yield "s3://spark"
        storage_s3._client.cache_clear()


@pytest.fixture(scope="module")
def engine(s3: str) -> Iterator[Engine]:
    """Spark with two cores. A task that fails is tried twice more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # for spark_steps
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # the same time in all outputs
        with Engine("local[2,3]", 2) as engine:
            yield engine


def hashes(place: str | Path) -> dict[str, str]:
    """The SHA-256 of all files below a folder or URL; without the records of runs, which have times and paths."""
    own = (".finished.json", ".outputs.tsv", "failures.tsv")
    found = {}
    for path in files_below(str(place)).files:
        if not path.endswith(own):
            with locate(path).open_ranges() as read_at:
                digest = hashlib.sha256(b"".join(pieces(read_at)))
            found[path.removeprefix(str(place)).lstrip("/")] = digest.hexdigest()
    return found
