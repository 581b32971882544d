"""A range of a window as a file, for libraries that read files."""

from __future__ import annotations

import io

from cdxmill.stages.window import Window


class WindowFile(io.RawIOBase):
    """The bytes from `pos` to `end` of a window."""

    def __init__(self, window: Window, pos: int, end: int) -> None:
        self._window, self._pos, self._end = window, pos, end

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes; fewer at the end of the range or of the file."""
        left = self._end - self._pos
        data = self._window.get(self._pos, min(size, left) if size >= 0 else left)
        self._pos += len(data)
        return data
