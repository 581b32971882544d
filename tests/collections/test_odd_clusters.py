"""A cluster that cannot be changed, added or used is reported in one line. The others are not lost."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.checks import claims
from cdxmill.cli.main import main
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.collections import add_clusters, change_shards, other_clusters
from cdxmill.commands.collections.add import add as add_all
from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location, locate

LINE = 'com,%s)/ 20200101000000 {"url": "http://%s.com/", "offset": "%d", "length": "5", "filename": "%s.warc.gz"}\n'


def line(host: str, archive: str, offset: int = 0) -> str:
    return LINE % (host, host, offset, archive)


def make(name: str, archive: str, *hosts: str, compressor: str = "zlib-ng") -> None:
    """A cluster whose archives.tsv has one archive."""
    Path(f"{name}.cdxj").write_text("".join(line(host, archive) for host in sorted(hosts)))
    words = ["zipnum", "-q", "-p", "1", "-s", "1", "--compressor", compressor, "-o", name, f"{name}.cdxj"]
    assert main(words) == 0
    Path(name, "archives.tsv").write_text(f"{archive}.warc.gz\t/archives/{archive}.warc.gz\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The clusters C and D, of other hosts."""
    monkeypatch.chdir(tmp_path)
    make("C", "c", "a", "b")
    make("D", "d", "x", "y")
    return tmp_path


def add(*words: str) -> int:
    return main(["add", "-p", "1", "--cdx", "C", *words])


def lines_of(name: str) -> int:
    return read_manifest(locate(f"{name}/cluster.json")).lines


@pytest.mark.usefixtures("here")
def test_the_archives_of_a_cluster_that_is_known_under_another_name_are_not_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make("E", "e", "a", "b")
    assert add("E", "D") == 1
    told = capsys.readouterr().err
    assert "e.warc.gz: has the records of c.warc.gz, which is in the cluster, so it was not added" in told
    assert "C: 2 lines added" in told
    assert [row.split("\t")[0] for row in Path("C/archives.tsv").read_text().splitlines()] == [
        "c.warc.gz",
        "d.warc.gz",
    ]


@pytest.mark.usefixtures("here")
def test_a_cluster_with_another_compressor_is_sorted_in_and_no_block_of_it_copied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make("Z", "z", "m", compressor="zlib")
    assert add("Z") == 0
    assert main(["verify", "-q", "C"]) == 0
    assert lines_of("C") == 3
    assert main(["add", "--cdx", "--engine", "spark", "C", "Z"]) == 2
    told = capsys.readouterr().err
    assert "Z has another compressor, so only cdxmill add without --engine can add it" in told


def remove(shard: Path) -> None:
    shard.unlink()


def damage(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-30])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("spoil", "reason"), [(remove, "No such file or directory"), (damage, "the shard ends before its")]
)
def test_a_cluster_without_its_shard_costs_no_other(
    spoil: Callable[[Path], None], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make("E", "e", "m")
    Path("E/cluster.loc").unlink()
    spoil(Path("E/cdx-00000.gz"))
    assert add("E", "D") == 1
    told = capsys.readouterr().err
    assert reason in told
    assert "none of its lines are in the cluster" in told
    assert lines_of("C") == 4


@pytest.mark.usefixtures("here")
def test_an_outage_is_no_corrupt_block(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object) -> None:
        raise OutageError("D/cdx-00000.gz", "did not answer")

    monkeypatch.setattr(other_clusters, "sha256_of", lambda place: "")
    monkeypatch.setattr(other_clusters, "lines_of", fail)
    assert add("D") == 3
    assert "did not answer" in capsys.readouterr().err
    assert lines_of("C") == 2


@pytest.mark.usefixtures("here")
def test_a_cluster_without_manifest_is_not_compacted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("C/cluster.json").unlink()
    assert main(["compact", "C"]) == 2
    assert "has no cluster.json, so it cannot be changed" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("shards", ["1", "2"])
@pytest.mark.parametrize("more", [[], ["--replace"]])
def test_a_cluster_with_a_corrupt_manifest_is_not_replaced_and_that_is_not_advised(
    shards: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("C/cluster.json").write_text("{")
    before = {path.name: path.read_bytes() for path in Path("C").iterdir()}
    assert main(["zipnum", "-q", "-p", "1", "-s", shards, *more, "-o", "C", "C.cdxj"]) == 2
    told = capsys.readouterr().err
    assert "C/cluster.json: is corrupt (" in told
    assert told.endswith("; move this directory away, or choose another directory\n")
    assert "--replace" not in told
    assert {path.name: path.read_bytes() for path in Path("C").iterdir()} == before


@pytest.mark.usefixtures("here")
def test_clusters_without_shards_are_not_merged(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    Path("empty/cluster.idx").touch()
    assert main(["merge", "-q", "-o", "new", "empty"]) == 1
    assert capsys.readouterr().err == (
        "cdxmill: empty: no shards, so there is nothing to merge; check it with cdxmill verify\n"
    )
    assert main(["merge", "-q", "-p", "1", "-o", "new", "empty", "C"]) == 0
    assert lines_of("new") == 2


@pytest.mark.usefixtures("here")
def test_only_the_local_engine_applies_the_exclusion_list(capsys: pytest.CaptureFixture[str]) -> None:
    Path("C/exclude.txt").write_text("a.com\n")
    assert main(["zipnum", "-q", "--replace", "--engine", "spark", "-s", "1", "-o", "C", "C.cdxj"]) == 2
    assert "C/exclude.txt: is applied by the local engine only" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_node_with_another_library_stops_the_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its blocks would be others than those of this machine."""
    change = change_shards._change_shard
    other = "zlib-ng 1.0"

    def on_node(task: change_shards.ChangeTask) -> object:
        with monkeypatch.context() as patch:
            patch.setattr(Compressor, "version", lambda self: other)
            return change(task)

    monkeypatch.setattr(change_shards, "_change_shard", on_node)
    before = Path("C/cluster.idx").read_bytes()
    assert add("D") == 3
    assert f"a node has {other}, this machine zlib-ng " in capsys.readouterr().err
    assert Path("C/cluster.idx").read_bytes() == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (OutageError, 3, "cannot look up cdx-00000.gz at http://other.example/cdx-00000.gz: did not answer"),
        (InputError, 1, "cdx-00000.gz is not at http://other.example/cdx-00000.gz: the file is missing"),
    ],
)
def test_verify_does_not_take_an_outage_for_a_missing_shard(
    error: type[InputError],
    status: int,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = Location.status

    def fail(place: Location) -> Entry | None:
        if place.is_remote:
            raise error(place.text, "did not answer", "run it again")
        return real(place)

    Path("C/cluster.loc").write_text("cdx-00000.gz\thttp://other.example/cdx-00000.gz\n")
    monkeypatch.setattr(Location, "status", fail)
    assert main(["verify", "-p", "1", "C"]) == status
    assert f"C/cluster.loc: {reason}" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "words", [["compact", "C"], ["remove", "C", "a.com"], ["add", "C", "--cdx", "D.cdxj"]]
)
def test_a_cluster_whose_compressor_is_not_installed_is_not_changed(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("C/cluster.json").read_bytes()
    monkeypatch.setitem(sys.modules, "zlib_ng", None)
    assert main([*words, "-q", "-p", "1"]) == 2
    told = "cdxmill: the compressor zlib-ng is not installed (pip install zlib-ng)\n"
    assert capsys.readouterr().err == told
    assert Path("C/cluster.json").read_bytes() == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("numlines", "shards"),
    [("1", "1"), ("1", "2"), ("9", "1"), ("9", "2")],
    ids=["copied", "copied-2", "sorted", "sorted-2"],
)
def test_no_archive_of_a_cluster_that_was_not_added_is_listed(
    numlines: str, shards: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of its archives has the name of another one; the cluster is refused with all of them."""
    words = ["zipnum", "-q", "-p", "1", "--replace"]
    for name in "CD":
        assert main([*words, "-s", "1", "--numlines", "1", "-o", name, f"{name}.cdxj"]) == 0
        place = f"/archives/{name.lower()}.warc.gz"
        Path(name, "archives.tsv").write_text(f"{name.lower()}.warc.gz\t{place}\n")
    Path("E.cdxj").write_text(line("m", "e") + line("n", "c"))
    assert main([*words, "-s", shards, "--numlines", numlines, "-o", "E", "E.cdxj"]) == 0
    Path("E/archives.tsv").write_text("c.warc.gz\t/elsewhere/c.warc.gz\ne.warc.gz\t/elsewhere/e.warc.gz\n")
    assert add("E", "D") == 1
    told = capsys.readouterr().err
    assert told.count("the cluster has another archive of this name, /archives/c.warc.gz") == 1
    listed = [row.split("\t")[0] for row in Path("C/archives.tsv").read_text().splitlines()]
    assert listed == ["c.warc.gz", "d.warc.gz"]
    assert lines_of("C") == 4


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("mode", [[], ["--mode", "overlay"], ["--mode", "rewrite"]], ids=" ".join)
def test_files_and_clusters_are_added_together(mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("none.cdxj").touch()
    Path("f.cdxj").write_text(line("f", "f"))
    assert add(*mode, "none.cdxj") == 0
    assert "C: 0 lines added; unchanged" in capsys.readouterr().err
    assert add(*mode, "D", "f.cdxj", "none.cdxj") == 0
    assert "failure" not in capsys.readouterr().err
    assert main(["lookup", "C", "*"]) == 0
    assert re.findall(r"(\w)\.warc\.gz", capsys.readouterr().out) == ["c", "c", "f", "d", "d"]
    assert len(read_manifest(locate("C/cluster.json")).overlays) == ("overlay" in mode)
    assert add(*mode, "D", "f.cdxj") == 0
    assert "3 were there already; unchanged" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_an_archive_with_another_content_at_its_place_is_the_same_archive() -> None:
    make("E", "c", "m")
    assert add("E") == 0
    assert lines_of("C") == 3


@pytest.mark.usefixtures("here")
def test_an_overlay_without_lines_leaves_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.cdxj").write_text(line("f", "f"))
    assert add("--mode", "overlay", "--keep-old", "0", "f.cdxj") == 0
    assert list(Path("C").glob("*overlay*"))
    assert main(["remove", "-p", "1", "--keep-old", "0", "C", "f.com"]) == 0
    assert "1 line removed; 1 of 2 files changed" in capsys.readouterr().err
    assert list(Path("C").glob("*overlay*")) == []
    assert main(["remove", "-p", "1", "--keep-old", "0", "C", "b.com"]) == 0
    assert "1 line removed; 1 of 1 shard changed" in capsys.readouterr().err
    assert lines_of("C") == 1


def merge(*clusters: str) -> int:
    return main(["merge", "-p", "1", "-o", "new", *clusters])


@pytest.mark.usefixtures("here")
def test_an_outage_stops_a_merge(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*given: object) -> None:
        raise OutageError("D/cluster.json", "did not answer")

    monkeypatch.setattr(claims, "read_manifest", fail)
    assert merge("C", "D") == 3
    assert "did not answer" in capsys.readouterr().err
    assert not Path("new").exists()


@pytest.mark.usefixtures("here")
def test_an_engine_adds_few_lines_to_the_shards_of_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks write to a directory of the run, and make no overlay."""
    monkeypatch.setattr(add_clusters, "LARGE", 1)
    monkeypatch.setattr(add_clusters, "MOST_ADDED", 9)
    asked = Adding("C", ["D"], cdx=True, processes=1, keep_old=0)
    done = add_all(asked, Failures(printed=False), engine=run_tasks)
    assert (done.counts.added, done.overlay, lines_of("C")) == (2, "", 4)
    assert main(["verify", "-q", "-p", "1", "C"]) == 0
    assert [path.name for path in Path("C").iterdir() if path.name.startswith(".run")] == []
    asked.mode = "overlay"
    with pytest.raises(UsageError, match="so only cdxmill add without --engine can add it"):
        add_all(asked, Failures(printed=False), engine=run_tasks)
