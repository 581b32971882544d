"""URLs, directories and files of Hadoop, as the launcher of a job sees them.

HDFS is reached by cdxmill.storage, by mrjob, too. For S3 and other file systems, mrjob's hadoop runner uses the `hadoop`
command, because that has the keys of the job. Other runners use cdxmill.storage, and so do all for file://, a directory that
all machines share.
"""

from __future__ import annotations

import fnmatch
import getpass
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from cdxmill.errors import CdxmillError, InputError, StoppedError, UsageError
from cdxmill.jobs.launcher.mrjob_parts import OwnFilesystem, RunnerLike
from cdxmill.regex import regex
from cdxmill.running.lock import hold
from cdxmill.storage.hadoop import hadoop_fs
from cdxmill.storage.hadoop.pick import storage_of
from cdxmill.storage.hadoop.site import use_command
from cdxmill.storage.interface import Writes
from cdxmill.storage.local import make_directory
from cdxmill.storage.location import Location, ask_all, join, locate, pieces
from cdxmill.storage.patience import stops
from cdxmill.storage.walk import files_below, files_like, is_glob

_VERSION = regex(r"hadoop-streaming-(\d+(?:\.\d+)+)")


def is_url(path: str) -> bool:
    """Whether `path` has a scheme.

    >>> is_url("hdfs:///a"), is_url("/a")
    (True, False)
    """
    return "://" in path


def hadoop_url(path: str) -> str:
    """The URL of a path in Hadoop's default file system; a URL as it is.

    >>> hadoop_url("/a"), hadoop_url("s3://b")
    ('hdfs:///a', 's3://b')
    """
    if is_url(path):
        return path
    if path.startswith("/"):
        return f"hdfs://{path}"
    return f"hdfs:///user/{os.environ.get('HADOOP_USER_NAME') or getpass.getuser()}/{path}"


class _ByHadoop(Location):
    """A URL of any scheme, reached by the hadoop command."""

    @property
    def _writes(self) -> tuple[Writes, str]:
        return hadoop_fs, self.text

    reads = _writes


class RemoteDirectory:
    """The directory at `url`; with `by_hadoop`, reached by the hadoop command, of which one starts for each call."""

    def __init__(self, url: str, by_hadoop: bool = False) -> None:
        self.url = url.rstrip("/")
        if url.startswith("hdfs:"):
            by_hadoop = by_hadoop or storage_of(url) is hadoop_fs
        self._by_hadoop = by_hadoop and not url.startswith("file:")

    @property
    def is_near(self) -> bool:
        """Whether many of its files can be looked at: no command starts for each."""
        return not self._by_hadoop

    def _at(self, url: str) -> Location:
        return _ByHadoop(url) if self._by_hadoop else Location(url)

    def names(self) -> list[str]:
        """The names in it, sorted; none if it is missing. Raises StoppedError."""
        with stops(self.url, "listed"):
            return sorted(self._at(self.url).entries())

    def files(self) -> dict[str, int]:
        """The URLs of all files below it, with their sizes; of a pattern, below everything that matches. Raises StoppedError."""
        with stops(self.url, "listed"):
            return hadoop_fs.sized_files(self.url) if self._by_hadoop else _sized_files(self.url)

    def get(self, patterns: Sequence[str], directory: Path) -> None:
        """Copy the files whose names match to a directory of this machine. Raises StoppedError."""
        with stops(self.url, "read"):
            if self._by_hadoop:
                hadoop_fs.fetch([f"{self.url}/{pattern}" for pattern in patterns], directory)
                return
            for name in self.names():
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                    (directory / name).write_bytes((locate(self.url) / name).read_bytes())

    def put(self, paths: Sequence[Path]) -> None:
        """Copy files of this machine into it, each atomically. Raises StoppedError."""
        if self._by_hadoop:
            hadoop_fs.upload(paths, self.url)
            return
        for path in paths:
            with path.open("rb") as source, (locate(self.url) / path.name).write_atomic() as file:
                shutil.copyfileobj(source, file)

    def make(self) -> None:
        """Create it if it is missing and `put` does not. Raises StoppedError."""
        if self._by_hadoop:
            hadoop_fs.make(self.url)

    def check_writable(self) -> None:
        """Write a file into it and delete it again: a missing right is found before hours of work. Raises StoppedError.

        In HDFS the file is where the directory will be. It has a byte, which counts for quotas of space, too.
        """
        self.make()
        place = self.url
        with stops(self.url, "written"):
            while place.startswith("hdfs:") and self._at(place).status() is None:
                place = place.rstrip("/").rpartition("/")[0] + "/"
        probe = self._at(join(place, f".cdxmill-{os.getpid()}.probe"))
        try:
            with probe.write_atomic() as file:
                file.write(b"\n")
            probe.remove_tree()
        except StoppedError as error:
            raise StoppedError(f"{self.url}: no file can be written there: {error}") from None

    def remove(self, names: Sequence[str]) -> None:
        """Delete files and directories in it. Missing ones are ignored. Raises StoppedError."""
        urls = [join(self.url, name) for name in names]
        if self._by_hadoop and urls:
            hadoop_fs.remove_tree(*urls)
            return
        for url in urls:
            locate(url).remove_tree()

    def empty(self, names: Sequence[str]) -> None:
        """Delete `names`, which is all that it holds. A shared directory exists afterwards. Raises StoppedError."""
        self.remove(names)
        if self.url.startswith("file:"):
            make_directory(Path(locate(self.url).local))


def is_reached(url: str) -> bool:
    """Whether cdxmill itself can write to a directory: for some, only the hadoop command has the keys."""
    try:
        locate(url).check_writable()
        locate(url).entries()
    except (UsageError, InputError):
        return False
    return True


def held(url: str) -> AbstractContextManager[object]:
    """Hold the directory of an output for the time of the job, if cdxmill can reach it. Raises UsageError, StoppedError."""
    return hold(url) if is_reached(url) else nullcontext()


def directory_of(url: str, runner: RunnerLike) -> RemoteDirectory:
    """The directory at `url`. Only the hadoop command knows what braces in a pattern mean."""
    return RemoteDirectory(url, runner.alias == "hadoop" and ("{" in url or not url.startswith("hdfs:")))


def _sized_files(url: str) -> dict[str, int]:
    if not is_glob(url) and (found := locate(url).status()) is not None and not found.is_directory:
        return {url: found.size}
    listing = (files_like if is_glob(url) else files_below)(url)
    if listing.errors:
        raise listing.errors[0]
    places = [locate(file) for file in listing.files]
    parents = list(dict.fromkeys(place.parent for place in places))
    listed = dict(zip(parents, ask_all(Location.entries, parents), strict=True))
    found_in = ((place, listed[place.parent].get(place.name)) for place in places)
    return {place.text: entry.size for place, entry in found_in if entry is not None}


def use_storage(runner: RunnerLike) -> None:
    """Let mrjob's hadoop runner use cdxmill.storage, and that the runner's hadoop command."""
    if runner.alias == "hadoop":
        use_command(runner.get_hadoop_bin())
        runner.fs.hadoop = StorageFilesystem(runner.get_hadoop_bin(), runner.get_hadoop_streaming_jar() or "")


class StorageFilesystem(OwnFilesystem):
    """mrjob's access to HDFS, by cdxmill.storage: mrjob itself starts a `hadoop` command, which is a JVM, for each file.

    `jar` is the jar of Hadoop streaming, whose name has Hadoop's version.
    """

    def __init__(self, hadoop: list[str], jar: str) -> None:
        found = _VERSION.match(Path(jar).name)
        super().__init__(hadoop, found[1] if found else None)

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

    def read(self, path: str) -> Iterator[bytes]:
        """The content of a file, in pieces. Raises OSError."""
        with _storage_of(path) as storage:
            if storage is hadoop_fs:  # one command for each of many files
                yield from super().read(path)
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
