"""The quick check of a member accepts what the careful one accepts, with the same line, and nothing else."""

from __future__ import annotations

import gzip
import re
from base64 import b32encode
from hashlib import sha1
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


PLAIN = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-05-17T23:41:22Z\r\nWARC-Record-ID: <urn:x:1>\r\n"
    b"WARC-Target-URI: http://a.com/\r\n%bContent-Length: 46\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n%b\r\n\r\n"
)
LINE = (
    b'com,a)/ 20240517234122 {"url": "http://a.com/", "mime": "%b", "status": "200", "digest": "%b", '
    b'"length": "99", "offset": "7", "filename": "x"}'
)
OTHER = b"A" * 32


@pytest.mark.parametrize("has_digest", [False, True])
@pytest.mark.parametrize(
    ("payload", "change", "is_accepted"),
    [
        (b"Hi", (b"", b""), True),
        (b"Ho", (b"", b""), False),  # the record says that its payload is another one
        (b"Hi", (b"com,a)/ ", b"com,b)/ "), False),
        (b"Hi", (b"2024051723", b"2024051722"), False),
        (b"Hi", (b"http://a.com/", b"http://a.com/x"), False),
        (b"Hi", (b"text/html", b"text/plain"), False),
        (b"Hi", (b'"200"', b'"404"'), False),
        (b"Hi", (b'"digest": "', b'"digest": "' + OTHER + b'", "d": "'), False),
        (b"Hi", (b'"digest"', b'"d"'), False),
    ],
)
def test_a_common_response_has_the_line_that_leads_to_it(
    payload: bytes, change: tuple[bytes, bytes], is_accepted: bool, has_digest: bool
) -> None:
    digest = b32encode(sha1(b"Hi").digest())
    claim = b"WARC-Payload-Digest: sha1:%b\r\n" % digest if has_digest else b""
    member = gzip.compress(PLAIN % (claim, payload), mtime=0)
    line = (LINE % (b"text/html", digest)).replace(*change)
    for has_revisits in (False, True):
        found = CommonChecks(has_revisits).line_of(member, line)
        assert (found is not None) == is_accepted
        assert found is None or line.startswith(found.start.partition(b'"length"')[0])


@pytest.mark.parametrize("kind", [b"revisit", b"response"])
def test_a_revisit_is_accepted_if_it_is_one_and_is_wanted(kind: bytes) -> None:
    """A response may have the media type of revisits."""
    record = PLAIN % (b"WARC-Payload-Digest: sha1:%b\r\n" % OTHER, b"Hi")
    record = record.replace(b"Type: response", b"Type: " + kind)
    if kind == b"response":
        record = record.replace(b"text/html", b"warc/revisit").replace(b"Length: 46", b"Length: 49")
    member, line = gzip.compress(record, mtime=0), LINE % (b"warc/revisit", OTHER)
    found = CommonChecks().line_of(member, line)
    assert (found is not None) == (kind == b"revisit")
    assert CommonChecks(has_revisits=False).line_of(member, line) is None
