"""What a change does not touch: all files if nothing changes, shards that readers may have open, archives that have other captures."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill import Step
from cdxmill.cluster import change
from cdxmill.commands.collections import remove
from cdxmill.errors import UsageError
from tests.material.clock import Clock


@pytest.fixture(scope="module")
def built(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster of two archives."""
    directory = tmp_path_factory.mktemp("built")
    archives = [pywb_warcs / name for name in ("iana.warc.gz", "example.warc.gz")]
    cdxmill.build(archives, output=directory / "C", shards=1, processes=1)
    return directory / "C"


@pytest.fixture
def cluster(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("names").write_text("iana.warc.gz\n")
    Path("none").write_text("absent.warc.gz\n")
    Path("keys").write_bytes(b"org,iana)/about\n")
    return Path(shutil.copytree(built, tmp_path / "C"))


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    "options", [{"queries": "*.example.net"}, {"archives": "none"}, {"from_ts": "2030"}, {"to": "1999"}]
)
def test_a_removal_of_nothing_changes_no_file(options: dict[str, Any], cluster: Path) -> None:
    before = files(cluster)
    assert cdxmill.remove(cluster, keep_old=0, processes=1, **options).removed == 0
    assert files(cluster) == before


def test_what_is_excluded_already_changes_no_file(cluster: Path) -> None:
    assert cdxmill.remove(cluster, "www.iana.org/about", exclude=True, keep_old=0, processes=1).removed
    before = files(cluster)
    assert not cdxmill.remove(cluster, "www.iana.org/about", exclude=True, keep_old=0, processes=1).removed
    assert files(cluster) == before


def test_lines_that_are_there_change_no_file(cluster: Path) -> None:
    before = files(cluster)
    (lines,) = (cluster / "cdx").glob("iana*.gz")
    cdxmill.add(cluster, shutil.copyfile(lines, "iana.cdx.gz"), cdx=True, processes=1)
    assert files(cluster) == before


@pytest.mark.parametrize(
    "options",
    [
        {"queries": "www.iana.org/about"},
        {"keys": "keys"},
        {"from_ts": "20140126200700"},
        {"to": "20140126200650"},
    ],
)
def test_an_archive_stays_listed_if_it_keeps_captures(options: dict[str, Any], cluster: Path) -> None:
    listed = (cluster / "archives.tsv").read_bytes()
    assert b"iana.warc.gz" in listed
    done = cdxmill.remove(cluster, archives="names", keep_old=0, processes=1, **options)
    assert 0 < done.removed < 171
    assert (cluster / "archives.tsv").read_bytes() == listed
    assert cdxmill.remove(cluster, archives="names", keep_old=0, processes=1).removed == 171 - done.removed
    left = [row.split(b"\t")[0] for row in (cluster / "archives.tsv").read_bytes().splitlines()]
    assert left == [b"example.warc.gz"]


def test_a_replaced_shard_is_kept_for_its_time(cluster: Path) -> None:
    def add(number: int, keep_old: int) -> dict[str, float]:
        Path("new.cdxj").write_bytes(b'org,new)/%d 2020 {"url": "http://new.org/%d"}\n' % (number, number))
        cdxmill.add(cluster, "new.cdxj", cdx=True, keep_old=keep_old, processes=1)
        kept = cluster / ".kept.json"
        found: dict[str, float] = json.loads(kept.read_bytes()) if kept.exists() else {}
        assert all((cluster / name).exists() for name in found)
        return found

    first = add(1, 3600)
    assert list(first) == ["cdx-00000.gz"]
    (cluster / ".kept.json").write_text(json.dumps({"cdx-00000.gz": time.time() - 3601}))
    second = add(2, 3600)
    assert len(second) == 1
    assert second.keys() != first.keys()
    assert not (cluster / "cdx-00000.gz").exists()
    third = add(3, 3600)
    assert len(third) == 2
    old = next(iter(second))
    (cluster / ".kept.json").write_text(json.dumps({**third, old: time.time() - 3601}))
    assert add(4, 3600).keys() > third.keys() - {old}
    assert not (cluster / old).exists()
    assert len(add(5, 0)) == 1


def test_keys_alone_say_what_is_removed(cluster: Path) -> None:
    with pytest.raises(UsageError, match="nothing to remove; give QUERY, --keys, --archives, --from or --to"):
        cdxmill.remove(cluster, keep_old=0, processes=1)
    assert cdxmill.remove(cluster, keys="keys", keep_old=0, processes=1).removed == 1


def test_archives_are_removed_from_a_cluster_that_has_no_list_of_archives(cluster: Path) -> None:
    (cluster / "archives.tsv").unlink()
    assert cdxmill.remove(cluster, archives="names", keep_old=0, processes=1).removed == 171
    assert not (cluster / "archives.tsv").exists()


class WallClock(Clock):
    """The time of the day, too."""

    time = Clock.monotonic


def test_a_removal_waits_for_readers_and_tells_of_it(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run at a URL renews its lock at each step, so that no other run takes the cluster meanwhile."""
    clock = WallClock()
    for module in (change, remove):
        monkeypatch.setattr(module, "time", clock)
    steps: list[Step] = []
    cdxmill.remove(cluster, keys="keys", keep_old=3, processes=1, progress=steps.append)
    waited = [step for step in steps if step.name == "waiting for readers"]
    assert (clock.now, len(waited)) == (1003.0, 7)
