"""A sliding view of a file: any range near the current position, without reading bytes twice."""

from __future__ import annotations

import re
from collections.abc import Callable

ReadAt = Callable[[int, int], bytes]

CHUNK = 4 << 20
"""Bytes per read. A read copies the unused rest of the buffer, so it is several times larger than a usual range."""
LOCAL_CHUNK = 1 << 19
"""The same for local files: the bytes are still in the processor's cache when they are used."""
OVERLAP = 1 << 16
"""Bytes of the longest match that a search is certain to find where two reads meet."""
_FARTHEST = 1 << 62
"""Larger than any file. Offsets from wrong lengths can be larger still, and systems refuse to read there."""


class Window:
    """Bytes of a file by offset. `read_at(offset, size)` returns fewer bytes only at the end of the file."""

    def __init__(self, read_at: ReadAt, chunk: int = CHUNK) -> None:
        self._read_at = read_at
        self._chunk = chunk
        self._start = 0
        self._buffer = b""
        self._size = _FARTHEST  # until a read returns fewer bytes than asked for
        self._reached = 0

    def at(self, offset: int, size: int) -> tuple[bytes, int]:
        """(buffer, index): the bytes from `offset` on are at `index`. At least `size`; fewer only at the end of the file."""
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
        if self._buffer:
            self._reached = max(self._reached, offset + len(self._buffer))
            if len(more) < wanted:
                self._size = self._reached
        return self._buffer, 0

    def get(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; fewer only at the end of the file."""
        buffer, index = self.at(offset, size)
        return buffer[index : index + size]

    def peek(self, offset: int, size: int) -> bytes:
        """As `get`, but the view does not move."""
        index, have = offset - self._start, len(self._buffer)
        if index >= 0 and (index + size <= have or self._start + have >= self._size):
            return self._buffer[index : index + size]
        return self._read_at(offset, size) if offset < self._size else b""

    def search(self, pattern: re.Pattern[bytes], offset: int) -> int:
        """The start of the next match of `pattern` from `offset` on; -1 if there is none."""
        while True:
            before = min(offset, 1)  # a pattern may look behind at one byte
            buffer, index = self.at(offset - before, 2 * OVERLAP)
            match = pattern.search(buffer, index + before)
            if match is not None:
                return offset + match.start() - index - before
            if len(buffer) - index < 2 * OVERLAP:
                return -1
            offset += len(buffer) - index - OVERLAP

    def end(self) -> int:
        """The file's size in bytes. If it is not known yet, a few reads find it.

        If the file is truncated while it is read, bytes that were read count, so that readers never go back.
        """
        if self._size == _FARTHEST:
            low, high = self._reached, self._reached + self._chunk
            while self._read_at(high - 1, 1):
                low, high = high, high * 2
            while low < high - 1:  # the byte before `low` exists, the byte before `high` does not
                middle = (low + high) // 2
                low, high = (middle, high) if self._read_at(middle - 1, 1) else (low, middle)
            self._size = low
        return self._size
