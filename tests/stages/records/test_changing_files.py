"""An archive that is truncated while it is read: the readers come to an end and report what is missing."""

from __future__ import annotations

import gzip

import pytest

from cdxmill.capture import Damage, Record
from cdxmill.stages.records.read_records import read_records

MOST = 1000


def record(number: int, size: int) -> bytes:
    return (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.com/%d\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:%d>\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (number, number, size, b"x" * size)
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
