"""What `recompress`, `verify OLD NEW` and `build` do if a disk or a file fails in the middle: nothing wrong gets its name."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from pathlib import Path

import pytest

from cdxmill import recompress as recompress_now
from cdxmill.cli.main import main
from cdxmill.commands.per_archive import recompress_one
from cdxmill.outputs.record import Summed

from ..material.failing_disk import fail_reads


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The archives a.warc.gz and b.arc.gz."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    shutil.copyfile(pywb_warcs / "example.arc.gz", "b.arc.gz")
    return tmp_path


def recompress(*words: str) -> int:
    return main(["recompress", "-p", "1", *words])


@pytest.mark.usefixtures("here")
def test_an_archive_that_reads_back_otherwise_does_not_get_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    is_on_disk = Summed.is_on_disk

    def spoiled(file: Summed) -> bool:
        """A disk or a memory that has changed a byte."""
        raw = file._file
        raw.flush()
        os.pwrite(raw.fileno(), b"\xff", 40)
        return is_on_disk(file)

    assert recompress("-q", "-o", "out", "a.warc.gz") == 0
    before = Path("out/a.warc.zst").read_bytes()
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(Summed, "is_on_disk", spoiled)
        assert recompress("-q", "--replace", "-o", "out", "--level", "1", "a.warc.gz") == 3
    assert (
        "out/a.warc.zst: has other bytes than were written; check the disk and the memory"
        in capsys.readouterr().err
    )
    assert Path("out/a.warc.zst").read_bytes() == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["a.warc.gz", "out/a.warc.zst"])
def test_verify_tells_a_disk_that_fails_from_records_that_differ(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompress("-q", "-o", "out", "a.warc.gz", "b.arc.gz") == 0
    Path("old").mkdir()
    for archive in ("a.warc.gz", "b.arc.gz"):
        Path(archive).rename(f"old/{archive}")
    capsys.readouterr()
    with monkeypatch.context() as patch:
        fail_reads(patch, name)
        assert main(["verify", "-p", "1", "old", "out"]) == 3
    told = capsys.readouterr().err
    assert f"{Path(name).name}: cannot be read (Input/output error)" in told
    assert "differ" not in told


@pytest.mark.usefixtures("here")
def test_an_estimate_tells_which_archive_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        fail_reads(patch, "a.warc.gz")
        assert recompress("--estimate", "a.warc.gz", "b.arc.gz") == 3
    told = capsys.readouterr().err
    assert "a.warc.gz: cannot be read (Input/output error)" in told
    assert "response text/html" in told


@pytest.mark.usefixtures("here")
def test_content_without_a_header_at_its_start_is_another_kind(capsys: pytest.CaptureFixture[str]) -> None:
    archive = Path("a.warc.gz")
    archive.write_bytes(gzip.compress(b"\r\n" * 4) + archive.read_bytes())
    assert recompress("--estimate", "a.warc.gz") == 0
    assert "other kinds" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_no_arc_file_gets_a_record_of_a_warc_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert recompress("-q", "--describe", "-o", "described", "b.arc.gz") == 0
    assert recompress("-q", "-o", "out", "b.arc.gz") == 0
    assert Path("described/b.arc.zst").read_bytes() == Path("out/b.arc.zst").read_bytes()


@pytest.mark.usefixtures("here")
def test_a_long_table_of_offsets_is_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = []
    for rows in (10_000, 2, 3):
        monkeypatch.setattr(recompress_one, "_ROWS", rows)
        recompress_now("a.warc.gz", output=f"out{rows}", offsets=True, processes=1)
        tables.append(gzip.decompress(Path(f"out{rows}/a.warc.zst.offsets.gz").read_bytes()))
    assert tables[0].count(b"\n") > 3
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("links", [True, False])
def test_a_file_system_without_hard_links_costs_no_index(
    links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    build = ["build", "-q", "-p", "1", "-s", "1", "-o", "C"]
    assert main([*build, "a.warc.gz"]) == 0
    before = [path.stat().st_ino for path in Path("C/cdx").glob("a*.cdx.gz")]
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert main([*build, "--replace", "a.warc.gz", "b.arc.gz"]) == 0
    after = [path.stat().st_ino for path in Path("C/cdx").glob("a*.cdx.gz")]
    assert (before == after) == links
    assert len(list(Path("C/cdx").glob("*.cdx.gz"))) == 2
    assert main([*build, "a.warc.gz", "b.arc.gz"]) == 0


@pytest.mark.usefixtures("here")
def test_a_list_of_archives_that_cannot_be_read_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "-q", "-o", "a.cdxj", "a.warc.gz"]) == 0
    Path("places.tsv").write_text("a.warc.gz\ta.warc.gz\n")
    words = ["copy", "-q", "-p", "1", "-o", "out", "--archives", "places.tsv", "a.cdxj"]
    with monkeypatch.context() as patch:
        fail_reads(patch, "places.tsv")
        assert main(words) == 3
    assert "places.tsv: cannot be read (Input/output error)" in capsys.readouterr().err
    assert main(words) == 0


@pytest.mark.usefixtures("here")
def test_without_an_output_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().iterdir())
    assert recompress("a.warc.gz") == 2
    assert "missing --output DIR; or use --estimate" in capsys.readouterr().err
    assert sorted(Path().iterdir()) == before
