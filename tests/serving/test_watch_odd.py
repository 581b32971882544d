"""`serve --watch` in odd moments: an empty cluster, archives that go, archives without captures, a directory that fails."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.commands.clusters import serve
from cdxmill.commands.clusters.serve import addresses
from cdxmill.commands.collections import watch
from cdxmill.commands.collections.watch import WatchedDirectory
from cdxmill.errors import InputError, StoppedError
from cdxmill.inputs.archives import find_archives

from ..material.clock import Clock
from .test_watch import count

REQUEST = (
    b"WARC/1.0\r\nWARC-Type: request\r\nWARC-Target-URI: http://a.b/\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster without lines, beside the empty directory warcs."""
    monkeypatch.chdir(tmp_path)
    Path("warcs").mkdir()
    Path("a.cdxj").write_bytes(b" CDX N b a\n")
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "-o", "C", "a.cdxj"]) == 0
    return tmp_path / "C"


def watched(settle: int = 0) -> WatchedDirectory:
    return WatchedDirectory("C", "warcs", settle, 1)


@pytest.mark.usefixtures("clock")
def test_archives_are_added_to_a_cluster_without_lines(cluster: Path, pywb_warcs: Path) -> None:
    shutil.copy(pywb_warcs / "example.warc.gz", "warcs")
    watched().look()
    assert count(cluster) == 3


@pytest.mark.usefixtures("clock")
def test_an_archive_without_captures_is_no_news(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("warcs/a.warc.gz").write_bytes(gzip.compress(REQUEST))
    found = watched()
    for _ in range(2):
        found.look()
    assert (count(cluster), capsys.readouterr().err) == (0, "")


@pytest.mark.usefixtures("clock")
def test_an_archive_that_goes_while_it_is_looked_at_is_forgotten(
    cluster: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Path("warcs/example.warc.gz")
    shutil.copy(pywb_warcs / archive.name, archive)

    def find_and_delete(*words: object, **more: object) -> object:
        archives = find_archives(*words, **more)  # type: ignore[arg-type]
        archive.unlink()
        return archives

    found = watched()
    with monkeypatch.context() as patch:
        patch.setattr(watch, "find_archives", find_and_delete)
        found.look()
    assert (count(cluster), capsys.readouterr().err) == (0, "")
    shutil.copy(pywb_warcs / archive.name, archive)
    found.look()
    assert count(cluster) == 3


def test_a_directory_that_fails_is_told_once_and_looked_at_again(
    cluster: Path,
    clock: Clock,
    pywb_warcs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*words: object, **more: object) -> None:
        raise InputError("warcs", "cannot be read (Input/output error)")

    shutil.copy(pywb_warcs / "example.warc.gz", "warcs")
    found = watched()
    with monkeypatch.context() as patch:
        patch.setattr(watch, "find_archives", fail)
        for _ in range(2):
            found.look()
    assert capsys.readouterr().err == "warcs: cannot be read (Input/output error)\n"
    found.look()
    assert count(cluster) == 3


def test_the_addresses_of_a_cluster_without_captures_say_so(cluster: Path) -> None:
    assert addresses(str(cluster), "http://h") == ["open http://h/web/ (the cluster has no captures)"]


def test_a_corrupt_block_is_told_and_the_site_is_still_named(cluster: Path, pywb_warcs: Path) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output="D", shards=1, processes=1)
    shard = Path("D/cdx-00000.gz")
    shard.write_bytes(shard.read_bytes().replace(shard.read_bytes()[60:90], bytes(30)))
    why, line = addresses("D", "http://h")
    assert why.startswith("D: cdx-00000.gz@0: the block is corrupt (")
    assert line == "open http://h/web/"


def test_a_program_that_cannot_be_started_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "wayback").write_bytes(b"\0")
    (tmp_path / "wayback").chmod(0o755)
    with (
        pytest.raises(StoppedError, match="wayback: cannot be started"),
        serve._running([str(tmp_path / "wayback")]),
    ):
        pass


@pytest.mark.usefixtures("cluster")
def test_a_path_that_pywb_cannot_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("w\udcff").mkdir()
    assert main(["serve", "--config-only", "conf", "--archives", "w\udcff", "C"]) == 2
    assert "pywb cannot read a path that is not UTF-8; rename it" in capsys.readouterr().err
    assert not Path("conf/config.yaml").exists()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("name", "is_beside", "wanted"),
    [("other.idx", False, '"shard_index_loc": "{}/cluster.loc"'), ("other.idx", True, '"replace": "{}/"')],
)
def test_the_shards_of_an_index_with_its_own_name_are_found(name: str, is_beside: bool, wanted: str) -> None:
    Path("C/cluster.idx").rename(f"C/{name}")
    if not is_beside:
        Path("C/cdx-00000.gz").unlink()
    assert main(["serve", "--config-only", "conf", "--archives", "warcs", f"C/{name}"]) == 0
    assert wanted.format(Path("C").absolute()) in Path("conf/config.yaml").read_text()
