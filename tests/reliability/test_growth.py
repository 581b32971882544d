"""The time that damage takes grows with a file's size, not with its square.

The tests compare two sizes: four times the size may take at most eight times the time.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import pytest

from cdxmill.stages.records.read_records import read_records

from .sources import gzip_member, zstd_frame

SIZE = 1 << 20
RECORD = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.b/\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n"
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\3"


def broken(length: bytes) -> bytes:
    """A record of about a kilobyte with a wrong length."""
    return RECORD.replace(b"5", length).replace(b"hello", b"x" * 900)


def deflated(content: bytes) -> bytes:
    return GZIP_HEADER + zlib.compress(content, 9)[2:-4]


def nested(head: bytes, block: Callable[[int], bytes]) -> bytes:
    """A member that starts a record, and whose next block contains the following members."""
    start = b"WARC/1.0\r\nContent-Length: 99999999\r\n\r\n"
    unit = head + block(len(start)) + start
    inner = len(unit) + len(block(0))
    return unit + block(60_000 // inner * inner)


def stored(size: int) -> bytes:
    """The header of a stored deflate block."""
    return b"\0" + size.to_bytes(2, "little") + (0xFFFF - size).to_bytes(2, "little")


def raw(size: int) -> bytes:
    """The header of a raw Zstandard block."""
    return (size << 3).to_bytes(3, "little")


GZIP, ZSTD = gzip_member(RECORD), zstd_frame(RECORD)
BAD_CHECKSUM = gzip_member(broken(b"900"))[:-8] + bytes(8)

HOSTILE = {
    "gzip magics": (GZIP, b"\x1f\x8b\x08\0"),
    "gzip magics with a name": (GZIP, b"\x1f\x8b\x08\x08name"),
    "gzip members of garbage": (GZIP, deflated(b"xyz" * 5)),
    "gzip members of long lines": (GZIP, deflated(b"http:" + b"a" * 70_000)),
    "gzip members within members": (GZIP, nested(GZIP_HEADER, stored)),
    "gzip members with a wrong checksum": (GZIP, BAD_CHECKSUM),
    "zstd magics": (ZSTD, b"\x28\xb5\x2f\xfd\x20\x05"),
    "zstd frames within frames": (ZSTD, nested(b"\x28\xb5\x2f\xfd\0\x58", raw)),
    "record headers without an end": (RECORD, b"WARC/1.0\nA"),
    "record headers in one line": (RECORD, b"WARC/1.0 "),
    "records without a length": (RECORD, b"WARC/1.0\r\nA: b\r\n\r\n"),
    "lengths beyond the file": (RECORD, broken(b"999999999999")),
    "lengths far into the file": (RECORD, broken(b"400123")),
    "lengths that are too short": (RECORD, broken(b"800")),
    "broken and good records": (RECORD, broken(b"400123") + RECORD),
    "records far from each other": (RECORD, RECORD + b" " * 5000),
    "ARC header lines": (RECORD, b"a:b 1.1.1.1 20080101000000 x/y 99999999\n"),
    "lines like those of ARC": (RECORD, b"a:" + b" 2008 " * 9000 + b"\n"),
    "text": (RECORD, b"hello: world, 2008 this is text\n"),
    "one long line": (b"", b"http:a b 2008 "),
    "a header of folded lines": (b"WARC/1.0\r\nA: b\r\n", b" c\r\n"),
    "blank lines": (RECORD, b"\r\n"),
    "NUL bytes": (RECORD, b"\0"),
}


SLOW = {
    "gzip members with a wrong checksum",
    "record headers without an end",
    "records without a length",
    "ARC header lines",
    "broken and good records",
}
"""They take so long that growth shows with a tenth of the size."""


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_size_only(name: str) -> None:
    start, unit = HOSTILE[name]
    least = SIZE // 10 if name in SLOW else SIZE
    small, large = (start + unit * (size // len(unit)) + start for size in (least, 4 * least))
    assert seconds(large) < 8 * seconds(small) + 0.2


def seconds(data: bytes) -> float:
    """The CPU time of reading all records."""
    before = time.process_time()
    for _ in read_records(lambda offset, size: data[offset : offset + size]):
        pass
    return time.process_time() - before
