"""The record of the run that finished a cluster, and the names of the files that cdxmill wrote into its folder.

`.finished.json` is for cdxmill only: readers do not need it. It is written before cluster.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.cluster.files import part_of
from cdxmill.cluster.manifest import read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_index import INDEX, LOCATIONS, MANIFEST, SUMMARY
from cdxmill.inputs.split_files import SPLITS
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.choose import PathOrUrl, join, list_folder, read_bytes, write_atomic

FINISHED = ".finished.json"
COPIED = ".published.json"
"""The shards that `publish` has copied so far. It exists while its destination is not a finished cluster."""
WORK = ".work"
BESIDE = (INDEX, SUMMARY, LOCATIONS)


class Finished(NamedTuple):
    """`run` is the fingerprint of inputs and options, `summary` the numbers that the command prints.

    `failures` are those of the run, `files` the paths of files below the folder besides those of the cluster.
    """

    run: str
    summary: list[int]
    failures: list[Failure]
    files: list[str]

    def report(self, folder: PathOrUrl, failures: Failures) -> None:
        """Report the failures of that run again."""
        for path, found in groupby(self.failures, attrgetter("path")):
            failures.report_listed(path, found)
        if self.failures:
            failures.note(
                f"{folder}: note: these failures are of the run that built it; --replace tries them again"
            )


def write_finished(folder: PathOrUrl, finished: Finished) -> None:
    """Write the record of a cluster. Raises StoppedError."""
    with write_atomic(join(folder, FINISHED)) as file:
        file.write(json.dumps(finished._asdict()).encode())


def read_finished(folder: PathOrUrl) -> Finished | None:
    """The record of a cluster; None if it has none, or a corrupt one."""
    try:
        found: Any = json.loads(read_bytes(join(folder, FINISHED)))
        failures = [Failure(*failure) for failure in found["failures"]]
        summary = list(map(int, found["summary"]))
        return Finished(str(found["run"]), summary, failures, list(map(str, found["files"])))
    except (InputError, ValueError, KeyError, TypeError, RecursionError):
        return None


def fault_of(folder: Path) -> str | None:
    """What is wrong with the files of a finished cluster, by their names and sizes; None if nothing is."""
    found = list_folder(str(folder))
    try:
        shards = read_manifest(str(folder / MANIFEST)).shards
    except InputError as error:
        return f"{MANIFEST} {error.reason}"
    for shard in shards:
        if shard.name not in found or found[shard.name].size != shard.bytes:
            return f"{shard.name} is missing or has another size than in {MANIFEST}"
    needed = (*BESIDE, *SPLITS, *(part_of(shard.name) for shard in shards))
    return next((f"{name} is missing" for name in needed if name not in found), None)


def cluster_files(folder: Path) -> set[str]:
    """The names of the files of a finished cluster. Raises InputError if cluster.json cannot be read."""
    shards = [shard.name for shard in read_manifest(str(folder / MANIFEST)).shards]
    return {*shards, *map(part_of, shards), *BESIDE, *SPLITS, MANIFEST, FINISHED, COPIED}


def folders_of(files: Iterable[str]) -> set[str]:
    """The folders above relative paths.

    >>> sorted(folders_of(["cdx/a/b.cdx.gz", "c"]))
    ['cdx', 'cdx/a']
    """
    return {str(folder) for name in files for folder in Path(name).parents if folder.name}
