"""One Spark for all tests here, which run in one process: starting it takes seconds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill.commands.scanning.options import ListPlace
from cdxmill.spark.engine import Engine
from cdxmill.spark.java import QUICK
from cdxmill.storage.location import locate, pieces
from cdxmill.storage.walk import files_below
from tests.jobs.conftest import HardInputs, hard_inputs
from tests.storage.conftest import moto_url

__all__ = ["HardInputs", "hard_inputs", "moto_url"]


collect_ignore = ["one_start.py"]  # it imports PySpark
DIRECTORY = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == DIRECTORY:
            item.add_marker(pytest.mark.xdist_group("spark"))


def start(cache: Path) -> str:
    """Start Spark with this cache in a process of its own, and run a small job. Returns the files that Java has mapped."""
    environment = {**os.environ, "CDXMILL_CACHE": str(cache)}
    script: list[str | Path] = [sys.executable, DIRECTORY / "one_start.py"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.fixture(scope="package")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the first start has kept the classes of Spark; a file of the user is beside them."""
    cache = tmp_path_factory.mktemp("spark") / "a cache"
    (cache / "spark").mkdir(parents=True)
    (cache / "spark/mine.jar").write_text("mine")
    assert cache.name not in start(cache)
    return cache


@pytest.fixture(scope="package")
def kept(cache: Path) -> Path:
    """The archive of the classes."""
    [kept] = (cache / "spark").glob("*.jsa")
    return kept


@pytest.fixture(scope="package")
def quick(kept: Path) -> str:
    """JAVA_TOOL_OPTIONS for a Spark that cdxmill does not start."""
    return f'{QUICK} -XX:+IgnoreUnrecognizedVMOptions -Xlog:cds*=off "-XX:SharedArchiveFile={kept}"'


@pytest.fixture(scope="package")
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


@pytest.fixture(scope="package")
def engine(s3: str, cache: Path) -> Iterator[Engine]:
    """Spark with two cores. A task that fails is tried twice more."""
    with pytest.MonkeyPatch.context() as patch, Engine("local[2,3]", 2) as engine:
        patch.setenv("PYTHONPATH", str(DIRECTORY), prepend=os.pathsep)  # for spark_steps
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # the same time in all outputs
        with pytest.MonkeyPatch.context() as while_it_starts:
            while_it_starts.setenv("CDXMILL_CACHE", str(cache))
            assert engine.cores == 2
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


@pytest.fixture
def warcs(tmp_path: Path, pywb_warcs: Path) -> Path:
    """Archives in a directory, one of them truncated."""
    directory = tmp_path / "warcs"
    directory.mkdir()
    data = (pywb_warcs / "iana.warc.gz").read_bytes()
    (directory / "iana.warc.gz").write_bytes(data)
    (directory / "cut.warc.gz").write_bytes(data[:200_000])
    (directory / "example.arc.gz").write_bytes((pywb_warcs / "example.arc.gz").read_bytes())
    return directory


@pytest.fixture(autouse=True)
def own_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node keeps the directory of the command. In this process, the next test has another one."""
    monkeypatch.setattr(ListPlace, "base", "")
