"""The cluster's directory that a job on Hadoop writes, as the launcher sees it.

HDFS is reached by WebHDFS where that is possible, because each `hadoop fs` starts a JVM. `hadoop fs` has the
file systems, keys and tickets of the job itself, so it is used for all others, and where WebHDFS is secured. Without
a hadoop command, and for a directory that all machines share (file://), cdxmill.storage is used.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile

from cdxmill.errors import AbsentError, InputError, StoppedError
from cdxmill.jobs.launcher.mrjob_types import RunnerLike
from cdxmill.jobs.nodes.hdfs import NodeHdfs, hdfs_path, web_hdfs
from cdxmill.storage import choose
from cdxmill.storage.hadoop import hadoop_fs
from cdxmill.storage.hadoop.hadoop_fs import say_once
from cdxmill.storage.hadoop.site import hadoop_command, shell_reason
from cdxmill.storage.local.files import make_folder
from cdxmill.storage.walk import files_below, files_like, is_glob

_ABSENT = b": No such file or directory"
_LISTED = re.compile(r"-\S* +\S+ +\S+ +\S+ +(\d+) +\S+ +\S+ (.+)$")
"""A file in the output of `hadoop fs -ls`: its size and URL."""
_DETAILS = re.compile(r" \(Service: |; For more details see")
"""Begins the part of a message of Hadoop that is not shown."""


class RemoteFolder:
    """The directory at `url`. `hadoop` is the hadoop command, or None to use cdxmill.storage."""

    def __init__(self, url: str, hadoop: list[str] | None) -> None:
        self.url = url.rstrip("/")
        if hadoop is None and url.startswith("hdfs:") and hadoop_fs.is_needed() and hadoop_command():
            hadoop = [hadoop_command()]
        self._hadoop = None if url.startswith("file:") else hadoop

    def names(self) -> list[str]:
        """The names in it, sorted; none if it is missing. Raises StoppedError."""
        if self._hadoop is None:
            with _stopping():
                return sorted(choose.list_folder(self.url))
        found = self._run("-ls", "-C", self.url, may_be_absent=True)
        return sorted(
            line.rsplit("/", 1)[1] for line in found.decode("utf-8", "replace").split("\n") if "/" in line
        )

    def files(self) -> dict[str, int]:
        """The URLs of all files below it, with their sizes; of a pattern, below everything that matches. Raises StoppedError."""
        if self._hadoop is None:
            with _stopping():
                return _sized_files(self.url)
        found = self._run("-ls", "-R", self.url, may_be_absent=True)
        matches = map(_LISTED.match, found.decode("utf-8", "replace").split("\n"))
        return {match[2]: int(match[1]) for match in matches if match}

    def get(self, patterns: Sequence[str], folder: Path) -> None:
        """Copy the files whose names match to a directory of this machine. Raises StoppedError."""
        if self._hadoop is not None:
            self._run("-get", *(f"{self.url}/{pattern}" for pattern in patterns), str(folder))
            return
        for name in self.names():
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                continue
            with _stopping():
                (folder / name).write_bytes(choose.read_bytes(choose.join(self.url, name)))

    def put(self, paths: Sequence[Path]) -> None:
        """Copy files of this machine into it, each atomically. Raises StoppedError."""
        if self._hadoop is not None:
            # -d writes the final name: an S3 object is visible only when it is complete
            direct = ["-d"] if self.url.startswith(("s3:", "s3a:")) else []
            self._run("-put", "-f", *direct, *map(str, paths), f"{self.url}/")
            return
        for path in paths:
            with choose.write_atomic(choose.join(self.url, path.name)) as file:
                file.write(path.read_bytes())

    def make(self) -> None:
        """Create it if it is missing: `hadoop fs -put` does not. Raises StoppedError."""
        if self._hadoop is not None:
            self._run("-mkdir", "-p", self.url)
        elif self.url.startswith("hdfs:"):
            authority, path = hdfs_path(self.url)
            with _stopping():
                NodeHdfs(authority).ask("PUT", path, "MKDIRS")

    def check_writable(self) -> None:
        """Write an empty file into it and delete it again: a missing right is found before hours of work. Raises StoppedError."""
        name = f".cdxmill-{os.getpid()}.probe"
        if self._hadoop is not None:
            self.make()
            self._run("-touchz", f"{self.url}/{name}")
            self._run("-rm", "-f", "-skipTrash", f"{self.url}/{name}")
        elif self.url.startswith("hdfs:"):
            _check_hdfs(self.url, name)
        else:
            with choose.write_atomic(choose.join(self.url, name)) as file:
                file.write(b"probe")
            choose.remove(choose.join(self.url, name))

    def move(self, url: str) -> None:
        """Rename the directory. Nothing may be at `url`. Raises StoppedError."""
        if self._hadoop is not None:
            self._run("-mv", self.url, url)
            return
        authority, path = hdfs_path(self.url)
        with _stopping():
            hdfs, target = NodeHdfs(authority), hdfs_path(url)[1]
            done = hdfs.ask("PUT", path, "RENAME", destination=target).get("boolean")
            # a lost answer is asked for again, when there is nothing left to rename
            if not done and (_is_there(hdfs, path) or not _is_there(hdfs, target)):
                raise InputError(self.url, f"cannot be renamed to {url}", "rename it by hand")

    def remove(self, names: Sequence[str]) -> None:
        """Delete files and directories in it. Missing ones are ignored. Raises StoppedError."""
        if not names:
            return
        if self._hadoop is not None:
            self._run("-rm", "-r", "-f", "-skipTrash", *(f"{self.url}/{name}" for name in names))
            return
        for name in names:
            self._remove(choose.join(self.url, name))

    def _remove(self, url: str) -> None:
        if not url.startswith("hdfs:"):
            choose.remove(url)
            return
        authority, path = hdfs_path(url)
        with _stopping():
            NodeHdfs(authority).ask("DELETE", path, "DELETE", recursive="true")

    def empty(self, names: Sequence[str]) -> None:
        """Delete `names`, which is all that it holds. A shared directory exists afterwards."""
        if self._hadoop is not None:
            if names:
                self._run("-rm", "-r", "-f", "-skipTrash", self.url)
            return
        self.remove(names)
        if self.url.startswith("file:"):
            make_folder(Path(choose.local_path(self.url)))

    def _run(self, *arguments: str, may_be_absent: bool = False) -> bytes:
        done = subprocess.run(
            [*(self._hadoop or ()), "fs", *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        if done.returncode and not (may_be_absent and _ABSENT in done.stderr):
            reason = _DETAILS.split(shell_reason(done.stderr.decode("utf-8", "replace")))[0]
            raise StoppedError(
                f"{self.url}: hadoop fs {arguments[0]} failed ({reason}); correct this and run the job again"
            )
        return done.stdout


def folder_of(url: str, runner: RunnerLike) -> RemoteFolder:
    """The directory at `url`; with the hadoop command if the runner has one and it is needed."""
    is_needed = runner.alias == "hadoop" and ("{" in url or not has_web_hdfs(url))
    return RemoteFolder(url, runner.get_hadoop_bin() if is_needed else None)


def has_web_hdfs(url: str) -> bool:
    """Whether WebHDFS can be used for a URL of HDFS. Says it once if it cannot."""
    return url.startswith("hdfs:") and _has_web_hdfs(hdfs_path(url)[0])


@lru_cache(maxsize=8)
def _has_web_hdfs(authority: str) -> bool:
    return web_hdfs(authority, lambda text: say_once(text.removeprefix("cdxmill: ").rstrip())) is not None


def _check_hdfs(url: str, name: str) -> None:
    """Write one byte where the directory is or will be. It counts for quotas, of space too."""
    authority, path = hdfs_path(url)
    with _stopping():
        hdfs = NodeHdfs(authority)
        while not _is_there(hdfs, path):
            path = posixpath.dirname(path)
        place = posixpath.join(path, name)
        try:
            with TemporaryFile() as file:
                file.write(b"\n")
                file.flush()
                hdfs.create(place, file)
            hdfs.ask("DELETE", place, "DELETE")
        except InputError as error:
            with suppress(InputError):  # without room for a block an empty file is left
                hdfs.ask("DELETE", place, "DELETE")
            raise StoppedError(
                f"{url}: cannot be written ({error.reason}); correct this and run the job again"
            ) from None


def _is_there(hdfs: NodeHdfs, path: str) -> bool:
    try:
        hdfs.ask("GET", path, "GETFILESTATUS")
    except AbsentError:
        return path == "/"
    return True


def _sized_files(url: str) -> dict[str, int]:
    if not is_glob(url) and (found := choose.status(url)) is not None and not found.is_folder:
        return {url: found.size}
    listing = (files_like if is_glob(url) else files_below)(url)
    if listing.errors:
        raise listing.errors[0]
    folders = dict.fromkeys(file.rpartition("/")[0] for file in listing.files)
    listed = dict(zip(folders, choose.ask_all(choose.list_folder, folders), strict=True))
    names = (file.rpartition("/") for file in listing.files)
    return {
        f"{folder}/{name}": listed[folder][name].size for folder, _, name in names if name in listed[folder]
    }


@contextmanager
def _stopping() -> Iterator[None]:
    """An input that cannot be read stops the job: it is the cluster's own."""
    try:
        yield
    except InputError as error:
        raise StoppedError(str(error)) from None
