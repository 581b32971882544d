"""The quick check of a member accepts what the careful one accepts, with the same line, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.stages import native
from cdxmill.stages.captures.match_record import CommonChecks, capture_of_record, difference, wrong_digest
from cdxmill.stages.records.fetch_record import Archive, NoRecord

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

pytestmark = pytest.mark.skipif(native.read is None, reason="nothing was compiled")
NAMES = ("iana.warc.gz", "example.warc.gz", "dupes.warc.gz", "example-wget-1-14.warc.gz", "example.arc.gz")
_PLACE = re.compile(rb'"offset": "\d+", "filename": "[^"]*"')


@pytest.fixture(scope="module", params=NAMES)
def members(
    request: pytest.FixtureRequest, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> list[tuple[bytes, bytes]]:
    """The members of an archive that have lines, and these."""
    path = pywb_warcs / request.param
    data, found = path.read_bytes(), []
    for line in run_cdxmill("index", "-q", "-o", "-", path).stdout.splitlines():
        place = record_location(line)
        assert place.length is not None
        found.append((data[place.offset : place.offset + place.length], line))
    return found


def is_right(member: bytes, line: bytes) -> bool:
    """What the careful way says."""
    place = record_location(line)
    try:
        fetched = Archive(lambda offset, size: member[offset : offset + size]).record(0, len(member))
        return difference(capture_of_record(fetched.record), place) is None and not wrong_digest(
            fetched.record, fetched.content(), place.digest
        )
    except NoRecord:
        return False


def test_a_line_that_is_made_is_that_of_index(members: list[tuple[bytes, bytes]]) -> None:
    checks, made = CommonChecks(), 0
    for member, line in members:
        found = checks.line_of(member, line)
        if found is not None:
            made += 1
            assert is_right(member, line)
            assert found.start + found.end == _PLACE.sub(b'"offset": "0", "filename": ""', line)
    if b'"iana.warc.gz"' in members[0][1]:  # the others have ARC records, odd URLs and revisits
        assert made > len(members) / 2


def test_no_other_member_and_no_other_line_is_accepted(members: list[tuple[bytes, bytes]]) -> None:
    checks, rng = CommonChecks(), Random(16)
    for number, (member, line) in enumerate(members):
        other = members[number - 1][1]
        assert checks.line_of(member, other) is None or is_right(member, other)
        flipped = bytearray(member)
        flipped[rng.randrange(len(member))] ^= 1 << rng.randrange(8)
        for changed in (bytes(flipped), member[:-1], member + member, member + b"x", b""):
            assert checks.line_of(changed, line) is None or is_right(changed, line)
