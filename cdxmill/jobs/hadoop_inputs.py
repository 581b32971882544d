"""The CDX files that a job on Hadoop reads. A file that Hadoop would skip silently is an error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cdxmill.errors import UsageError
from cdxmill.formats.cdx import CDX_NAME
from cdxmill.inputs.cdx_files import REBUILD
from cdxmill.jobs.found_inputs import cdx_files_of
from cdxmill.jobs.hadoop_folder import folder_of
from cdxmill.jobs.hadoop_urls import is_url
from cdxmill.jobs.mrjob_types import RunnerLike
from cdxmill.storage.walk import is_glob

_HIDDEN = (".", "_")
_UNFINISHED = "_temporary"


def cdx_inputs(inputs: Iterable[str], runner: RunnerLike) -> list[str]:
    """The inputs for mrjob: URLs as they are; directories and patterns of this machine as lists of files.

    Raises UsageError if one has no CDX file, or one that Hadoop does not read, and StoppedError
    if that cannot be found out.
    """
    found: list[str] = []
    for path in inputs:
        if is_url(path):
            _check_url(path, runner)
        found += [path] if is_url(path) else _local_files(path)
    return found


def _local_files(path: str) -> list[str]:
    files = cdx_files_of([path])
    for file in files:
        if not Path(file).exists():
            raise UsageError(f"{file}: no such file; for a file in HDFS write hdfs:///PATH")
        if not Path(file).stat().st_size:
            raise UsageError(f"{file}: the file is empty; {REBUILD}")
    return files


def _check_url(url: str, runner: RunnerLike) -> None:
    """Check the files of a directory or pattern. A single file is checked by Hadoop itself."""
    if CDX_NAME.search(url) and not is_glob(url):
        return
    files = [file for file in folder_of(url, runner).files() if CDX_NAME.search(file)]
    if not files:
        raise UsageError(f"{url}: no CDX file found")
    start = url.rstrip("/").count("/")
    for file in files:
        names = file.split("/")[start:]
        if any(name.startswith(_HIDDEN) for name in names) and _UNFINISHED not in names:
            raise UsageError(f"{file}: Hadoop skips names that begin with . or _; rename it")
