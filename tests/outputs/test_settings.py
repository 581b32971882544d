"""What the start of an archive shows: whether it was made of another archive."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from cdxmill.inputs.named import Input
from cdxmill.outputs.settings import ArchiveSettings
from cdxmill.storage.location import locate

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
