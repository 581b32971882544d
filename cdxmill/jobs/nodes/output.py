"""Put a task's files into the cluster's directory. Each file there is complete, even if attempts are killed or run twice.

s3://, s3a://   directly under the final name: an object is visible only when it is complete
file://...      a directory that all nodes share: under a temporary name, then renamed
others          into the task's own output directory, which Hadoop moves when it commits the task; hdfs:// with WebHDFS,
                or `hadoop fs` where that cannot be used, and always for other file systems
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cdxmill.errors import CdxmillError
from cdxmill.storage.hadoop import hadoop_fs
from cdxmill.storage.hadoop.pick import storage_of
from cdxmill.storage.local import files as local


class Destination:
    """The cluster's directory at `url`. Exits, before the work of hours, if the task's own directory cannot be created."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._storage: Any = hadoop_fs
        if urlsplit(url).scheme in ("s3", "s3a", "file"):
            return
        self._url = os.environ["mapreduce_task_output_dir"]  # noqa: SIM112 - Hadoop's spelling
        with _exiting():
            if self._url.startswith("hdfs:"):
                self._storage = storage_of(self._url)
            self._storage.make(self._url)

    def put(self, names: Sequence[str]) -> None:
        """Put these files of the working directory. Exits if that fails."""
        paths = list(map(Path, names))
        with _exiting():
            if self._url.startswith("file:"):
                _put_shared(paths, Path(unquote(urlsplit(self._url).path)))
            else:
                self._storage.upload(paths, self._url)


def _put_shared(paths: Sequence[Path], directory: Path) -> None:
    for path in paths:
        with path.open("rb") as file, local.write_atomic(directory / path.name) as shared:
            shutil.copyfileobj(file, shared, 1 << 20)


@contextmanager
def _exiting() -> Iterator[None]:
    try:
        yield
    except CdxmillError as error:
        sys.exit(f"cdxmill: {error}")
