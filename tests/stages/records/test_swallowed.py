"""A record is truncated in its block, and its Content-Length happens to lead to the end of a later record."""

from __future__ import annotations

import base64
import hashlib

import pytest

from cdxmill.capture import Damage, Record
from cdxmill.stages.records.read_records import read_records

END = b"\r\n\r\n"


def record(name: str, block: bytes, digest: bytes | None = None) -> bytes:
    sha1 = b"sha1:" + base64.b32encode(hashlib.sha1(block).digest()) if digest is None else digest
    field = b"WARC-Block-Digest: %b\r\n" % sha1 if sha1 else b""
    return (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://%b.com/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:%b>\r\n%bContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (name.encode(), name.encode(), field, len(block), block)
    )


def read(data: bytes) -> tuple[list[int], list[int]]:
    """The offsets of records and of damage."""
    found = list(read_records(lambda pos, size: data[pos : pos + size]))
    records = [item.offset for item in found if isinstance(item, Record)]
    return records, [item.offset for item in found if isinstance(item, Damage)]


B, C, D = (record(name, name.encode() * 50) for name in "bcd")
BLOCK = b"some text\r\n" * 100


@pytest.mark.parametrize("inside", [B, B + C], ids=["one", "two"])
@pytest.mark.parametrize("closing", [0, len(END)])
@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
def test_a_truncated_record_does_not_swallow_the_next_ones(
    inside: bytes, closing: int, algorithm: str
) -> None:
    digest = f"{algorithm}:{hashlib.new(algorithm, BLOCK).hexdigest()}".encode()
    whole = record("a", BLOCK, digest)
    cut = whole[: len(whole) - len(END) - len(inside) + len(END) - closing]
    records, damage = read(cut + inside + D)
    starts = [len(cut), len(cut) + len(B)] if inside != B else [len(cut)]
    assert records == [*starts, len(cut + inside)]
    assert damage == [0]


@pytest.mark.parametrize("payload", [B, B + C, B[: -len(END)], b"see:\n" + B, b"WARC/1.0\r\n" * 100])
def test_an_archive_inside_a_record_is_its_block(payload: bytes) -> None:
    for digest in (None, b"", b"crc:1"):
        data = record("a", payload, digest)
        assert read(data + D) == ([0, len(data)], [])
