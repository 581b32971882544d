"""gzip members and Zstandard frames: how they start, and where they end. Pure Python: nodes of Hadoop use it, too.

gzip (RFC 1952)       10 bytes, FEXTRA, FNAME, FCOMMENT | deflate data | CRC32 | ISIZE
zstd (RFC 8878, 3.1)  magic 28 B5 2F FD | frame header | blocks: 3-byte header, content | checksum (4 bytes, optional)
                      magic 5x 2A 4D 18 | 4-byte size | user data                        (skippable frame)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

GZIP_MAGIC = b"\x1f\x8b\x08"
MAX_HEADER = 1 << 17
"""Two fields of a gzip header are texts of any length. Real headers have a file name at most."""
TRAILER_SIZE = 8
FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED_FLAGS = 2, 4, 8, 16, 0xE0

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"
_RLE, _RESERVED = 1, 3
_MAX_BLOCK = 128 << 10
_LONGEST_HEADER = 18
_CONTENT_SIZE = (0, 2, 4, 8)
_DICTIONARY_ID = (0, 1, 2, 4)
_IN_FRAME = "the file is truncated inside a zstd frame"


def header_size(data: bytes | bytearray | memoryview) -> int | None:
    """The size of the gzip header that `data` starts with, or None if the header is truncated.

    Raises ValueError, with a reason for the user, if `data` does not start with a gzip header.

    >>> header_size(bytes.fromhex("1f8b080000000000000303"))
    10
    >>> header_size(b"\\x1f\\x8b") is None
    True
    """
    data = bytes(data)
    if data[:3] != GZIP_MAGIC[: len(data)]:
        raise ValueError("no gzip member starts here")
    if len(data) < 10:
        return None
    flags = data[3]
    if flags & _RESERVED_FLAGS:
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
    checksum = int.from_bytes(data[pos - 2 : pos], "little")
    if flags & FHCRC and checksum != zlib.crc32(data[: pos - 2]) & 0xFFFF:
        raise ValueError("gzip header CRC16 mismatch")
    return pos


class FrameError(ValueError):
    """No whole frame starts here. It was read up to the offset `reached`. `truncated`: the file ends inside a frame."""

    def __init__(self, reason: str, reached: int, truncated: bool = False) -> None:
        super().__init__(reason)
        self.reached, self.truncated = reached, truncated


def is_skippable(head: bytes) -> bool:
    """Whether a frame that starts with `head` (4 bytes) is a skippable frame."""
    return len(head) == 4 and head[0] & 0xF0 == 0x50 and head[1:] == DICTIONARY_MAGIC[1:]


def frame_end(get: Callable[[int, int], bytes], offset: int) -> int:
    """The end of the frame at `offset`, not decompressed; `get(offset, size)` reads the file. Raises FrameError."""
    head = get(offset, _LONGEST_HEADER)
    if is_skippable(head[:4]):
        end = offset + 8 + int.from_bytes(head[4:8], "little")
        if len(head) < 8 or not get(end - 1, 1):
            reason = "the file is truncated inside a skippable frame"
            raise FrameError(reason, offset + len(head), truncated=True)
        return end
    if head[:4] != ZSTD_MAGIC[: len(head)]:
        raise FrameError("no zstd frame starts here", offset)
    if len(head) < 6:
        raise FrameError(_IN_FRAME, offset + len(head), truncated=True)
    return _blocks_end(get, offset + _header_sizes(head[4])[0], bool(head[4] & 4))


def frame_within(buffer: bytes, start: int, limit: int) -> int:
    """The end of the frame at `start` of `buffer`. -1 if another way is needed to read it.

    That is: it does not end in the buffer, it is invalid, or its header states no size from 1 to `limit` bytes.

    >>> import zstandard
    >>> frame = zstandard.compress(b"abc")
    >>> frame_within(b"x" + frame + b"behind it", 1, 100) == 1 + len(frame), frame_within(frame[:-1], 0, 100)
    (True, -1)
    """
    if buffer[start : start + 4] != ZSTD_MAGIC or start + _LONGEST_HEADER > len(buffer):
        return -1
    header, wide = _header_sizes(buffer[start + 4])
    size = int.from_bytes(buffer[start + header - wide : start + header], "little")
    if not 0 < size + (256 if wide == 2 else 0) <= limit:
        return -1
    try:
        return frame_end(lambda offset, size: buffer[offset : offset + size], start)
    except FrameError:
        return -1


def _header_sizes(descriptor: int) -> tuple[int, int]:
    """Bytes of a frame's header, and of the content size at its end."""
    is_single = bool(descriptor & 0x20)
    wide = _CONTENT_SIZE[descriptor >> 6] or is_single
    return 5 + (not is_single) + _DICTIONARY_ID[descriptor & 3] + wide, wide


def _blocks_end(get: Callable[[int, int], bytes], pos: int, has_checksum: bool) -> int:
    last = False
    while not last:
        head = get(pos, 3)
        if len(head) < 3:
            raise FrameError(_IN_FRAME, pos, truncated=True)
        value = int.from_bytes(head, "little")
        last, kind, size = bool(value & 1), value >> 1 & 3, value >> 3
        if kind == _RESERVED or size > _MAX_BLOCK:
            raise FrameError("corrupt zstd data (invalid block header)", pos)
        pos += 3 + (1 if kind == _RLE else size)
    end = pos + (4 if has_checksum else 0)
    if not get(end - 1, 1):
        raise FrameError(_IN_FRAME, pos, truncated=True)
    return end
