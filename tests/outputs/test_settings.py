"""What the start of an archive shows: whether it was made of another archive, and with which dictionary."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from cdxmill.formats.archives.framing import DICTIONARY_MAGIC
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Seen
from cdxmill.outputs.settings import ArchiveSettings
from cdxmill.storage.location import locate

ONE, OTHER = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://%b/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Length: 2\r\n\r\nHi\r\n\r\n" % host
    for host in (b"a.com", b"b.com")
)
DICTIONARY = DICTIONARY_MAGIC + (4).to_bytes(4, "little") + b"word"
SAME, FOREIGN = Seen(True, True), Seen(False, True)
BROKEN = b"this is no archive"


@pytest.mark.parametrize(
    ("output", "archive", "seen"),
    [
        (gzip.compress(ONE, mtime=0), ONE, SAME),
        (zstandard.compress(ONE), gzip.compress(ONE, mtime=0), SAME),
        (gzip.compress(OTHER, mtime=0), ONE, FOREIGN),
        (gzip.compress(ONE.replace(b"Hi", b"Hi!").replace(b": 2", b": 3")), ONE, FOREIGN),
        (gzip.compress(ONE, mtime=0), BROKEN, SAME),
        (gzip.compress(ONE, mtime=0), b"", SAME),
        (BROKEN, ONE, FOREIGN),
        (BROKEN, BROKEN, FOREIGN),
        (b"", ONE, FOREIGN),
    ],
)
def test_an_output_has_the_first_record_of_its_archive(
    output: bytes, archive: bytes, seen: Seen, tmp_path: Path
) -> None:
    """An archive whose first record cannot be read does not tell: the output may be of it."""
    assert looked_at(output, archive, b"", tmp_path) == seen


@pytest.mark.parametrize(
    ("start", "wanted", "is_same"),
    [
        (b"", b"", True),
        (DICTIONARY, b"", False),
        (DICTIONARY, DICTIONARY, True),
        (DICTIONARY, DICTIONARY[:-1] + b"t", False),
        (b"", DICTIONARY, False),
    ],
)
def test_an_output_has_the_dictionary_that_is_asked(
    start: bytes, wanted: bytes, is_same: bool, tmp_path: Path
) -> None:
    found = looked_at(start + zstandard.compress(ONE), BROKEN, wanted, tmp_path)
    assert found.has_settings == is_same


def looked_at(output: bytes, archive: bytes, dictionary: bytes, tmp_path: Path) -> Seen:
    for name, data in (("output", output), ("archive", archive)):
        (tmp_path / name).write_bytes(data)
    given = Input(locate(str(tmp_path / "archive")), "archive", "archive", "archive")
    return ArchiveSettings(dictionary, ()).look(locate(str(tmp_path / "output")), given)
