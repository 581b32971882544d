"""An archive that `add` refuses leaves nothing in the cluster, so it is refused again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from tests.conftest import RunCdxmill
from tests.material.cdx_files import cdxj, write_gzip


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        ("example.warc.gz", "iana.warc.gz", b"another archive of this name"),
        ("iana.warc.gz", "copy.warc.gz", b"has the records of iana.warc.gz"),
    ],
)
def test_a_refused_archive_is_refused_again(
    source: str, name: str, reason: bytes, pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    cluster, more = tmp_path / "C", tmp_path / "more"
    assert run_cdxmill("build", "-q", "-s", "2", "-o", cluster, pywb_warcs / "iana.warc.gz").returncode == 0
    before = content(cluster)
    more.mkdir()
    shutil.copy(pywb_warcs / source, more / name)
    for _ in range(2):
        done = run_cdxmill("add", "-q", cluster, more)
        assert done.returncode == 1
        assert reason in done.stderr
        after = content(cluster)
        assert after["archives.tsv"] == before["archives.tsv"]
        assert after["cluster.idx"] == before["cluster.idx"]
        assert [path for path in after if path.startswith("cdx/") and name in path] == [
            path for path in before if path.startswith("cdx/") and name in path
        ]


def lines_of(name: str, numbers: range) -> list[bytes]:
    return [
        cdxj(
            f"com,a)/{number:05d}",
            rest=f'{{"digest": "D{number}", "offset": "{number}", "filename": "{name}"}}',
        )
        for number in numbers
    ]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A cluster with 3000 lines of an archive, of which the first ones were removed for ever."""
    write_gzip(tmp_path / "a.cdxj.gz", lines_of("a.warc.gz", range(3000)))
    cdxmill.zipnum(tmp_path / "a.cdxj.gz", output=tmp_path / "C", numlines=500, shards=2)
    cdxmill.remove(tmp_path / "C", "a.com/000*", exclude=True, keep_old=0)
    return tmp_path / "C"


@pytest.mark.parametrize(
    ("numbers", "added"),
    [(range(3000), 0), (range(500, 2000), 0), (range(3001), 2901), (range(2900, 3100), 200), (range(50), 0)],
)
def test_an_archive_is_refused_only_if_the_cluster_has_all_of_it(
    numbers: range, added: int, made: Path
) -> None:
    """The index of a copy of an archive that was not finished begins like that of the archive."""
    write_gzip(made.parent / "b.cdxj.gz", lines_of("b.warc.gz", numbers))
    done = cdxmill.add(made, made.parent / "b.cdxj.gz", cdx=True)
    assert done.added == added
    is_copy = not added and len(numbers) > 100
    assert [one.path for one in done.failures] == ["b.warc.gz"] * is_copy


def test_a_truncated_copy_costs_no_other_file(made: Path) -> None:
    """Whether the cluster has all of it cannot be known, so it is reported as corrupt."""
    write_gzip(made.parent / "b.cdxj.gz", lines_of("b.warc.gz", range(500, 3000)))
    data = (made.parent / "b.cdxj.gz").read_bytes()
    (made.parent / "b.cdxj.gz").write_bytes(data[:-9])
    write_gzip(made.parent / "x.cdxj.gz", lines_of("x.warc.gz", range(4000, 4600)))
    done = cdxmill.add(made, [made.parent / f"{name}.cdxj.gz" for name in "bx"], cdx=True)
    assert done.added == 600
    assert [Path(one.path).name for one in done.failures] == ["b.cdxj.gz"]
    assert "truncated" in done.failures[0].reason


def test_a_cluster_that_begins_with_a_copy_is_added_with_all_that_follows(made: Path) -> None:
    """Later blocks have lines of an archive that is new."""
    lines = [*lines_of("b.warc.gz", range(200, 1200)), *lines_of("x.warc.gz", range(4000, 4600))]
    write_gzip(made.parent / "other.cdxj.gz", lines)
    cdxmill.zipnum(made.parent / "other.cdxj.gz", output=made.parent / "D", numlines=500, shards=1)
    done = cdxmill.add(made, made.parent / "D", cdx=True)
    assert (done.added, done.failures) == (1600, [])


def test_an_archive_that_has_changed_is_reported(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The lines of its earlier content lead to other records, or to none."""
    (tmp_path / "warcs").mkdir()
    archive = tmp_path / "warcs/a.warc.gz"
    shutil.copy(pywb_warcs / "example.warc.gz", archive)
    assert run_cdxmill("build", "-q", "-o", tmp_path / "C", archive).returncode == 0
    for changed in (False, True, False):
        if changed:
            archive.write_bytes((pywb_warcs / "post-test.warc.gz").read_bytes())
        done = run_cdxmill("add", tmp_path / "C", tmp_path / "warcs")
        assert (done.returncode, b"a.warc.gz: note: it has changed" in done.stderr) == (0, changed)
    assert run_cdxmill("remove", "-q", "--keep-old", "0", tmp_path / "C", "httpbin.org/*").returncode == 0
    assert b"note" not in run_cdxmill("add", tmp_path / "C", tmp_path / "warcs").stderr
