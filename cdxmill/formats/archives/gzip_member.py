"""The header of a gzip member (RFC 1952). Needs nothing but Python, so that it runs on any node of a Hadoop cluster.

+---------+---------------------+-------------+-------+-------+
| 10 bytes| FEXTRA FNAME FCOMMENT| deflate data| CRC32 | ISIZE |
+---------+---------------------+-------------+-------+-------+
"""

from __future__ import annotations

import zlib

MAGIC = b"\x1f\x8b\x08"
MAX_HEADER = 1 << 17
"""Two fields of a header are texts of any length. Real headers have a file name at most."""
TRAILER_SIZE = 8

FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED = 2, 4, 8, 16, 0xE0


def header_size(data: bytes | bytearray | memoryview) -> int | None:
    """The size of the member header that `data` starts with, or None if the header is truncated.

    Raises ValueError, with a reason for the user, if `data` does not start with a gzip header.

    >>> header_size(bytes.fromhex("1f8b080000000000000303"))
    10
    >>> header_size(b"\\x1f\\x8b") is None
    True
    """
    data = bytes(data)
    if data[:3] != MAGIC[: len(data)]:
        raise ValueError("no gzip member starts here")
    if len(data) < 10:
        return None
    flags = data[3]
    if flags & _RESERVED:
        raise ValueError("corrupt gzip header (reserved flags are set)")
    pos = 10
    if flags & _FEXTRA:
        pos += 2 + int.from_bytes(data[pos : pos + 2], "little")
    for text in (_FNAME, _FCOMMENT):
        if flags & text:
            end = data.find(b"\0", pos)
            if end < 0:
                return None
            pos = end + 1
    pos += 2 if flags & FHCRC else 0
    if pos > len(data):
        return None
    if (
        flags & FHCRC
        and int.from_bytes(data[pos - 2 : pos], "little") != zlib.crc32(data[: pos - 2]) & 0xFFFF
    ):
        raise ValueError("gzip header CRC16 mismatch")
    return pos
