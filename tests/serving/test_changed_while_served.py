"""A cluster is changed while pywb serves it, and the changes are killed: each answer has all of the old lines or all of the new ones."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import pytest

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.running.failures import Failures

from .conftest import Wayback
from .killed_changes import CHANGES, Changed, Killing

HOST = "example.com"


def line(page: int, time: str) -> bytes:
    fields = {
        "url": f"http://{HOST}/{page:03d}",
        "mime": "text/html",
        "status": "200",
        "filename": "a.warc.gz",
    }
    fields |= {"digest": "D" * 32, "length": "7", "offset": str(page)}
    return b"com,example)/%03d %b %b\n" % (page, time.encode(), json.dumps(fields).encode())


OLD = [line(page, "20200101000000") for page in range(300)]
NEW = [line(page, "20210101000000") for page in range(0, 300, 7)]
WHOLE = {b"".join(OLD): "old", b"".join(sorted(OLD + NEW)): "new"}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A cluster of three shards, and the lines to add."""
    (tmp_path / "old.cdxj").write_bytes(b"".join(OLD))
    (tmp_path / "new.cdxj").write_bytes(b"".join(NEW))
    points = (b"com,example)/100", b"com,example)/200")
    options = ZipnumOptions(shards=3, points=points, block_lines=10, quiet=True)
    build_cluster([str(tmp_path / "old.cdxj")], str(tmp_path / "C"), options, Failures())
    return tmp_path / "C"


def test_answers_are_old_or_new(cluster: Path, tmp_path: Path) -> None:
    """Old shards stay for an hour. The test ends before."""
    index = {"type": "zipnum", "path": str(cluster / "cluster.idx"), "loc": str(cluster / "cluster.loc")}
    collection = {"index": index, "archive_paths": str(tmp_path)}
    served = tmp_path / "pywb"
    served.mkdir()
    (served / "config.yaml").write_text(json.dumps({"collections": {"web": collection}}))
    wayback = Wayback(served)
    seen: list[str] = []
    killing = Killing(Changed(cluster, tmp_path / "new.cdxj", {"from_ts": "2021"}))
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            answer = wayback.get(f"/web/cdx?url={HOST}&matchType=domain&pageSize=1000&nosource=true")
            kind = WHOLE.get(answer.body, f"{answer.status} {len(answer.body)} bytes {answer.body[:300]!r}")
            seen.append(kind if answer.status == 200 else str(answer))

    asking = threading.Thread(target=ask)
    try:
        asking.start()
        for number in range(CHANGES):
            least = len(seen) + 1
            killing.change(number)
            while len(seen) < least and asking.is_alive():
                is_over.wait(0.01)
    finally:
        is_over.set()
        asking.join()
        wayback.stop()
    killing.check(Counter(seen))
    assert len(seen) >= CHANGES
