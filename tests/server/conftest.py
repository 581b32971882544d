"""A CDX server over two clusters: captures that pywb has as samples, and many captures of few URLs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..material.cdx_server import CdxServer, cdx_server

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, Cluster, RunCdxmill

REPLAY = "http://replay.example/web/"
MANY = "http://many.example/"
CAPTURES = 5000


@pytest.fixture(scope="session")
def samples_cluster(
    build_cluster: BuildCluster, pywb_archives: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Cluster:
    return build_cluster(tmp_path_factory.mktemp("asked") / "samples", pywb_archives, 2, "--numlines", "20")


def line(urlkey: str, timestamp: str, **fields: str) -> str:
    """A CDXJ line."""
    values = {"url": MANY, "mime": "text/html", "status": "200", "digest": "A" * 32, "length": "99"}
    return (
        f"{urlkey} {timestamp} {json.dumps({**values, 'offset': '0', 'filename': 'a.warc.gz', **fields})}\n"
    )


def many_lines() -> list[str]:
    """Captures of one URL, each second of an hour and a half; of another URL, five in one second."""
    times = [
        f"20200101{number // 3600:02}{number // 60 % 60:02}{number % 60:02}" for number in range(CAPTURES)
    ]
    hour = [line("example,many)/", time, digest=f"{number:032}") for number, time in enumerate(times)]
    same = [line("example,many)/same", "20200101000000", url=MANY + "same", offset=str(n)) for n in range(5)]
    return [*hour, *same]


@pytest.fixture(scope="session")
def many_cluster(run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("many")
    (directory / "many.cdxj").write_text("".join(many_lines()))
    run_cdxmill(
        "zipnum", "-q", "-s", "1", "--numlines", "300", "-o", directory / "many", directory / "many.cdxj"
    )
    return directory / "many"


@pytest.fixture(scope="session")
def server(samples_cluster: Cluster, many_cluster: Path) -> Iterator[CdxServer]:
    with cdx_server(
        f"web={samples_cluster.directory}", many_cluster, "--replay", REPLAY, "--workers", 2
    ) as running:
        yield running
