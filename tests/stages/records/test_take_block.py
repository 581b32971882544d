"""A record is taken from chunks of any size: its header may be in several of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdxmill.stages.records.take_record import check_rest, take_block

BLOCK = b"text " * 99
RECORD = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.b/%b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
    % (b"long" * 999, len(BLOCK), BLOCK)
)


@pytest.mark.parametrize("size", [1, 10, 500, 4000, len(RECORD)])
def test_a_header_in_several_chunks(size: int) -> None:
    chunks: Iterator[bytes] = (RECORD[at : at + size] for at in range(0, len(RECORD), size))
    record, tail = take_block(0, chunks)
    check_rest(tail, chunks, False)
    assert (record.headers[b"warc-target-uri"], record.block) == (b"http://a.b/" + b"long" * 999, BLOCK)
