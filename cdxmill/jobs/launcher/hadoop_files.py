"""mrjob's access to HDFS by cdxmill.storage: mrjob itself starts a `hadoop` command, which is a JVM, for each file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdxmill.errors import CdxmillError
from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory
from cdxmill.jobs.launcher.mrjob_import import HadoopFilesystem
from cdxmill.jobs.launcher.mrjob_types import RunnerLike
from cdxmill.storage.hadoop import hadoop_fs
from cdxmill.storage.hadoop.pick import storage_of
from cdxmill.storage.hadoop.site import use_command
from cdxmill.storage.location import pieces

_VERSION = re.compile(r"hadoop-streaming-(\d+(?:\.\d+)+)")


def use_storage(runner: RunnerLike) -> None:
    """Let mrjob's hadoop runner use cdxmill.storage, and that the runner's hadoop command."""
    if runner.alias == "hadoop":
        use_command(runner.get_hadoop_bin())
        runner.fs.hadoop = StorageFilesystem(runner.get_hadoop_bin(), runner.get_hadoop_streaming_jar() or "")


class StorageFilesystem(HadoopFilesystem):  # type: ignore[misc]  # mrjob has no types
    """mrjob's file system with the same methods. `jar` is the jar of Hadoop streaming, whose name has Hadoop's version."""

    def __init__(self, hadoop: list[str], jar: str) -> None:
        super().__init__(hadoop)
        found = _VERSION.match(Path(jar).name)
        if found:
            self._hadoop_version = found[1]

    def mkdir(self, path: str) -> None:
        """Create a directory and those above it. Raises OSError."""
        with _storage_of(path) as storage:
            storage.make(path)

    def put(self, src: str, path: str) -> None:
        """Upload a file. If no other user may read it here, as with keys, none may there. Raises OSError."""
        with _storage_of(path) as storage, Path(src).open("rb") as file:
            storage.put(file, path, is_private=not Path(src).stat().st_mode & 0o077)

    def exists(self, path_glob: str) -> bool:
        """Whether there is such a file or directory. Raises OSError."""
        with _storage_of(path_glob) as storage:
            return storage.status(path_glob) is not None

    def rm(self, path_glob: str) -> None:
        """Delete a file or directory. Raises OSError."""
        with _storage_of(path_glob) as storage:
            storage.remove_tree(path_glob)

    def ls(self, path_glob: str) -> Iterator[str]:
        """The files below a directory. Raises OSError."""
        with _storage_of(path_glob):
            yield from RemoteDirectory(path_glob, not path_glob.startswith("hdfs:")).files()

    def _cat_file(self, path: str) -> Iterator[bytes]:
        with _storage_of(path) as storage:
            if storage is hadoop_fs:  # one command for each of many files
                yield from super()._cat_file(path)
                return
            with storage.open_ranges(path) as read_at:
                yield from pieces(read_at)


@contextmanager
def _storage_of(url: str) -> Iterator[Any]:
    """The module that reaches a URL. Its errors become those that mrjob expects."""
    try:
        yield storage_of(url) if url.startswith("hdfs:") else hadoop_fs
    except CdxmillError as error:
        raise OSError(str(error)) from None
