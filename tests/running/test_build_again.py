"""A build that is stopped, or run again with other options or more archives, ends with the bytes of a fresh one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..conftest import RunCdxmill
from ..material.clusters import published
from ..material.processes import stopped_at
from .test_resume import FINISHED


@pytest.fixture(scope="module")
def archives(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many archives, so that indexing them takes a while."""
    directory = tmp_path_factory.mktemp("archives")
    for number in range(24):
        shutil.copyfile(pywb_warcs / "iana.warc.gz", directory / f"{number:02d}.warc.gz")
    return directory


BUILD = ["-s", "3", "-p", "2", "--compressor", "libdeflate", "--level", "11"]


@pytest.fixture(scope="module")
def whole(archives: Path, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build that nothing has stopped."""
    directory = tmp_path_factory.mktemp("whole") / "C"
    assert run_cdxmill("build", "-o", directory, *BUILD, archives).returncode == 0
    return directory


@pytest.mark.parametrize("moment", ["cdx/**/*.cdx.gz", ".work/job.json", ".work/sort-*.json"])
def test_a_killed_build_run_again_keeps_what_is_finished_and_ends_with_the_same_bytes(
    moment: str, archives: Path, whole: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    stopped_at(directory, moment, ["build", "-o", directory, *BUILD, archives])
    assert [name for name in FINISHED if (directory / name).exists()] == []
    finished = {
        path: path.stat().st_mtime_ns for path in (directory / "cdx").rglob("*.cdx.gz") if path.name[0] != "."
    }
    assert run_cdxmill("build", "-o", directory, *BUILD, archives).returncode == 0
    assert published(directory) == published(whole)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert {path.name for path in (directory / "cdx").rglob("*")} == {
        path.name for path in (whole / "cdx").rglob("*")
    }


def test_a_build_with_other_options_indexes_anew(
    archives: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    few = sorted(archives.iterdir())[:3]
    for options in [[], ["--dir-root", str(archives.parent)], ["--records", "revisit"], []]:
        fresh = tmp_path / "-".join(["fresh", *options[:1]])
        done = run_cdxmill("build", "--replace", "-o", tmp_path / "C", "-s", "2", *options, *few)
        assert done.returncode == 0, done.stderr
        if not fresh.exists():
            run_cdxmill("build", "-o", fresh, "-s", "2", *options, *few)
        assert published(tmp_path / "C") == published(fresh)


def test_a_build_with_more_archives_indexes_only_those(
    archives: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    more = pywb_warcs / "example.warc.gz"
    run_cdxmill("build", "-q", "-o", tmp_path / "C", "-s", "2", archives)
    done = run_cdxmill("build", "--replace", "-o", tmp_path / "C", "-s", "2", archives, more)
    assert done.returncode == 0, done.stderr
    assert b"3 captures of 1 archive " in done.stderr
    assert b"24 up to date" in done.stderr
    run_cdxmill("build", "-o", tmp_path / "at-once", "-s", "2", archives, more)
    assert published(tmp_path / "C") == published(tmp_path / "at-once")
