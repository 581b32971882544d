"""The CDX files that a job on Hadoop reads. What Hadoop would pass over without a word is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cdxmill.errors import UsageError
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.jobs.on_hadoop import is_url
from cdxmill.jobs.remote_folder import folder_of
from cdxmill.storage.walk import is_glob

_CDX = re.compile(r"\.cdxj?(\.gz)?$", re.I)
_HIDDEN = (".", "_")
_UNFINISHED = "_temporary"


def cdx_inputs(names: list[str], runner: Any) -> list[str]:
    """Inputs as mrjob takes them: URLs as they are, folders and globs of this machine as files.

    Raises UsageError where there is none, or one that Hadoop does not read, StoppedError where that cannot be told.
    """
    found: list[str] = []
    for name in names:
        if is_url(name):
            _check_url(name, runner)
        found += [name] if is_url(name) else _files_here(name)
    return found


def _files_here(name: str) -> list[str]:
    files = find_cdx_files([name])
    if not files:
        raise UsageError(f"{name}: no CDX file is in this folder")
    for file in files:
        if not Path(file).exists():
            raise UsageError(f"{file}: no such file; on Hadoop name what it has itself as hdfs:///PATH")
    return files


def _check_url(url: str, runner: Any) -> None:
    """Look into a folder or glob; of a file that is named Hadoop tells itself."""
    if _CDX.search(url) and not is_glob(url):
        return
    files = [file for file in folder_of(url, runner).files() if _CDX.search(file)]
    if not files:
        raise UsageError(f"{url}: no CDX file is there")
    start = url.rstrip("/").count("/")
    for file in files:
        steps = file.split("/")[start:]
        if any(step.startswith(_HIDDEN) for step in steps) and _UNFINISHED not in steps:
            raise UsageError(f"{file}: Hadoop passes over names that begin with . or _; rename it")
