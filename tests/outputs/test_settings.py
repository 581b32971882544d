"""What decides how an output looks, and what its start shows: whether it was made of an archive."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
import zstandard

from cdxmill.cli.main import main
from cdxmill.errors import OutageError
from cdxmill.inputs.named import Input, named_input
from cdxmill.outputs.proofs import is_proof, proof_beside, read_proof
from cdxmill.outputs.settings import ArchiveSettings, LineSettings, TableSettings
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.lines.move_lines import TableNames
from cdxmill.storage.location import locate

from ..material.failing_disk import fail_reads

ONE, OTHER = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://%b/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Length: 2\r\n\r\nHi\r\n\r\n" % host
    for host in (b"a.com", b"b.com")
)
BROKEN = b"this is no archive"


@pytest.mark.parametrize(
    ("output", "archive", "fits"),
    [
        (gzip.compress(ONE, mtime=0), ONE, True),
        (zstandard.compress(ONE), gzip.compress(ONE, mtime=0), True),
        (gzip.compress(OTHER, mtime=0), ONE, False),
        (gzip.compress(ONE.replace(b"Hi", b"Hi!").replace(b": 2", b": 3")), ONE, False),
        (gzip.compress(ONE, mtime=0), BROKEN, True),
        (gzip.compress(ONE, mtime=0), b"", True),
        (BROKEN, ONE, False),
        (BROKEN, BROKEN, False),
        (b"", ONE, False),
    ],
)
def test_an_output_has_the_first_record_of_its_archive(
    output: bytes, archive: bytes, fits: bool, tmp_path: Path
) -> None:
    """An archive whose first record cannot be read does not tell: the output may be of it."""
    for name, data in (("output", output), ("archive", archive)):
        (tmp_path / name).write_bytes(data)
    given = Input(locate(str(tmp_path / "archive")), "archive", "archive", "archive")
    assert ArchiveSettings(b"", ()).fits(locate(str(tmp_path / "output")), given) is fits


JSON = b'com,a)/ 2020 {"url": "http://a.com/", "filename": "%b", "offset": "1", "length": "2"}\n'
CDX11 = b"com,a)/ 2020 http://a.com/ text/html 200 A - - 2 1 %b\n"


@pytest.mark.parametrize(
    ("output", "fits", "is_own"),
    [
        (gzip.compress(JSON % b"a.warc.gz"), True, True),
        (JSON % b"a.warc.gz", True, True),
        (b"\n CDX N b a\n" + JSON % b"a.warc.gz" + JSON % b"b.warc.gz", True, True),
        (JSON % b"x/a.warc.gz", True, False),
        (JSON % b"b.warc.gz", False, False),
        (CDX11 % b"a.warc.gz", True, False),
        (b"", True, True),
        (b" CDX N b a\n", True, True),
        (b"com,a)/ 2020 {}\n", False, False),
        (b"precious", False, False),
        (b"precious {", False, False),
        (gzip.compress(JSON % b"a.warc.gz")[:20] + bytes(99), False, False),
    ],
)
def test_an_index_has_the_name_of_its_archive_in_its_first_line(
    output: bytes, fits: bool, is_own: bool, tmp_path: Path
) -> None:
    (tmp_path / "output").write_bytes(output)
    settings, place = LineSettings(CaptureOptions(), "cdxj"), locate(str(tmp_path / "output"))
    archive = named_input("a.warc.gz", "a.warc.gz")
    assert (settings.fits(place, archive), settings.is_own(place, archive)) == (fits, is_own)
    other = LineSettings(CaptureOptions(), "cdx11")
    assert other.is_own(place, archive) is (output in (b"", b" CDX N b a\n", CDX11 % b"a.warc.gz"))
    assert not settings.is_proven(place, archive)


@pytest.mark.parametrize(
    ("output", "fits"),
    [
        (JSON % b"new.warc.zst", True),
        (b"", True),
        (b"com,b)/ 2020 {}\n", False),
        (b"com,a)/ 2021 {}\n", False),
        (b"com,a)/\n", False),
        (b"com,a)/ 2020 {}\n", True),
    ],
)
def test_an_index_whose_lines_were_moved_has_the_first_key_and_time(
    output: bytes, fits: bool, tmp_path: Path
) -> None:
    for name, data in (("output", output), ("index", JSON % b"a.warc.gz"), ("empty", b"")):
        (tmp_path / name).write_bytes(data)
    settings, place = TableSettings(TableNames({}), ()), locate(str(tmp_path / "output"))
    index, empty = (named_input(tmp_path / name, name) for name in ("index", "empty"))
    assert settings.fits(place, index) is fits
    assert settings.fits(place, empty)
    assert not settings.is_proven(place, index)


def test_each_setting_counts() -> None:
    tables = TableNames({})
    digests = [
        LineSettings(CaptureOptions(), "cdxj").digest("a"),
        LineSettings(CaptureOptions(), "cdxj").digest("b"),
        LineSettings(CaptureOptions(), "cdx11").digest("a"),
        LineSettings(CaptureOptions(records=None), "cdxj").digest("a"),
        LineSettings(CaptureOptions(records=frozenset({b"revisit"})), "cdxj").digest("a"),
        LineSettings(CaptureOptions(keep_www=True), "cdxj").digest("a"),
        TableSettings(tables, ()).digest("a"),
        TableSettings(tables, (("a", 1),)).digest("a"),
        ArchiveSettings(b"", ()).digest("a"),
        ArchiveSettings(b"", ()).digest("b"),
        ArchiveSettings(b"", (1,)).digest("a"),
        ArchiveSettings(b"x", ()).digest("a"),
    ]
    assert len(set(digests)) == len(digests)
    assert {len(digest) for digest in digests} == {16}
    assert TableSettings(tables, ()).digest("b") == TableSettings(tables, ()).digest("a")


def test_types_of_records_have_no_order() -> None:
    pairs = combinations([b"%d" % number for number in range(100)], 2)
    sets = ((frozenset([one, other]), frozenset([other, one])) for one, other in pairs)
    orders = next(two for two in sets if [*two[0]] != [*two[1]])  # both have one place in a set
    assert len({LineSettings(CaptureOptions(records=one), "cdxj").digest("a") for one in orders}) == 1


@pytest.fixture
def proven(tmp_path: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`a.warc.gz`, and `out/a.warc.zst` with its proof, in the current directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    assert main(["recompress", "-q", "-p", "1", "-o", "out", "a.warc.gz"]) == 0
    return tmp_path


@pytest.mark.usefixtures("proven")
def test_the_proof_beside_an_archive_is_known() -> None:
    place = proof_beside(locate("out/a.warc.zst"))
    assert is_proof(place)
    found = read_proof(place)
    assert found is not None
    assert found.old_file.size == ARCHIVE.stat().st_size


ARCHIVE, PROOF = Path("a.warc.gz"), Path("out/a.warc.zst.proof.json")


@pytest.mark.usefixtures("proven")
@pytest.mark.parametrize(
    ("change", "is_proven"),
    [
        (lambda: None, True),
        (lambda: ARCHIVE.write_bytes(ARCHIVE.read_bytes()[:-1] + b"x"), False),
        (lambda: ARCHIVE.write_bytes(ARCHIVE.read_bytes() + b"x"), False),
        (ARCHIVE.unlink, False),
        (PROOF.unlink, False),
        (lambda: PROOF.write_bytes(b"mine"), False),
    ],
)
def test_a_proof_is_of_the_bytes_of_an_archive(change: Callable[[], object], is_proven: bool) -> None:
    change()
    settings, archive = ArchiveSettings(b"", ()), named_input(ARCHIVE, "a.warc.gz")
    assert settings.is_proven(locate("out/a.warc.zst"), archive) is is_proven


@pytest.mark.usefixtures("proven")
def test_a_disk_that_fails_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, archive = ArchiveSettings(b"", ()), named_input(ARCHIVE, "a.warc.gz")
    fail_reads(monkeypatch, "a.warc.gz")
    for ask in (settings.is_proven, settings.fits):
        with pytest.raises(OutageError):
            ask(locate("out/a.warc.zst"), archive)
