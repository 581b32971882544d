"""`build`: its archives are told apart, and are listed in archives.tsv."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage.location import Location

from ..conftest import RunCdxmill
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
        assert (listed.read_text().count("\n") if listed.exists() else 0) == 2 - number


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
