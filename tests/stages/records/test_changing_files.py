"""An archive that is truncated while it is read: the readers come to an end and report what is missing."""

from __future__ import annotations

import gzip

import pytest

from cdxmill.capture import Damage, Record
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.record_parts import BLOCK_HEAD

MOST = 1000


DIGEST = b"WARC-Payload-Digest: sha1:%b\r\n" % (b"A" * 32)
"""With it, the payload is not read."""


def record(number: int, size: int, more: bytes = b"") -> bytes:
    return (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.com/%d\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:%d>\r\n%bContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (number, number, more, size, b"x" * size)
    )


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("calls_before", range(1, 7))
@pytest.mark.parametrize("left", [0, 10, 1000, 100_000])
def test_a_file_that_is_truncated_while_it_is_read(packed: bool, calls_before: int, left: int) -> None:
    parts = [record(0, 200_000), record(1, 600_000), record(2, 10)]
    data = b"".join(gzip.compress(part, 0) if packed else part for part in parts)
    calls = 0

    def read_at(offset: int, size: int) -> bytes:
        nonlocal calls
        calls += 1
        return (data if calls <= calls_before else data[:left])[offset : offset + size]

    found = []
    for item in read_records(read_at, chunk=1 << 19):
        found.append(item)
        assert len(found) < MOST
    records = [item for item in found if isinstance(item, Record)]
    assert len(records) == 3 or any(isinstance(item, Damage) for item in found)


@pytest.mark.parametrize("more", [b"", DIGEST], ids=["", "digest"])
@pytest.mark.parametrize("calls_before", range(1, 9))
def test_no_record_has_less_of_its_block_than_is_kept(calls_before: int, more: bytes) -> None:
    data = record(0, 600_000, more) + record(1, 10)
    sizes = iter([len(data)] * calls_before)

    def read_at(offset: int, size: int) -> bytes:
        return data[: next(sizes, 100_000)][offset : offset + size]

    records = [item for item in read_records(read_at, chunk=1 << 12) if isinstance(item, Record)]
    assert [one.size for one in records if len(one.block) < min(one.size, BLOCK_HEAD)] == []
