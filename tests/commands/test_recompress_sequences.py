"""`recompress` again and again with other options: an index beside a new archive is always that of this archive."""

from __future__ import annotations

import gzip
import os
import random
import shutil
from itertools import product
from pathlib import Path

import pytest

from ..conftest import RunCdxmill

STEPS = list(
    product(("--level=1", "--level=9"), ("", "--index"), ("", "--offsets"), ("", "--replace", "--update"))
)
SOURCES = ("example.warc.gz", "post-test.warc.gz")


def index_of(archive: str, directory: Path, run_cdxmill: RunCdxmill) -> bytes:
    return run_cdxmill("index", "-q", "-o", "-", archive, cwd=directory).stdout


@pytest.mark.parametrize("seed", range(25))
def test_what_stands_beside_a_new_archive_belongs_to_it(
    seed: int, pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    drawn = random.Random(seed)
    shutil.copyfile(pywb_warcs / SOURCES[0], tmp_path / "a.warc.gz")
    os.utime(tmp_path / "a.warc.gz", (5, 5))
    for number in range(4):
        if number and drawn.random() < 0.25:
            shutil.copyfile(pywb_warcs / drawn.choice(SOURCES), tmp_path / "a.warc.gz")
        options = [option for option in drawn.choice(STEPS) if option]
        done = run_cdxmill("recompress", "-q", "-p", "1", *options, "-o", ".", "a.warc.gz", cwd=tmp_path)
        assert done.returncode in (0, 2), done.stderr
        index = tmp_path / "a.warc.zst.cdx.gz"
        assert index.exists() or done.returncode == 2 or "--index" not in options
        if index.exists():
            assert gzip.decompress(index.read_bytes()) == index_of("a.warc.zst", tmp_path, run_cdxmill)
        table = tmp_path / "a.warc.zst.offsets.gz"
        assert table.exists() or done.returncode == 2 or "--offsets" not in options
        if table.exists():
            (tmp_path / "old.cdxj").write_bytes(index_of("a.warc.gz", tmp_path, run_cdxmill))
            moved = ["--offsets", table, "-o", "moved", "old.cdxj"]
            if done.returncode == 0:
                assert run_cdxmill("reindex", "-q", "--replace", *moved, cwd=tmp_path).returncode == 0
                found = (tmp_path / "moved/old.cdxj").read_bytes()
                assert found == index_of("a.warc.zst", tmp_path, run_cdxmill)


@pytest.mark.parametrize("options", [[], ["--index"], ["--group"]])
@pytest.mark.parametrize("index", [["-o", "out"], ["-o", "out/a.cdx.gz"]])
def test_an_index_of_the_old_archive_stays(
    index: list[str], options: list[str], pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The new archive has the name of the old one, and its index would have the name of that index."""
    shutil.copyfile(pywb_warcs / SOURCES[0], tmp_path / "a.warc.gz")
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
    shutil.copyfile(pywb_warcs / SOURCES[0], tmp_path / "a.warc.gz")
    index = tmp_path / "out/a.warc.zst.cdx.gz"
    index.parent.mkdir()
    index.write_bytes(gzip.compress(b"com,example)/ 2020 {}\n"))
    before = index.read_bytes()
    assert run_cdxmill("recompress", "-o", "out", "a.warc.gz", cwd=tmp_path).returncode == 0
    for _ in range(2):
        assert run_cdxmill("recompress", "--index", "-o", "out", "a.warc.gz", cwd=tmp_path).returncode == 2
    assert index.read_bytes() == before
