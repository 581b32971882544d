"""A task's files: it reads CDX files by name, as on one machine, and puts what it has written into the cluster's directory.

A CDX file that is corrupt is reported, and the others are used:

    hdfs://             with WebHDFS, or `hadoop fs` where that cannot be used
    s3://, others       with `hadoop fs`, which copies all such files of the task to the scratch disk: each start takes seconds
    file://             read where they are

A file in the cluster's directory is complete, even if attempts are killed or run twice:

    s3://, s3a://       directly under the final name: an object is visible only when it is complete
    file://             a directory that all nodes share: under a temporary name, then renamed
    others              into the task's own output directory, which Hadoop moves when it commits the task; hdfs:// with WebHDFS,
                        or `hadoop fs` where that cannot be used, and always for other file systems
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from cdxmill.errors import CdxmillError, InputError
from cdxmill.stages.lines.cdx_text import read_cdx, read_content
from cdxmill.stages.window import ReadAt, Window
from cdxmill.storage import local
from cdxmill.storage.hadoop import hadoop_fs
from cdxmill.storage.hadoop.pick import storage_of

_READ_SIZE = 1 << 18


def read_inputs(urls: Sequence[str]) -> Generator[tuple[str, Iterator[bytes]]]:
    """Each file and its text, in pieces. Reading these raises InputError if the file is missing or corrupt."""
    with TemporaryDirectory(prefix=".inputs-", dir=".") as directory:
        fetched = _Fetched(urls, Path(directory))
        for url in urls:
            sys.stderr.write(f"reporter:status:{url}\n")  # Hadoop kills a silent task
            yield url, _pieces(url, fetched)


def _pieces(url: str, fetched: _Fetched) -> Iterator[bytes]:
    try:
        with fetched.open(url) as read_at:
            yield from read_cdx(url, Window(read_at, _READ_SIZE), read_content)
    except InputError as error:
        raise type(error)(url, error.reason, error.hint) from None


class _Fetched:
    """Opens files. Those that need `hadoop fs` are copied to `directory`, all at once when the first is opened."""

    def __init__(self, urls: Sequence[str], directory: Path) -> None:
        self._urls, self._directory = urls, directory
        self._copies: dict[str, Path] = {}

    def open(self, url: str) -> AbstractContextManager[ReadAt]:
        """Open the file at `url`. Raises InputError, here or when it is read."""
        storage = _storage_of(url)
        if storage is not hadoop_fs:
            name = unquote(url.partition("://")[2]) if storage is local else url
            opened: AbstractContextManager[ReadAt] = storage.open_ranges(name)
            return opened
        if not self._copies:
            self._copy([url for url in self._urls if _storage_of(url) is hadoop_fs])
        path = self._copies[url]
        if not path.exists():  # alone, for its own error
            hadoop_fs.fetch([hadoop_fs.quoted(url)], path.parent)
        return local.open_ranges(str(path))

    def _copy(self, urls: Sequence[str]) -> None:
        """Copy files with as few commands as possible: files of the same name go to different directories."""
        left = list(dict.fromkeys(urls))
        while left:
            directory = self._directory / str(len(self._copies))
            directory.mkdir()
            batch = {url.rpartition("/")[2]: url for url in reversed(left)}
            with suppress(InputError):  # those that are missing then are reported one by one
                hadoop_fs.fetch([hadoop_fs.quoted(url) for url in batch.values()], directory)
            self._copies.update((url, directory / name) for name, url in batch.items())
            left = [url for url in left if url not in self._copies]


def _storage_of(url: str) -> Any:
    if url.startswith("file:"):
        return local
    return storage_of(url) if url.startswith("hdfs:") else hadoop_fs


class Destination:
    """The cluster's directory at `url`. Exits, before the work of hours, if the task's own directory cannot be created."""

    def __init__(self, url: str) -> None:
        self._url = url
        if urlsplit(url).scheme in ("s3", "s3a", "file"):
            return
        self._url = os.environ["mapreduce_task_output_dir"]  # noqa: SIM112 - Hadoop's spelling
        storage = _storage_of(self._url)
        with _exiting():
            if storage is not local:
                storage.make(self._url)

    def put(self, names: Sequence[str]) -> None:
        """Put these files of the working directory. Exits if that fails."""
        paths = list(map(Path, names))
        with _exiting():
            storage = _storage_of(self._url)
            if storage is local:
                _put_shared(paths, Path(unquote(urlsplit(self._url).path)))
            else:
                storage.upload(paths, self._url)


def _put_shared(paths: Sequence[Path], directory: Path) -> None:
    for path in paths:
        with path.open("rb") as file, local.write_atomic(directory / path.name) as shared:
            shutil.copyfileobj(file, shared)


@contextmanager
def _exiting() -> Iterator[None]:
    try:
        yield
    except CdxmillError as error:
        sys.exit(f"cdxmill: {error}")
