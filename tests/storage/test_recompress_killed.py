"""`recompress` at a URL is stopped before each request that changes something: an index beside is never of another archive.

The rule for two files is in docs/design.md. tests/reliability/test_two_files.py has the same on a disk.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from urllib3 import HTTPConnectionPool

from cdxmill.cli.main import main
from cdxmill.storage.location import join, locate
from cdxmill.storage.walk import files_below

OLD = ["recompress", "--to", "gz", "--index", "--offsets", "--level", "1"]
NEW = ["recompress", "--to", "gz", "--replace", "--level", "9"]
WITH_INDEX = ["recompress", "--to", "gz", "--index", "--level", "9"]
SIDES = ("a.warc.gz", "a.cdx.gz", "a.warc.gz.offsets.gz")
KILLED, STOPPED = 99, 3
MOST = 40
"""More such requests than a command sends. Every fifth one is tried."""

Files = dict[str, bytes]


@pytest.fixture
def archive(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "post-test.warc.gz", "a.warc.gz")
    return "a.warc.gz"


def run(call: Sequence[str], archive: str, place: str) -> int:
    """The status of a command."""
    return main([*call, "-q", "-p", "1", "-o", place, archive])


def stopped(call: Sequence[str], archive: str, place: str, step: int, *, is_killed: bool) -> int:
    """The status of a command in a process that ends before this request, or whose requests fail from then on."""
    process = os.fork()
    if not process:
        send, left = HTTPConnectionPool.urlopen, step

        def urlopen(pool: HTTPConnectionPool, method: str, url: str, *words: Any, **options: Any) -> Any:
            nonlocal left
            left -= method != "GET" and method != "HEAD"
            if left < 0 and method in ("PUT", "DELETE", "POST"):
                if is_killed:
                    os._exit(KILLED)
                url = url.replace("/elsewhere/", "/no-such-bucket/")
            return send(pool, method, url, *words, **options)

        HTTPConnectionPool.urlopen = urlopen  # type: ignore[method-assign, assignment]
        os._exit(run(call, archive, place))
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def files(place: str) -> Files:
    """What a reader may open, the index by its lines: its head may have a time."""
    found = {url.removeprefix(f"{place}/"): locate(url).read_bytes() for url in files_below(place).files}
    return {
        name: gzip.decompress(data) if "cdx" in name else data
        for name, data in found.items()
        if not name.startswith(".")
    }


def state(found: Files, old: Files, new: Files) -> str:
    """Of which run the files are: "mix" if they are of two."""
    states = {
        "old" if found[name] == old[name] else "new" if found[name] == new[name] else "neither"
        for name in SIDES
        if name in found
    }
    return states.pop() if len(states) == 1 else "mix" if states else "none"


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "refused"])
def test_what_stands_beside_an_archive_at_a_url_is_never_of_another_one(
    is_killed: bool, archive: str, elsewhere: str
) -> None:
    if not is_killed and elsewhere.startswith("hdfs"):
        return
    states = []
    for call in (OLD, NEW):
        assert run(call, archive, join(elsewhere, "state")) == 0
        states.append(files(join(elsewhere, "state")))
    old, new = states
    assert state(new, old, new) == "new"
    assert new.keys() == {*SIDES, "a.warc.gz.proof.json"}
    seen: list[str] = []
    for step in range(0, MOST, 5):
        place = join(elsewhere, str(step))
        run(OLD, archive, place)
        status = stopped(NEW, archive, place, step, is_killed=is_killed)
        seen.append(state(files(place), old, new))
        if step % 2:
            assert run(WITH_INDEX, archive, place) in (0, 2)  # 2: what exists was made with other options
            assert state(files(place), old, new) in ("old", "new"), step
        assert run(NEW, archive, place) == 0
        assert files(place) == new, step
        if not status:
            break
        assert status == (KILLED if is_killed else STOPPED), step
    assert "mix" not in seen
    assert (seen[0], seen[-1], len(seen) < MOST) == ("old", "new", True)
