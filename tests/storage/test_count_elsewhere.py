"""`count` reads archives behind URLs as those on disk, and writes its output there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage.location import join, locate

from .range_server import RangeServer

NAMES = ("example.warc.gz", "iana.warc.gz", "example.arc")


def counted(what: str, out: Path, *inputs: str | Path) -> bytes:
    """The counts of whole archives on this machine."""
    assert main(["count", what, "-q", "--replace", "-o", str(out), *map(str, inputs)]) == 0
    return out.read_bytes()


def test_archives_and_output_are_elsewhere(
    elsewhere: str, pywb_warcs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = counted("tags", tmp_path / "tags", *(pywb_warcs / name for name in NAMES))
    for name in NAMES:
        with locate(join(elsewhere, "warcs", name)).write_atomic() as file:
            file.write((pywb_warcs / name).read_bytes())
    call = ["count", "tags", "-p", "2", "-o"]
    for name in ("tags.tsv", "tags.tsv.gz"):
        assert main([*call, join(elsewhere, name), join(elsewhere, "warcs")]) == 0
    found = locate(join(elsewhere, "tags.tsv.gz")).read_bytes()
    assert locate(join(elsewhere, "tags.tsv")).read_bytes() == gzip.decompress(found) == expected
    capfd.readouterr()
    assert main([*call, join(elsewhere, "tags.tsv"), join(elsewhere, "warcs", "iana.warc.gz")]) == 2
    assert "--replace" in capfd.readouterr().err
    assert locate(join(elsewhere, "tags.tsv")).read_bytes() == expected
    one = [join(elsewhere, "warcs", "iana.warc.gz"), "--replace"]
    assert main([*call, join(elsewhere, "tags.tsv"), *one]) == 0
    assert locate(join(elsewhere, "tags.tsv")).read_bytes() == counted(
        "tags", tmp_path / "tags", pywb_warcs / "iana.warc.gz"
    )
    assert locate(elsewhere).entries().keys() == {"warcs", "tags.tsv", "tags.tsv.gz"}


def test_damage_elsewhere_is_reported_and_nothing_is_written_if_all_fails(
    elsewhere: str, pywb_warcs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = (pywb_warcs / "iana.warc.gz").read_bytes()
    with locate(join(elsewhere, "cut.warc.gz")).write_atomic() as file:
        file.write(whole[:-20])
    (tmp_path / "cut.warc.gz").write_bytes(whole[:-20])
    for number, place in enumerate((str(tmp_path / "cut.warc.gz"), join(elsewhere, "cut.warc.gz"))):
        assert main(["count", "tags", "-q", "-o", str(tmp_path / f"{number}"), place]) == 1
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"{place}@")
        assert line.endswith(": the file is truncated inside a gzip member; fetch the file again")
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes() != b""
    absent = join(elsewhere, "absent.warc.gz")
    assert main(["count", "tags", "-q", "-o", join(elsewhere, "none"), absent]) == 1
    said = capfd.readouterr().err
    assert f"{absent}: cannot be read (" in said
    assert "none: was not written, because nothing was counted" in said
    assert locate(elsewhere).entries().keys() == {"cut.warc.gz"}


def test_a_server_in_trouble_costs_no_count(
    server: RangeServer, pywb_warcs: Path, tmp_path: Path, hurry: None
) -> None:
    for name in NAMES:
        file = server.add(f"/{name}", (pywb_warcs / name).read_bytes())
        file.statuses, file.drops, file.cuts = [503, 500], 1, [100, 1000]
    urls = [f"{server.url}/{name}" for name in NAMES]
    assert main(["count", "tags", "-q", "-p", "1", "-o", str(tmp_path / "out"), *urls]) == 0
    expected = counted("tags", tmp_path / "tags", *(pywb_warcs / name for name in NAMES))
    assert (tmp_path / "out").read_bytes() == expected


def test_of_an_archive_that_cannot_be_read_to_its_end_nothing_is_counted(
    server: RangeServer, pywb_warcs: Path, tmp_path: Path, hurry: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """So the counts of a second run with it can be added."""
    broken = server.add("/broken.warc.gz", (pywb_warcs / "iana.warc.gz").read_bytes())
    broken.cuts = [1 << 18, *[0] * 1000]
    server.add("/good.warc.gz", (pywb_warcs / "example.warc.gz").read_bytes())
    urls = [f"{server.url}/{name}.warc.gz" for name in ("broken", "good")]
    assert main(["count", "tags", "-q", "-p", "1", "-o", str(tmp_path / "out"), *urls]) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"{urls[0]}: ")
    assert line.endswith("; run it again")
    assert (tmp_path / "out").read_bytes() == counted("tags", tmp_path / "t", pywb_warcs / "example.warc.gz")
