"""A sliding view of a file: any range near the reading position, without reading twice."""

from __future__ import annotations

import re
from collections.abc import Callable

ReadAt = Callable[[int, int], bytes]

CHUNK = 4 << 20
"""Bytes a read: each refill copies what is left of the last, so reads are several times a look ahead."""
LOCAL_CHUNK = 1 << 19
"""The same for files of this machine: what was read is still in the processor's cache when it is looked at."""
OVERLAP = 1 << 16
"""The longest match that a search is sure to find across two reads."""
_FARTHEST = 1 << 62
"""No file reaches so far, but lengths that lie do: systems refuse to read there."""


class Window:
    """Bytes of a file by offset; `read_at(offset, size)` gives fewer only at the end."""

    def __init__(self, read_at: ReadAt, chunk: int = CHUNK) -> None:
        self._read_at = read_at
        self._chunk = chunk
        self._start = 0
        self._buffer = b""
        self._size = _FARTHEST  # until a read has come short

    def at(self, offset: int, size: int) -> tuple[bytes, int]:
        """(buffer, index): `size` or more bytes from `offset` stand at `index`; fewer where the file ends."""
        index = offset - self._start
        if index >= 0 and len(self._buffer) - index >= size:
            return self._buffer, index
        return self._move(offset, size)

    def _move(self, offset: int, size: int) -> tuple[bytes, int]:
        index, have = offset - self._start, len(self._buffer)
        if 0 <= index <= have and self._start + have >= self._size:
            return self._buffer, index
        if offset >= self._size:
            return b"", 0
        kept = self._buffer[index:] if 0 <= index < have else b""
        wanted = max(self._chunk, size - len(kept))
        more = self._read_at(offset + len(kept), wanted)
        self._buffer, self._start = kept + more, offset
        if self._buffer and len(more) < wanted:
            self._size = offset + len(self._buffer)
        return self._buffer, 0

    def get(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; fewer only where the file ends."""
        buffer, index = self.at(offset, size)
        return buffer[index : index + size]

    def peek(self, offset: int, size: int) -> bytes:
        """As `get`, for a look elsewhere: the view stays where it is."""
        index, have = offset - self._start, len(self._buffer)
        if index >= 0 and (index + size <= have or self._start + have >= self._size):
            return self._buffer[index : index + size]
        return self._read_at(offset, size) if offset < self._size else b""

    def search(self, pattern: re.Pattern[bytes], offset: int) -> int:
        """Where a match of `pattern` next starts, from `offset` on; -1 where none does."""
        while True:
            before = min(offset, 1)  # a pattern may look back at one byte
            buffer, index = self.at(offset - before, 2 * OVERLAP)
            match = pattern.search(buffer, index + before)
            if match is not None:
                return offset + match.start() - index - before
            if len(buffer) - index < 2 * OVERLAP:
                return -1
            offset += len(buffer) - index - OVERLAP

    def end(self) -> int:
        """The file's size in bytes, found by a few looks where it is not known yet."""
        if self._size == _FARTHEST:
            low, high = 0, self._chunk
            while self._read_at(high - 1, 1):
                low, high = high, high * 2
            while low < high - 1:  # the byte before `low` is there, the byte before `high` is not
                middle = (low + high) // 2
                low, high = (middle, high) if self._read_at(middle - 1, 1) else (low, middle)
            self._size = low
        return self._size
