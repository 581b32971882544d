"""A folder for temporary files of a run: created when needed, deleted at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from cdxmill.errors import StoppedError
from cdxmill.storage.choose import is_remote, local_path
from cdxmill.storage.local import create_folder, stopping


class Scratch:
    """Files below `folder`. Each read opens and closes its file, because there may be thousands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Create a file to write. Raises StoppedError if it cannot be written."""
        path = self.folder / name
        with stopping(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                yield file

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """`read_at(offset, size)` of a file in the folder, or at an absolute path. Raises StoppedError."""
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
        """Delete the folder and its content."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def scratch_files(output: str) -> Iterator[Callable[[], IO[bytes]]]:
    """A function that creates temporary files without a name, on the disk of a local output. They are closed at the end.

    Raises StoppedError if one cannot be written.
    """
    folder = None if is_remote(output) else Path(local_path(output)).parent
    with stopping(folder or Path(tempfile.gettempdir())), ExitStack() as files:
        if folder is not None:
            create_folder(folder)
        yield lambda: files.enter_context(tempfile.TemporaryFile(dir=folder))
