"""Put a task's files into the cluster's directory. Each file there is complete, even if attempts are killed or run twice.

hdfs://...      into the task's own output directory, which Hadoop moves when it commits the task; with WebHDFS,
                or `hadoop fs` where that cannot be used
s3://, s3a://   directly under the final name: an object is visible only when it is complete
file://...      a directory that all nodes share: under a temporary name, then renamed
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cdxmill.errors import InputError
from cdxmill.jobs.nodes.hdfs import NodeHdfs, hdfs_path, web_hdfs
from cdxmill.storage.hadoop.site import hadoop_command, shell_reason


class Destination:
    """The cluster's directory at `url`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._url = url
        self._mkdir: subprocess.Popen[bytes] | None = None
        self._hdfs: NodeHdfs | None = None
        if self._parts.scheme in ("s3", "s3a", "file"):
            return
        self._url = os.environ["mapreduce_task_output_dir"]  # noqa: SIM112 - Hadoop's spelling
        if self._url.startswith("hdfs:"):
            self._hdfs = web_hdfs(hdfs_path(self._url)[0])
        if self._hdfs is None:
            self._mkdir = _start(
                "-mkdir", "-p", self._url
            )  # takes a second or two, so it runs in the background

    def put(self, names: Sequence[str]) -> None:
        """Put these files of the working directory. Exits if that fails."""
        if self._parts.scheme == "file":
            self._put_shared(names)
            return
        if self._hdfs is not None:
            folder = hdfs_path(self._url)[1]
            for name in names:
                try:
                    with Path(name).open("rb") as file:
                        self._hdfs.create(f"{folder}/{name}", file)
                except InputError as error:
                    sys.exit(f"cdxmill: {error}")
            return
        if self._mkdir is not None:
            _finish(self._mkdir, "-mkdir")
        direct = ["-d"] if self._parts.scheme in ("s3", "s3a") else []
        _finish(_start("-put", "-f", *direct, *names, self._url.rstrip("/") + "/"), "-put")

    def _put_shared(self, names: Sequence[str]) -> None:
        folder = Path(unquote(self._parts.path))
        attempt = os.environ.get("mapreduce_task_attempt_id", str(os.getpid()))  # noqa: SIM112
        for name in names:
            temporary = folder / f".{name}.{attempt}.tmp"
            shutil.copyfile(name, temporary)
            temporary.replace(folder / name)


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([hadoop(), "fs", *arguments], stderr=subprocess.PIPE)


def _finish(process: subprocess.Popen[bytes], verb: str) -> None:
    """Wait for a hadoop command. If it failed, exits with its last message."""
    messages = process.communicate()[1].decode("utf-8", "replace").strip()
    if process.returncode:
        sys.exit(f"{messages}\ncdxmill: hadoop fs {verb} failed ({shell_reason(messages)})")


def hadoop() -> str:
    """The hadoop command of this node. Exits if there is none."""
    return hadoop_command() or sys.exit(
        "cdxmill: no hadoop command on this node; set --cmdenv HADOOP_HOME=FOLDER"
    )
