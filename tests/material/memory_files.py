"""Files in memory, for stages, which never open paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import IO


class MemoryFiles(dict[str, bytes]):
    """Files in memory that are created by name and read by range, like scratch files."""

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        if name in self:
            raise FileExistsError(name)
        file = BytesIO()
        yield file
        self[name] = file.getvalue()

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        data = self[name]
        return lambda offset, size: data[offset : offset + size]
