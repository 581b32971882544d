"""The cluster's directory that a job on Hadoop writes, as the launcher sees it.

If there is a hadoop command, `hadoop fs` is used: it has the file systems, keys and tickets of the
job itself. Otherwise, and for a directory that all machines share (file://), cdxmill.storage is used.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cdxmill.errors import StoppedError
from cdxmill.jobs.mrjob_types import RunnerLike
from cdxmill.storage import choose
from cdxmill.storage.local import make_folder
from cdxmill.storage.walk import files_below, files_like, is_glob

_ABSENT = b": No such file or directory"
_DETAILS = re.compile(r" \(Service: |; For more details see")
"""Begins the part of a message of Hadoop that is not shown."""


class RemoteFolder:
    """The directory at `url`. `hadoop` is the hadoop command, or None to use cdxmill.storage."""

    def __init__(self, url: str, hadoop: list[str] | None) -> None:
        self.url = url.rstrip("/")
        self._hadoop = None if url.startswith("file:") else hadoop

    def names(self) -> list[str]:
        """The names in it, sorted; none if it is missing. Raises StoppedError."""
        if self._hadoop is None:
            return sorted(choose.list_folder(self.url))
        found = self._run("-ls", "-C", self.url, may_be_absent=True)
        return sorted(
            line.rsplit("/", 1)[1] for line in found.decode("utf-8", "replace").split("\n") if "/" in line
        )

    def files(self) -> list[str]:
        """The URLs of all files below it; of a pattern, below everything that matches. Raises StoppedError."""
        if self._hadoop is None:
            listing = (files_like if is_glob(self.url) else files_below)(self.url)
            if listing.errors:
                raise listing.errors[0]
            return listing.files
        found = self._run("-ls", "-R", "-C", self.url, may_be_absent=True)
        return found.decode("utf-8", "replace").split("\n")

    def get(self, patterns: Sequence[str], folder: Path) -> None:
        """Copy the files whose names match to a directory of this machine. Raises StoppedError."""
        if self._hadoop is not None:
            self._run("-get", *(f"{self.url}/{pattern}" for pattern in patterns), str(folder))
            return
        for name in self.names():
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
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

    def remove(self, names: Sequence[str]) -> None:
        """Delete files and directories in it. Missing ones are ignored. Raises StoppedError."""
        if not names:
            return
        if self._hadoop is not None:
            self._run("-rm", "-r", "-f", "-skipTrash", *(f"{self.url}/{name}" for name in names))
            return
        for name in names:
            choose.remove(choose.join(self.url, name))

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
            last_line = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            reason = _DETAILS.split(last_line)[0]
            raise StoppedError(
                f"{self.url}: hadoop fs {arguments[0]} failed ({reason}); correct this and run the job again"
            )
        return done.stdout


def folder_of(url: str, runner: RunnerLike) -> RemoteFolder:
    """The directory at `url`; with the hadoop command if the runner has one."""
    return RemoteFolder(url, runner.get_hadoop_bin() if runner.alias == "hadoop" else None)
