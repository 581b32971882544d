"""mrjob's access to HDFS by WebHDFS: mrjob itself starts a `hadoop` command, which is a JVM, for each file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdxmill.errors import InputError, StoppedError
from cdxmill.jobs.launcher.hadoop_folder import RemoteFolder, has_web_hdfs
from cdxmill.jobs.launcher.mrjob_import import HadoopFilesystem
from cdxmill.jobs.launcher.mrjob_types import RunnerLike
from cdxmill.jobs.nodes.hdfs import NodeHdfs, hdfs_path
from cdxmill.storage import choose

_VERSION = re.compile(r"hadoop-streaming-(\d+(?:\.\d+)+)")


def use_web_hdfs(runner: RunnerLike) -> None:
    """Let mrjob's runner use WebHDFS wherever it can be used."""
    if runner.alias == "hadoop":
        runner.fs.hadoop = WebFilesystem(runner.get_hadoop_bin(), runner.get_hadoop_streaming_jar() or "")


class WebFilesystem(HadoopFilesystem):  # type: ignore[misc]  # mrjob has no types
    """mrjob's file system with the same methods. `jar` is the jar of Hadoop streaming, whose name has Hadoop's version."""

    def __init__(self, hadoop: list[str], jar: str) -> None:
        super().__init__(hadoop)
        found = _VERSION.match(Path(jar).name)
        if found:
            self._hadoop_version = found[1]

    def mkdir(self, path: str) -> None:
        """Create a directory and those above it. Raises OSError."""
        if has_web_hdfs(path):
            _ask(path, "PUT", "MKDIRS")
        else:
            super().mkdir(path)

    def put(self, src: str, path: str) -> None:
        """Upload a file. Raises OSError."""
        if not has_web_hdfs(path):
            # no other user may read keys
            private = [] if Path(src).stat().st_mode & 0o077 else ["-D", "fs.permissions.umask-mode=077"]
            self.invoke_hadoop(["fs", *private, "-put", src, path])
            return
        authority, place = hdfs_path(path)
        is_private = not Path(src).stat().st_mode & 0o077
        try:
            with Path(src).open("rb") as file:
                NodeHdfs(authority).create(place, file, **({"permission": "600"} if is_private else {}))
        except InputError as error:
            raise OSError(str(error)) from None

    def exists(self, path_glob: str) -> bool:
        """Whether there is such a file or directory. Raises OSError."""
        if not has_web_hdfs(path_glob):
            return bool(super().exists(path_glob))
        try:
            return choose.exists(path_glob)
        except InputError as error:
            raise OSError(str(error)) from None

    def rm(self, path_glob: str) -> None:
        """Delete a file or directory. Raises OSError."""
        if has_web_hdfs(path_glob):
            _ask(path_glob, "DELETE", "DELETE", recursive="true")
        else:
            super().rm(path_glob)

    def ls(self, path_glob: str) -> Iterator[str]:
        """The files below a directory. Raises OSError."""
        if not has_web_hdfs(path_glob):
            yield from super().ls(path_glob)
            return
        try:
            yield from RemoteFolder(path_glob, None).files()
        except StoppedError as error:
            raise OSError(str(error)) from None

    def _cat_file(self, path: str) -> Iterator[bytes]:
        if not has_web_hdfs(path):
            yield from super()._cat_file(path)
            return
        try:
            with choose.open_ranges(path) as read_at:
                yield from choose.pieces(read_at)
        except InputError as error:
            raise OSError(str(error)) from None


def _ask(url: str, method: str, op: str, tries: int = 7, **parameters: str) -> Any:
    authority, path = hdfs_path(url)
    try:
        return NodeHdfs(authority).ask(method, path, op, tries, **parameters)
    except InputError as error:
        raise OSError(str(error)) from None
