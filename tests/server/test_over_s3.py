"""A server whose cluster is in a bucket, where each request takes 20 ms: how many requests a lookup takes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..material.cdx_server import CdxServer, cdx_server
from ..storage.range_server import RangeServer, serving
from .conftest import line

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

URLS = 20_000
SECONDS = 0.02


@pytest.fixture
def bucket() -> Iterator[RangeServer]:
    with serving() as running:
        yield running


@pytest.fixture
def server(
    bucket: RangeServer, run_cdxmill: RunCdxmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CdxServer]:
    lines = [line(f"example,many)/{n:05}", "2020", url=f"http://many.example/{n:05}") for n in range(URLS)]
    (tmp_path / "a.cdxj").write_text("".join(lines))
    run_cdxmill("zipnum", "-q", "-s", "2", "-o", tmp_path / "c", tmp_path / "a.cdxj")
    for path in tmp_path.glob("c/[!.]*"):
        bucket.add(f"/bucket/c/{path.name}", path.read_bytes()).stall = SECONDS
    for name, value in {
        "ENDPOINT_URL": bucket.url,
        "CONFIG_FILE": "/dev/null",
        "EC2_METADATA_DISABLED": "1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("CDXMILL_PATIENCE", "1")
    with cdx_server("web=s3://bucket/c") as running:
        yield running


def test_a_lookup_takes_two_requests_and_a_hot_one_none(server: CdxServer, bucket: RangeServer) -> None:
    def requests(number: int) -> list[str]:
        """The requests for shards of a lookup."""
        bucket.seen.clear()
        answer = server.ask("/web/cdx", url=f"many.example/{number:05}")
        assert "etag" not in answer.headers  # to know the state of a bucket takes a request
        assert answer.text == line(
            f"example,many)/{number:05}", "2020", url=f"http://many.example/{number:05}"
        )
        return [path for _, path, _ in bucket.seen if re.search(r"cdx-\d+\.gz", path)]

    requests(0)
    new_blocks = [requests(number) for number in range(4500, URLS, 3000)]
    assert all(1 <= len(one) <= 2 for one in new_blocks)  # the table of sections, and the section
    known = [requests(number) for number in range(5100, URLS, 3000)]
    assert all(len(one) == 1 for one in known)
    for _ in range(3):
        requests(7777)
    bucket.seen.clear()
    hot = [requests(7777 + near) for near in range(5)]
    assert hot == [[]] * 5


def test_an_outage_of_the_bucket_costs_one_wait(server: CdxServer, bucket: RangeServer) -> None:
    """A client waited for minutes, and all threads of a worker did."""
    assert server.ask("/web/cdx", url="many.example/12345").status == 200
    for file in bucket.files.values():
        file.statuses = [503] * 1000
    bucket.seen.clear()
    answer = server.ask("/web/cdx", url="many.example/00001")
    assert (answer.status, answer.headers["retry-after"]) == (503, "10")
    asked = len(bucket.seen)
    assert asked <= 10
    for number in range(5):
        assert server.ask("/web/cdx", url=f"many.example/{number:05}").status == 503
    assert len(bucket.seen) == asked, "the bucket is given up"


@pytest.mark.parametrize(("setting", "seconds"), [(None, 10), ("77", 77)])
def test_a_server_waits_ten_seconds_for_its_storage(
    setting: str | None, seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.cdxj").write_text(line("example,many)/", "2020"))
    code = (
        "import sys\nfrom cdxmill.cli.main import main\nfrom cdxmill.server import start\n"
        "from cdxmill.storage.patience import patience\n"
        "start._check = lambda *_: sys.exit(int(patience()))\n"
        "main(['cdx-server', 'a.cdxj', '--port', '0'])"
    )
    monkeypatch.delenv("CDXMILL_PATIENCE", raising=False)
    if setting:
        monkeypatch.setenv("CDXMILL_PATIENCE", setting)
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == seconds
