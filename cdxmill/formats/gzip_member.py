"""One gzip member (RFC 1952): its header, and its content where it is small and whole.

+---------+---------------------+-------------+-------+-------+
| 10 bytes| FEXTRA FNAME FCOMMENT| deflate data| CRC32 | ISIZE |
+---------+---------------------+-------------+-------+-------+
"""

from __future__ import annotations

import deflate

MAGIC = b"\x1f\x8b\x08"
TRAILER_SIZE = 8

_FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED = 2, 4, 8, 16, 0xE0


def header_size(data: bytes | bytearray | memoryview) -> int | None:
    """Bytes of the member header that `data` starts with, or None where it is cut.

    Raises ValueError where `data` does not start with a gzip header.

    >>> header_size(bytes.fromhex("1f8b080000000000000303"))
    10
    >>> header_size(b"\\x1f\\x8b") is None
    True
    """
    data = bytes(data)
    if data[:3] != MAGIC[: len(data)]:
        raise ValueError("not a gzip header")
    if len(data) < 10:
        return None
    flags = data[3]
    if flags & _RESERVED:
        raise ValueError("reserved gzip flags are set")
    pos = 10
    if flags & _FEXTRA:
        pos += 2 + int.from_bytes(data[pos : pos + 2], "little")
    for text in (_FNAME, _FCOMMENT):
        if flags & text:
            end = data.find(b"\0", pos)
            if end < 0:
                return None
            pos = end + 1
    pos += 2 if flags & _FHCRC else 0
    return pos if pos <= len(data) else None


def inflate_whole(member: bytes | memoryview, limit: int) -> bytearray | None:
    """The content of `member`, if those bytes are exactly one sound gzip member.

    None where they are not, or where the trailer promises more than `limit` bytes:
    then a reader that can tell why has to look. The check is complete (CRC32 by the
    inflater, ISIZE at the very end of the range), so a wrong guess of the range is
    never taken for a member.

    >>> import gzip
    >>> bytes(inflate_whole(gzip.compress(b"abc"), 100))
    b'abc'
    >>> inflate_whole(gzip.compress(b"abc") + b"garbage!", 100) is None
    True
    """
    size = int.from_bytes(member[-4:], "little")
    if not 0 < size <= limit or len(member) < 18:
        return None
    try:
        data = deflate.gzip_decompress(member, size)
    except deflate.DeflateError:
        return None
    return data if len(data) == size else None
