"""One record is read by one read if it is small; of a large one, no more than a piece is held."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from cdxmill.stages.records.fetch_record import Archive

LARGE = 17 << 20


def record(size: int) -> bytes:
    head = (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.b/\r\nContent-Length: %d\r\n\r\n"
        % size
    )
    return head + bytes(size) + b"\r\n\r\n"


@pytest.mark.parametrize("size", [100, LARGE])
def test_how_much_of_a_record_is_read_at_once(size: int) -> None:
    whole = record(size)
    stored = gzip.compress(whole, 0)
    data, reads = b"x" * 7 + stored + b"y" * 7, []

    def read_at(offset: int, wanted: int) -> bytes:
        reads.append((offset, wanted))
        return data[offset : offset + wanted]

    found = Archive(read_at).record(7, len(stored))
    assert b"".join(found.stored()) == stored
    assert b"".join(found.content()) == whole
    if size == LARGE:
        assert max(wanted for _, wanted in reads) < LARGE // 2
    else:
        assert reads == [(7, len(stored))]
    assert all(offset >= 7 and offset + wanted <= 7 + len(stored) for offset, wanted in reads)


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize("store", [bytes, gzip.compress])
def test_without_a_length_it_is_the_record_that_begins_there(
    store: Callable[[bytes], bytes], size: int
) -> None:
    whole = record(size)
    data = b"x" * 7 + store(whole) * 2
    found = Archive(lambda offset, wanted: data[offset : offset + wanted]).record(7, None)
    assert b"".join(found.content()) == whole
    assert b"".join(found.stored()) == store(whole.removesuffix(b"\r\n\r\n") if found.is_plain else whole)
