"""Other programs read what `recompress` writes: FastWARC and the program zstd the .zst files, warcio the .gz files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from cdxmill.cli.main import main

from .archives import pywb_archives

GZ = [archive.path for archive in pywb_archives() if archive.path.name.endswith(".warc.gz")]
Records = list[tuple[str, bytes]]
"""The id and the block of each record."""


def by_warcio(path: Path) -> Records:
    """With `no_record_parse`, the block is read as it is."""
    with path.open("rb") as file:
        return [
            (record.rec_headers.get_header("WARC-Record-ID") or "", record.raw_stream.read())
            for record in ArchiveIterator(file, no_record_parse=True)
        ]


def by_fastwarc(path: Path) -> Records:
    """FastWARC finds the dictionary in the file. It needs no setting, but leaves an HTTP head only with parse_http=False."""
    records = FastIterator(str(path), record_types=WarcRecordType.any_type, parse_http=False)
    return [(record.headers["WARC-Record-ID"], record.reader.read()) for record in records]


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples: list[bytes | bytearray | memoryview] = [block for path in GZ for _, block in by_warcio(path)]
    path = tmp_path_factory.mktemp("dictionary") / "d"
    path.write_bytes(zstandard.train_dictionary(8192, samples, dict_id=40000).as_bytes())
    return path


@pytest.mark.parametrize("options", [(), ("--dictionary",), ("--to", "gz"), ("--group",)], ids=" ".join)
def test_other_readers_find_the_same_records(
    options: tuple[str, ...], dictionary: Path, tmp_path: Path
) -> None:
    given = [*options, str(dictionary)] if "--dictionary" in options else [*options]
    assert main(["recompress", "-q", "-p", "1", "-o", str(tmp_path), *given, *map(str, GZ)]) == 0
    number = 0
    for path in GZ:
        expected = by_warcio(path)
        to = "gz" if "gz" in options else "zst"
        new = tmp_path / path.name.replace(".gz", f".{to}")
        assert by_fastwarc(new) == expected
        if to == "gz":
            assert by_warcio(new) == expected
        else:
            _check_by_program(new, path, dictionary if "--dictionary" in options else None)
        number += len(expected)
    assert number > 350


def _check_by_program(new: Path, old: Path, dictionary: Path | None) -> None:
    """`zstd -d` writes the bytes of the old archive. It has to be given the dictionary."""
    zstd = shutil.which("zstd")
    if zstd is None:
        pytest.skip("no program zstd")
    given = [] if dictionary is None else ["-D", str(dictionary)]
    content = subprocess.run([zstd, "-dcq", *given, str(new)], capture_output=True, check=True).stdout
    assert content == subprocess.run(["zcat", str(old)], capture_output=True, check=True).stdout
