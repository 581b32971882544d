"""`build`: archives that would get the same name in the cluster's folder of indexes."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..conftest import RunCdxmill


def test_two_archives_with_one_name_are_refused_before_anything_is_written(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/e").mkdir()
    for folder in ("d", "d/e"):
        shutil.copy(pywb_warcs / "iana.warc.gz", tmp_path / folder / "a.warc.gz")
    done = run_cdxmill("build", "-s", "1", "-o", "C", "a.warc.gz", "../a.warc.gz", cwd=tmp_path / "d/e")
    assert done.returncode == 2
    assert b"a.warc.gz and ../a.warc.gz would get the same output name a.warc.gz.cdx.gz" in done.stderr
    assert not (tmp_path / "d/e/C").exists()


def test_an_archive_that_is_named_twice_is_indexed_once(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    archive = pywb_warcs / "iana.warc.gz"
    (tmp_path / "list").write_text(f"{archive}\n{archive}\n")
    for _ in range(2):
        done = run_cdxmill("build", "-s", "1", "-o", tmp_path / "C", "--manifest", tmp_path / "list")
        assert done.returncode == 0
        assert b"171 lines" in done.stderr
