"""`build`: its archives are told apart, and are listed in archives.tsv."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage.location import Location

from ..conftest import RunCdxmill


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
