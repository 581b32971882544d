"""A sliding view of a file: any range near the reading position, without reading twice."""

from __future__ import annotations

import re
from collections.abc import Callable

ReadAt = Callable[[int, int], bytes]

CHUNK = 4 << 20
"""Bytes a read: each refill copies what is left of the last, so reads are several times a look ahead."""
OVERLAP = 1 << 16
"""The longest match that a search is sure to find across two reads."""


class Window:
    """Bytes of a file by offset; `read_at(offset, size)` gives fewer only at the end."""

    def __init__(self, read_at: ReadAt, chunk: int = CHUNK) -> None:
        self._read_at = read_at
        self._chunk = chunk
        self._start = 0
        self._buffer = b""

    def at(self, offset: int, size: int) -> tuple[bytes, int]:
        """(buffer, index): `size` or more bytes from `offset` stand at `index`; fewer where the file ends."""
        index = offset - self._start
        have = len(self._buffer) - index
        if index >= 0 and have >= size:
            return self._buffer, index
        kept = self._buffer[index:] if index >= 0 and have > 0 else b""
        more = self._read_at(offset + len(kept), max(self._chunk, size - len(kept)))
        self._buffer, self._start = kept + more, offset
        return self._buffer, 0

    def get(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; fewer only where the file ends."""
        buffer, index = self.at(offset, size)
        return buffer[index : index + size]

    def search(self, pattern: re.Pattern[bytes], offset: int) -> int:
        """Where a match of `pattern` next starts, from `offset` on; -1 where none does."""
        while True:
            buffer, index = self.at(offset, 2 * OVERLAP)
            match = pattern.search(buffer, index)
            if match is not None:
                return offset + match.start() - index
            if len(buffer) - index < 2 * OVERLAP:
                return -1
            offset += len(buffer) - index - OVERLAP

    def end(self, offset: int) -> int:
        """The file's size; `offset` lies within it."""
        while piece := len(self.get(offset, self._chunk)):
            offset += piece
        return offset
