"""`build`: its archives are told apart, and are listed in archives.tsv."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.write import read_record
from cdxmill.commands.clusters import build as building
from cdxmill.commands.clusters.build import BuildSummary, build
from cdxmill.commands.clusters.zipnum import ClusterSummary
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.per_archive.index import IndexOptions, IndexSummary
from cdxmill.inputs.named import named_input
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location, locate
from tests.material.wacz_files import make_wacz
from tests.storage.range_server import serving

from ..conftest import RunCdxmill
from ..material.clock import Clock
from ..material.failing_disk import fail_reads


def test_archives_with_one_name_are_all_indexed(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "y/a").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    shutil.copy(pywb_warcs / "example.warc.gz", tmp_path / "y/a/w.warc.gz")
    shutil.copy(pywb_warcs / "iana.warc.gz", tmp_path / "a/w.warc.gz")
    archives = ["-d", "..", "a/w.warc.gz", "../a/w.warc.gz"]
    done = run_cdxmill("build", "-s", "1", "-o", "../C", *archives, cwd=tmp_path / "y")
    assert done.returncode == 0
    assert b"174 lines" in done.stderr
    assert len(list((tmp_path / "C/cdx").glob("w.warc.gz-*.cdx.gz"))) == 2


def test_an_archive_that_is_named_twice_is_indexed_once(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    archive = pywb_warcs / "iana.warc.gz"
    (tmp_path / "list").write_text(f"{archive}\n{archive}\n")
    for _ in range(2):
        done = run_cdxmill("build", "-s", "1", "-o", tmp_path / "C", "--manifest", tmp_path / "list")
        assert done.returncode == 0
        assert b"171 lines" in done.stderr


def test_a_lost_list_of_archives_is_written_again(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    call = ["build", "-s", "1", "-o", tmp_path / "C", pywb_warcs / "iana.warc.gz"]
    assert run_cdxmill(*call).returncode == 0
    archives = tmp_path / "C/archives.tsv"
    listed = archives.read_bytes()
    archives.unlink()
    assert run_cdxmill(*call).returncode == 0
    assert archives.read_bytes() == listed
    assert b"note" not in run_cdxmill(*call).stderr
    archives.write_bytes(b"iana.warc.gz\t/moved/iana.warc.gz\n")
    done = run_cdxmill(*call)
    assert done.returncode == 0
    assert b"archives.tsv: note: kept, but it was changed; use --replace" in done.stderr
    assert archives.read_bytes() == b"iana.warc.gz\t/moved/iana.warc.gz\n"
    assert run_cdxmill(*call, "--replace").returncode == 0
    assert archives.read_bytes() == listed


@pytest.mark.parametrize("place", ["http://127.0.0.1:1/C", "https://127.0.0.1:1/C", "file://elsewhere/C"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_else(
    place: str,
    pywb_warcs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["build", "-q", "-o", place, str(pywb_warcs / "example.warc.gz")]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"cdxmill: {place}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_exchange", [True, False])
def test_nothing_is_left_of_a_cluster_that_was_built_again(
    has_exchange: bool, pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the directory of its CDX files goes, but not what the user has in it."""
    if not has_exchange:
        monkeypatch.setattr(Location, "exchange", lambda one, other: False)
    monkeypatch.chdir(tmp_path)
    build = ["build", "-q", "-p", "1", "-s", "1", "--replace", "-o", "C"]
    assert main([*build, str(pywb_warcs / "iana.warc.gz")]) == 0
    assert main(["remove", "-q", "-p", "1", "--keep-old", "0", "C", "www.iana.org/about"]) == 0
    assert main([*build, str(pywb_warcs / "example.warc.gz")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["C"]
    assert [path.name[:7] for path in Path("C/cdx").glob("*.gz")] == ["example"]
    Path("C/cdx/mine").write_bytes(b"precious")
    assert main([*build, str(pywb_warcs / "iana.warc.gz")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["C"]
    assert Path("C/cdx/mine").read_bytes() == b"precious"
    assert [path.name[:4] for path in Path("C/cdx").glob("*.gz")] == ["iana"]


@pytest.fixture
def two(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The call that builds C from two archives."""
    monkeypatch.chdir(tmp_path)
    for name in ("iana.warc.gz", "example.warc.gz"):
        shutil.copy(pywb_warcs / name, name)
    return ["build", "-p", "1", "-s", "1", "-o", "C", "iana.warc.gz", "example.warc.gz"]


def test_without_an_archive_that_a_sick_disk_has_no_cluster_is_written(
    two: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The next run continues."""
    with monkeypatch.context() as patch:
        fail_reads(patch, "iana.warc.gz")
        assert main(two) == 3
    assert "C: no cluster was written, because 1 input could not be read" in capfd.readouterr().err
    assert not list(Path("C").glob("cluster.*"))
    assert main(two) == 0
    said = capfd.readouterr().err
    assert "171 captures of 1 archive (" in said
    assert "1 up to date" in said
    assert Path("C/archives.tsv").read_text().count("\n") == 2


def test_without_any_archive_that_can_be_read_no_cluster_is_written(
    two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    for name in two[-2:]:
        Path(name).unlink()
    assert main(two) == 1
    assert "C: no archive can be read, so no cluster was written" in capfd.readouterr().err
    assert not list(Path("C").glob("cluster.*"))


def test_a_cluster_that_is_replaced_gives_its_indexes_to_the_new_one(
    two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Archives that were indexed are not read again."""
    assert main(two[:-1]) == 0
    before = {path.name: path.stat().st_ino for path in Path("C/cdx").glob("*.gz")}
    capfd.readouterr()
    assert main([*two, "--replace"]) == 0
    said = capfd.readouterr().err
    assert " of 1 archive (" in said
    assert "1 up to date" in said
    after = {path.name: path.stat().st_ino for path in Path("C/cdx").glob("*.gz")}
    assert (len(before), len(after), before.items() <= after.items()) == (1, 2, True)


@pytest.mark.parametrize("number", [1, 2])
def test_an_archive_that_a_list_cannot_name_is_noted(
    number: int, two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    for name in two[-number:]:
        Path(name).rename(f"tab\t{name}")
    call = [*two[:-number], *(f"tab\t{name}" for name in two[-number:])]
    for _ in range(2):
        assert main(call) == 0
        notes = capfd.readouterr().err.count(
            "note: not in archives.tsv, because of a tab or a line end in its name"
        )
        assert notes == number
        listed = Path("C/archives.tsv")
        assert (listed.read_text().count("\n") if listed.exists() else None) == (2 - number or None)


def test_without_a_list_of_its_own_a_finished_cluster_leaves_a_list_that_is_there(
    two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("iana.warc.gz").rename("a\nb.warc.gz")
    call = [*two[:-2], "a\nb.warc.gz"]
    assert main(call) == 0
    Path("C/archives.tsv").write_text("mine\t/mine\n")
    for options in ([], ["--replace"]):
        capfd.readouterr()
        assert main([*call, *options]) == 0
        assert capfd.readouterr().err.count("note: not in archives.tsv") == 1
        assert Path("C/archives.tsv").read_text() == "mine\t/mine\n"


@pytest.mark.parametrize(("inputs", "left"), [(["new.cdxj"], 2), (["C/cdx/iana*.gz"], 1), (["C/cdx"], 0)])
def test_indexes_of_a_cluster_that_was_replaced_are_noted_if_the_new_one_is_not_of_them(
    inputs: list[str], left: int, two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(two) == 0
    Path("new.cdxj").write_bytes(b"com,example)/ 2020 {}\n")
    assert main(["zipnum", "-p", "1", "-s", "2", "--replace", "-o", "C", *inputs]) == 0
    said = capfd.readouterr().err
    what = {1: "1 index file", 2: "2 index files"}.get(left, "no")
    assert (f"C/cdx: note: still has {what} of the cluster that was replaced" in said) == (left > 0)
    assert ("still has" in said) == (left > 0)
    assert len(list(Path("C/cdx").glob("*.gz"))) == 2


def built(archives: list[str], failures: Failures, *, replace: bool = False) -> BuildSummary:
    """The summary of a build of C from these archives."""
    inputs = [named_input(path, path) for path in archives]
    return build(inputs, "C", IndexOptions(), ZipnumOptions(shards=1, replace=replace), failures)


@pytest.mark.parametrize("archive", ["C/example.warc.gz", "C/x.wacz/archive/example.warc.gz"])
def test_a_cluster_is_not_written_to_the_directory_of_its_archives(
    archive: str, two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("C").mkdir()
    Path("iana.warc.gz").rename("C/iana.warc.gz")
    data = Path("example.warc.gz").read_bytes()
    stored = Path(*Path(archive).parts[:2])
    stored.write_bytes(make_wacz({"archive/example.warc.gz": data}) if "wacz" in archive else data)
    before = sorted(Path("C").iterdir())
    assert main([*two[:-2], archive]) == 2
    said = capfd.readouterr().err
    assert said == "cdxmill: C: has archives that are read; choose another directory for the cluster\n"
    assert sorted(Path("C").iterdir()) == before


@pytest.mark.parametrize(
    ("is_whole", "archives", "files"),
    [
        (True, ["iana.warc.gz", "example.warc.gz"], ["cdx/iana", "cdx/example", "archives.tsv"]),
        (True, ["tab\t.warc.gz", "example.warc.gz"], ["cdx/tab_", "cdx/example", "archives.tsv"]),
        (True, ["tab\t.warc.gz"], ["cdx/tab_"]),
        (False, ["example.warc.gz", "absent.warc.gz"], ["cdx/example", "archives.tsv"]),
    ],
)
def test_a_cluster_knows_which_files_below_it_are_its_own(
    is_whole: bool, archives: list[str], files: list[str], two: list[str]
) -> None:
    shutil.copy("example.warc.gz", "tab\t.warc.gz")
    failures = Failures(printed=False)
    done = built(archives, failures)
    assert (failures.count == 0, done.indexed.files, done.cluster.by_size) == (is_whole, len(archives), False)
    record = read_record(locate("C"))
    assert record is not None
    names = [re.sub(r"\.warc\.gz-\w{16}\.cdx\.gz", "", name) for name in record.files]
    assert sorted(names) == sorted([*files, "cdx/.outputs.tsv", "cdx/failures.tsv"])


@pytest.mark.parametrize("change", ["content", "time", "--keep-www", "--seed 1", "--location /x"])
def test_archives_and_options_that_have_changed_make_it_another_cluster(
    change: str, two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(two) == 0
    assert built(two[-2:], Failures()).indexed == IndexSummary(files=0, kept=2, captures=0, bytes=0)
    if change == "time":
        os.utime("iana.warc.gz", (5, 5))
    elif change == "content":
        shutil.copy("example.warc.gz", "iana.warc.gz")
    options = change.split() if change.startswith("-") else []
    assert main([*two, *options]) == 2
    assert "C: already has a cluster of other inputs or options" in capfd.readouterr().err


def test_a_remote_archive_is_not_asked_for_again(two: list[str]) -> None:
    with serving() as server:
        server.add("/a.warc.gz", Path("example.warc.gz").read_bytes())
        url = f"{server.url}/a.warc.gz"
        assert built([url], Failures()).cluster.new
        before = len(server.seen)
        assert not built([url], Failures()).cluster.new
        assert len(server.seen) == before


def test_indexes_are_not_written_through_a_link(two: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("C").mkdir()
    Path("mine").mkdir()
    Path("C/cdx").symlink_to("../mine")
    assert main(two) == 2
    assert "C/cdx: is a symbolic link, and cdxmill needs this name" in capfd.readouterr().err
    assert list(Path("mine").iterdir()) == []


def test_without_hard_links_a_replacement_that_was_stopped_keeps_what_it_has_indexed(
    two: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(path: Path, target: Path) -> None:
        raise PermissionError

    assert main(two[:-1]) == 0
    monkeypatch.setattr(Path, "hardlink_to", fails)
    with monkeypatch.context() as patch:
        fail_reads(patch, "example.warc.gz")
        assert main([*two, "--replace"]) == 3
    assert " of 2 archives (" not in capfd.readouterr().err
    assert main([*two, "--replace"]) == 0
    said = capfd.readouterr().err
    assert " of 1 archive (" in said
    assert "1 up to date" in said


def test_an_index_of_an_archive_that_is_gone_has_the_format_of_the_others(
    two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fail_reads(patch, "example.warc.gz")
        assert main(two) == 3
    Path("iana.warc.gz").unlink()
    capfd.readouterr()
    assert main([*two, "--cdx11"]) == 2
    said = re.sub(r"\.warc\.gz-\w{16}", "", capfd.readouterr().err)
    assert re.search(r"C/cdx/iana.cdx.gz is CDXJ, but .*C/cdx/example.cdx.gz is CDX with 11 fields", said)
    assert not Path("C/cluster.json").exists()


@pytest.mark.parametrize(
    ("new", "seconds", "text"),
    [
        (False, 2.0, "C: 3 lines in 1 block, 1 shard, 9 B, 0 duplicate lines removed; unchanged, because it has these inputs already"),
        (True, 2.0, "3 captures of 2 archives (1.0 KiB)\nC: 3 lines in 1 block, 1 shard, 9 B, 0 duplicate lines removed\ndone in 2 s, 512 B of archives per second"),
        (True, 0.0, "3 captures of 2 archives (1.0 KiB)\nC: 3 lines in 1 block, 1 shard, 9 B, 0 duplicate lines removed\ndone in under 1 s, 976.6 MiB of archives per second"),
    ],
)  # fmt: skip
def test_the_closing_lines_tell_of_the_indexes_the_cluster_and_the_time(
    new: bool, seconds: float, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    summary = BuildSummary(IndexSummary(2, 0, 3, 1024), ClusterSummary(1, 3, 1, 0, 9, new=new), seconds)
    assert summary.report(Failures(), "C") == text


def test_two_archives_with_one_name_in_the_index_are_refused_before_anything_is_written(
    two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("other").mkdir()
    shutil.copy("example.warc.gz", "other/iana.warc.gz")
    assert main([*two[:-2], "iana.warc.gz", "other/iana.warc.gz"]) == 2
    assert "iana.warc.gz and other/iana.warc.gz would both have the file name" in capfd.readouterr().err
    assert not Path("C").exists()


def test_what_is_excluded_does_not_come_back(two: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("C").mkdir()
    Path("C/exclude.txt").write_text("iana.org/*\nwww.iana.org/*\n")
    assert main(two) == 0
    said = capfd.readouterr().err
    assert re.search(r"note: \d+ lines skipped, as exclude\.txt says", said)
    assert b"org,iana)" not in Path("C/cluster.idx").read_bytes()


def test_the_size_decides_the_number_of_shards_if_nothing_else_does(two: list[str]) -> None:
    inputs = [named_input("example.warc.gz", "example.warc.gz")]
    found = build(inputs, "C", IndexOptions(), ZipnumOptions(shards=0), Failures())
    assert (found.cluster.by_size, found.cluster.shards) == (True, 1)


def test_indexes_that_were_deleted_are_not_said_to_stay(
    two: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(two) == 0
    next(Path("C/cdx").glob("iana*.gz")).unlink()
    Path("new.cdxj").write_bytes(b"com,example)/ 2020 {}\n")
    assert main(["zipnum", "-p", "1", "-s", "2", "--replace", "-o", "C", "new.cdxj"]) == 0
    assert "C/cdx: note: still has 1 index file of the cluster" in capfd.readouterr().err


def test_the_time_of_a_build_is_what_has_passed(two: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "time", Clock())
    assert built(["example.warc.gz"], Failures()).seconds == 0.0
