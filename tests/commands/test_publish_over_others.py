"""`publish` does not mix the shards of two clusters: those of a finished one, and those that an unfinished run has copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.clusters import publish as publishing
from cdxmill.errors import StoppedError
from cdxmill.storage.location import Location

from ..material.cdx_files import write_plain
from ..material.clusters import check_cluster

OTHER, LINE = b"com,example)/other 2020 {}", b"com,example)/ 2020 {}"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `other`, a cluster of two shards, and `C`, one of one shard."""
    monkeypatch.chdir(tmp_path)
    Path("splits.txt").write_bytes(b"com,example)/o\n")
    for name, line, shards in ("other", OTHER, ("--splits", "splits.txt")), ("C", LINE, ("-s", "1")):
        write_plain(Path(f"{name}.cdxj"), [line])
        assert main(["zipnum", "-q", "-p", "1", *shards, "-o", name, f"{name}.cdxj"]) == 0
    return tmp_path


def publish(*words: str) -> int:
    return main(["publish", "-q", "-p", "1", *words])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_an_index_is_not_written_beside_shards_of_another_finished_cluster(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert publish("other", "D") == 0
    before = contents(here / "D")
    assert publish("--index-only", "C", "D") == 2
    assert "D: has cdx-00000.gz of another cluster, and readers would use it" in capfd.readouterr().err
    assert contents(here / "D") == before
    assert publish("--index-only", "--replace", "C", "D") == 0
    assert not list(here.glob("D/cdx-*"))
    assert publish("--index-only", "C", "D") == 0


def test_a_copy_of_another_cluster_that_is_not_finished_is_not_continued(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "other/cluster.json").unlink()
    assert publish("--unfinished", "other", "D") == publish("--unfinished", "other", "D") == 0
    before = contents(here / "D")
    assert publish("C", "D") == 2
    assert "D: has cdx-00000.gz of another cluster; use --replace" in capfd.readouterr().err
    assert contents(here / "D") == before
    assert publish("--replace", "C", "D") == 0
    (here / "D/metadata.yaml").unlink()
    check_cluster(here / "D", LINE + b"\n")
    assert not list(here.glob("D/*-00001*"))


def test_a_cluster_that_is_published_already_is_not_written_again(here: Path) -> None:
    """A reader, or rsync, takes a file that was written for a new one."""
    (here / "C/archives.tsv").write_text("a.warc.gz\t/warcs/a.warc.gz\n")
    assert publish("C", "D") == 0
    before = {path.name: path.stat().st_ino for path in (here / "D").iterdir()}
    assert before.keys() >= {"archives.tsv", "cluster.loc", "cluster.idx", "cluster.json", "metadata.yaml"}
    assert publish("C", "D") == 0
    assert {path.name: path.stat().st_ino for path in (here / "D").iterdir()} == before


def test_a_run_that_is_killed_while_publish_waits_for_the_lock_is_noticed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert publish("other", "D") == 0
    monkeypatch.setattr(publishing, "mend", lambda place, note: (here / "D/.replaces").touch())
    for target in ("C", "D"), ("D", "D"):
        before = contents(here / "D")
        assert publish("--replace", *target) == 3
        assert "another run was killed while it replaced the cluster; run it again" in capfd.readouterr().err
        assert contents(here / "D") == {**before, ".replaces": b""}


@pytest.mark.parametrize("first", ["publish --index-only C D", "publish --unfinished C D"])
def test_a_run_that_fails_before_its_index_is_written_leaves_nothing_that_looks_finished(
    first: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shards are there by then, and those of a larger cluster are gone."""
    if "unfinished" in first:
        (here / "C/cluster.json").rename(here / "kept")
    assert main([*first.split(), "-q", "-p", "1"]) == 0
    if "unfinished" in first:
        (here / "kept").rename(here / "C/cluster.json")

    def fail(target: Location, parts: object) -> None:
        raise StoppedError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "write_index", fail)
        assert publish("C", "D") == 3
    names = contents(here / "D").keys()
    assert "cdx-00000.gz" in names
    assert not {"cluster.json", "cluster.idx", "cluster.summary", "cluster.loc"} & names
    assert publish("C", "D") == 0
    (here / "D/metadata.yaml").unlink()
    check_cluster(here / "D", LINE + b"\n")
