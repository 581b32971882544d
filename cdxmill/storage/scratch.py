"""A folder for what a run spills: made when needed, gone when it is done with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cdxmill.errors import StoppedError
from cdxmill.storage.local import stopping


class Scratch:
    """Named files below `folder`. They are read by range and never kept open: there may be thousands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """A new file to write. Raises StoppedError where it cannot be written."""
        path = self.folder / name
        with stopping(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                yield file

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """`read_at(offset, size)` of a file here, or of that at an absolute path. Raises StoppedError."""
        path = self.folder / name

        def read_at(offset: int, size: int) -> bytes:
            try:
                handle = os.open(path, os.O_RDONLY)
                try:
                    return os.pread(handle, size, offset)
                finally:
                    os.close(handle)
            except OSError as error:
                reason = os.strerror(error.errno or 0)
                raise StoppedError(f"{path}: cannot be read ({reason}); run it again") from None

        return read_at

    def delete(self, names: Iterable[str]) -> None:
        """Delete some of the files."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder and all in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
