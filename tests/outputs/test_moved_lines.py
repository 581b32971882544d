"""Indexes that `reindex` has written before, and an index or a table that changes or is ambiguous."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """`iana.cdxj` of an archive, and in `new` two new archives of its base name, with their tables."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path("two", name).mkdir(parents=True)
        shutil.copyfile(pywb_warcs / "example.warc.gz", f"two/{name}/example.warc.gz")
    assert run("index", "-o", "x.cdxj", "two/a/example.warc.gz") == 0
    assert run("recompress", "-p", "1", "--offsets", "-o", "new", "two") == 0
    return tmp_path


def run(*words: str) -> int:
    return main([words[0], "-q", *words[1:]])


def reindex(tables: str, *words: str) -> int:
    return run("reindex", "-p", "1", "-o", "out", *words, "--offsets", tables, "x.cdxj")


@pytest.mark.usefixtures("here")
def test_the_output_of_an_index_that_was_written_again_is_old(capsys: pytest.CaptureFixture[str]) -> None:
    assert reindex("new/a") == 0
    before = Path("out/x.cdxj").read_bytes()
    os.utime("x.cdxj", (1, 1))
    assert reindex("new/a") == 2
    assert "out/x.cdxj: was made from an earlier state of x.cdxj" in capsys.readouterr().err
    assert reindex("new/a", "--replace") == 0
    assert reindex("new/a") == 0
    assert Path("out/x.cdxj").read_bytes() == before


@pytest.mark.usefixtures("here")
def test_a_copy_whose_archives_have_two_tables_was_not_made_with_these(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its lines would be skipped."""
    Path("out").mkdir()
    shutil.copyfile("x.cdxj", "out/x.cdxj")
    assert reindex("new") == 2
    assert "out/x.cdxj: was changed, or cdxmill has no record of it" in capsys.readouterr().err
    assert Path("out/x.cdxj").read_bytes() == Path("x.cdxj").read_bytes()
