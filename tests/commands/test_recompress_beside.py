"""`recompress` and an index beside the new archive: that of somebody else stays."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.outputs.side_files import retire
from cdxmill.storage.location import locate

from ..conftest import RunCdxmill


@pytest.mark.parametrize("options", [[], ["--index"], ["--group"]])
@pytest.mark.parametrize("index", [["-o", "out"], ["-o", "out/a.cdx.gz"]])
def test_an_index_of_the_old_archive_stays(
    index: list[str], options: list[str], pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The new archive has the name of the old one, and its index would have the name of that index."""
    shutil.copyfile(pywb_warcs / "example.warc.gz", tmp_path / "a.warc.gz")
    (tmp_path / "out").mkdir()
    assert run_cdxmill("index", *index, "a.warc.gz", cwd=tmp_path).returncode == 0
    before = (tmp_path / "out/a.cdx.gz").read_bytes()
    given = ["recompress", "--to", "gz", *options, "-o", "out", "a.warc.gz"]
    done = run_cdxmill(*given, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert b"out/a.cdx.gz: is not an index of a.warc.gz that recompress writes" in done.stderr
    assert (tmp_path / "out/a.cdx.gz").read_bytes() == before
    assert not (tmp_path / "out/a.warc.gz").exists()
    assert run_cdxmill(*given, "--replace", cwd=tmp_path).returncode == 0


def test_an_index_of_somebody_else_stays(pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    shutil.copyfile(pywb_warcs / "example.warc.gz", tmp_path / "a.warc.gz")
    index = tmp_path / "out/a.warc.zst.cdx.gz"
    index.parent.mkdir()
    index.write_bytes(gzip.compress(b"com,example)/ 2020 {}\n"))
    before = index.read_bytes()
    assert run_cdxmill("recompress", "-o", "out", "a.warc.gz", cwd=tmp_path).returncode == 0
    for _ in range(2):
        assert run_cdxmill("recompress", "--index", "-o", "out", "a.warc.gz", cwd=tmp_path).returncode == 2
    assert index.read_bytes() == before


def test_the_mark_of_a_removed_index_goes_when_the_index_is_written(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The index is removed before the archive changes, with a mark; a mark that stayed would have it written in each run."""
    given = ["recompress", "--index", "--offsets", "-o", "out", "a.warc.gz"]
    for number, name in enumerate(("example.warc.gz", "iana.warc.gz", "iana.warc.gz")):
        shutil.copyfile(pywb_warcs / name, tmp_path / "a.warc.gz")
        done = run_cdxmill(*given, *(["--replace"] if number else []), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.name[0] != ".") == NAMES
        assert list((tmp_path / "out").glob(".*.again")) == []


@pytest.mark.parametrize("killed", range(1, 8))
def test_what_a_killed_run_has_removed_is_written_again_without_its_option(
    killed: int, pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any of the index, the table and the proof. Each is of the same archive as before."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    call = ["recompress", "-q", "-p", "1", "-o", "out", "a.warc.gz"]
    assert main([*call, "--index", "--offsets"]) == 0
    before = [gzip.decompress(Path("out", name).read_bytes()) for name in NAMES[1:3]]
    for number, name in enumerate(NAMES[1:]):
        if killed >> number & 1:
            retire(locate(Path("out", name)))
    assert main(call) == 0
    assert sorted(path.name for path in Path("out").iterdir() if path.name not in OWN) == NAMES
    assert [gzip.decompress(Path("out", name).read_bytes()) for name in NAMES[1:3]] == before


INDEX, TABLE, PROOF = ".cdx.gz", ".offsets.gz", ".proof.json"


@pytest.mark.parametrize(
    ("first", "lost", "then", "is_written"),
    [
        ("", "", "", False),
        ("", "", "--update", False),
        ("", "", "--index", True),
        ("", "", "--offsets", True),
        ("--index", "", "--index", False),
        ("--offsets", "", "--offsets", False),
        ("--index", INDEX, "--index", True),
        ("--index", INDEX, "--index --update", True),
        ("--index", INDEX, "", False),
        ("--offsets", TABLE, "--offsets", True),
        ("--offsets", TABLE, "--offsets --update", True),
        ("--offsets", TABLE, "", False),
        ("", PROOF, "", True),
        ("", PROOF, "--update", False),
    ],
)
def test_an_archive_is_written_again_if_it_lacks_what_is_wanted(
    first: str,
    lost: str,
    then: str,
    is_written: bool,
    pywb_warcs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without --update, an archive needs its proof. What is not asked for is not missed."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    call, new = ["recompress", "-q", "-p", "1", "-o", "out", "a.warc.gz"], Path("out/a.warc.zst")
    assert main([*call, *first.split()]) == 0
    before = new.stat().st_ino
    Path(f"{new}{lost or '.none'}").unlink(missing_ok=True)
    assert main([*call, *then.split()]) == 0
    assert (new.stat().st_ino != before) == is_written
    assert Path(f"{new}{INDEX}").exists() == ("--index" in then or (first == "--index" and not lost))
    assert Path(f"{new}{TABLE}").exists() == ("--offsets" in then or (first == "--offsets" and not lost))
    assert Path(f"{new}{PROOF}").exists() == (is_written or lost != PROOF)


def test_an_index_of_the_old_archive_that_a_killed_run_has_marked_is_replaced(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The run, with --replace, was killed after the mark and before the index was removed."""
    shutil.copyfile(pywb_warcs / "example.warc.gz", tmp_path / "a.warc.gz")
    assert run_cdxmill("index", "-o", "out", "a.warc.gz", cwd=tmp_path).returncode == 0
    (tmp_path / "out/.a.cdx.gz.again").touch()
    done = run_cdxmill("recompress", "--to", "gz", "-o", "out", "a.warc.gz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"a.cdx.gz", ".a.cdx.gz.again"} & names == {"a.cdx.gz"}
    again = run_cdxmill("recompress", "--to", "gz", "--index", "-o", "out", "a.warc.gz", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_an_index_beside_its_archive_may_be_packed_by_another_program(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    shutil.copyfile(pywb_warcs / "example.warc.gz", tmp_path / "a.warc.gz")
    given = ["recompress", "--index", "-o", "out", "a.warc.gz"]
    assert run_cdxmill(*given, cwd=tmp_path).returncode == 0
    index = tmp_path / "out/a.warc.zst.cdx.gz"
    index.write_bytes(gzip.compress(gzip.decompress(index.read_bytes()), 1))
    done = run_cdxmill(*given, "--update", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


NAMES = ["a.warc.zst", "a.warc.zst.cdx.gz", "a.warc.zst.offsets.gz", "a.warc.zst.proof.json"]
OWN = {".outputs.tsv", "failures.tsv"}
"""The records of runs."""
