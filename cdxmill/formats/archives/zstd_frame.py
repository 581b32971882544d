"""The end of a Zstandard frame (RFC 8878, 3.1), found without decompressing it.

magic 28 B5 2F FD | frame header | blocks: 3-byte header, content | checksum (4 bytes, optional)
magic 5x 2A 4D 18 | 4-byte size  | user data                                (skippable frame)
"""

from __future__ import annotations

from collections.abc import Callable

MAGIC = b"\x28\xb5\x2f\xfd"
DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"

_RLE, _RESERVED = 1, 3
_MAX_BLOCK = 128 << 10
_CONTENT_SIZE = (0, 2, 4, 8)
_DICTIONARY_ID = (0, 1, 2, 4)
_IN_FRAME = "the file is truncated inside a zstd frame"
_IN_SKIPPABLE = "the file is truncated inside a skippable frame"


class FrameError(ValueError):
    """No whole frame starts here. `truncated` means that the file ends inside a frame.

    `reached` is the offset up to which the frame was read.
    """

    def __init__(self, reason: str, reached: int, truncated: bool = False) -> None:
        super().__init__(reason)
        self.reached, self.truncated = reached, truncated


def is_skippable(head: bytes) -> bool:
    """Whether a frame that starts with `head` (4 bytes) is a skippable frame."""
    return len(head) == 4 and head[0] & 0xF0 == 0x50 and head[1:] == DICTIONARY_MAGIC[1:]


def frame_end(get: Callable[[int, int], bytes], offset: int) -> int:
    """The end of the frame at `offset`; `get(offset, size)` reads bytes of the file.

    Raises FrameError.
    """
    head = get(offset, 18)
    if is_skippable(head[:4]):
        end = offset + 8 + int.from_bytes(head[4:8], "little")
        if len(head) < 8 or (end > offset + 8 and not get(end - 1, 1)):
            raise FrameError(_IN_SKIPPABLE, offset + len(head), truncated=True)
        return end
    if head[:4] != MAGIC[: len(head)]:
        raise FrameError("no zstd frame starts here", offset)
    if len(head) < 6:
        raise FrameError(_IN_FRAME, offset + len(head), truncated=True)
    return _blocks_end(get, offset + _header_size(head[4]), bool(head[4] & 4))


def frame_within(buffer: bytes, start: int, limit: int) -> int:
    """The end of the frame at `start` of `buffer`. -1 if another way is needed to read it.

    That is: it does not end in the buffer, it is invalid, or its header states no size from 1 to `limit` bytes.

    >>> import zstandard
    >>> frame = zstandard.compress(b"abc")
    >>> frame_within(b"x" + frame + b"behind it", 1, 100) == 1 + len(frame), frame_within(frame[:-1], 0, 100)
    (True, -1)
    """
    if buffer[start : start + 4] != MAGIC or start + 18 > len(buffer):
        return -1
    descriptor = buffer[start + 4]
    pos = start + _HEADER_SIZES[descriptor]
    wide = _CONTENT_SIZES[descriptor]
    size = int.from_bytes(buffer[pos - wide : pos], "little") + (256 if wide == 2 else 0)
    if not 0 < size <= limit:
        return -1
    end, last = len(buffer) - 3, 0
    while not last:
        if pos > end:
            return -1
        head = buffer[pos] | buffer[pos + 1] << 8 | buffer[pos + 2] << 16
        last, kind = head & 1, head >> 1 & 3
        if kind == _RESERVED or head >> 3 > _MAX_BLOCK:
            return -1
        pos += 4 if kind == _RLE else 3 + (head >> 3)
    pos += descriptor & 4
    return pos if pos <= len(buffer) else -1


def _header_size(descriptor: int) -> int:
    window = 0 if descriptor & 0x20 else 1
    return 5 + window + _DICTIONARY_ID[descriptor & 3] + _content_size_bytes(descriptor)


def _content_size_bytes(descriptor: int) -> int:
    return _CONTENT_SIZE[descriptor >> 6] or (1 if descriptor & 0x20 else 0)


_HEADER_SIZES = [_header_size(descriptor) for descriptor in range(256)]
_CONTENT_SIZES = [_content_size_bytes(descriptor) for descriptor in range(256)]


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
