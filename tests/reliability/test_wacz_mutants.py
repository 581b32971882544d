"""Damaged WACZ files: each record has its line, or a failure is reported. No line has the range of anything else."""

from __future__ import annotations

import json
import os
import random
import zlib
from pathlib import Path

import pytest

from cdxmill.errors import InputError
from cdxmill.inputs.archives import find_archives
from cdxmill.options.archives import ArchiveInputs
from cdxmill.running.failures import Failures
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import index_archive
from cdxmill.storage.location import locate

from ..material.wacz_files import make_wacz, stream_wacz
from .sources import split_members

NAMES = ("example.warc.gz", "post-test.warc.gz")
MUTANTS = int(os.environ.get("CDXMILL_WACZ_MUTANTS") or 600)


class Result:
    """The records of all lines, and whether anything was reported."""

    def __init__(self, path: str) -> None:
        failures = Failures(printed=False)
        self.records: set[bytes] = set()
        self.is_reported = False
        try:
            archives = find_archives(ArchiveInputs(path), failures)
        except InputError:
            archives, self.is_reported = [], True
        for archive in archives:
            try:
                self._read(archive.path)
            except InputError:
                self.is_reported = True
        self.is_reported |= failures.count > 0

    def _read(self, path: str) -> None:
        with locate(path).open_ranges() as read_at:
            indexer = index_archive(read_at, b"x", CaptureOptions())
            for line in (line for lines in indexer for line in lines):
                fields = json.loads(line.split(b" ", 2)[2])
                data = read_at(int(fields["offset"]), int(fields["length"]))
                inflater = zlib.decompressobj(31)
                self.records.add(inflater.decompress(data))
                assert inflater.eof and not inflater.unused_data
        self.is_reported |= bool(indexer.findings.damage)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One to three times: bytes replaced, cut out, doubled, moved or cut off; half of them in the zip's own structures."""
    for _ in range(rng.randint(1, 3)):
        marks = [at for at in range(len(data)) if data.startswith(b"PK", at)] or [0]
        near = rng.choice(marks) + rng.randrange(60)
        at = min(rng.choice((near, rng.randrange(len(data)))), len(data) - 1)
        size = rng.choice((1, 1, 2, 4, 8, 100, 2000))
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + rng.randbytes(size) + data[at + size :]
        elif kind == 2:
            data = data[:at] + data[at + size :]
        elif kind == 3:
            data = data[: at + size] + data[at:]
        elif kind == 4:
            data = data[:at] + bytes(size) + data[at + size :]
        else:
            data = data[:at] or data
        data = data or b"P"
    return data


@pytest.fixture
def files(pywb_warcs: Path) -> dict[str, bytes]:
    return {f"archive/{name}": (pywb_warcs / name).read_bytes() for name in NAMES}


def test_no_record_of_a_damaged_wacz_is_lost_silently(files: dict[str, bytes], tmp_path: Path) -> None:
    contents = {content for data in files.values() for _, content in split_members(data)}
    path = tmp_path / "a.wacz"
    forms = [make_wacz(files, comment=b"x"), stream_wacz(files), stream_wacz(files, zip64=True)]
    path.write_bytes(forms[0])
    whole = Result(str(path))
    assert len(whole.records) > 3 and whole.records <= contents and not whole.is_reported
    for number in range(MUTANTS):
        rng = random.Random(f"7/{number}")
        path.write_bytes(damaged(rng.choice(forms), rng))
        os.utime(path, ns=(number, number))
        result = Result(str(path))
        assert result.records <= contents, number
        assert result.is_reported or result.records == whole.records, number
