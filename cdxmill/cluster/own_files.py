"""What cdxmill itself writes into the directory of a cluster: the names, and the record of the run that finished it.

    cluster.json           lists the shards. With it, a cluster is finished. It is written last, and deleted first
    .finished.json         the record of the run. Readers do not need it. It is written before cluster.json
    .published.json        the shards that `publish` has copied so far, while its destination is not finished
    .work                  what a run that has not finished can continue with

Every other file in the directory is somebody's, and is never deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from cdxmill.cluster.manifest import read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_index import INDEX, LOCATIONS, MANIFEST, SUMMARY, part_of
from cdxmill.inputs.split_files import SPLITS
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import PathOrUrl, join, locate

FINISHED = ".finished.json"
COPIED = ".published.json"
WORK = ".work"
BESIDE = (INDEX, SUMMARY, LOCATIONS)
NUMBERED = re.compile(r"(?:part-(\d{5,})|cdx-(\d{5,})\.gz)")
"""The name of a part or a shard, with its number."""


class RunRecord(NamedTuple):
    """`run` is the fingerprint of inputs and options, `summary` the numbers that the command prints.

    `failures` are those of the run, `files` the paths of files below the directory besides those of the cluster.
    """

    run: str
    summary: list[int]
    failures: list[Failure]
    files: list[str]

    def report(self, place: PathOrUrl, failures: Failures) -> None:
        """Report the failures of that run again."""
        for path, found in groupby(self.failures, attrgetter("path")):
            failures.report_listed(path, found)
        if self.failures:
            failures.note(
                f"{place}: note: these failures are of the run that built it; --replace tries them again"
            )


def write_record(place: PathOrUrl, record: RunRecord) -> None:
    """Write the record of a cluster. Raises StoppedError."""
    with (locate(place) / FINISHED).write_atomic() as file:
        file.write(json.dumps(record._asdict()).encode())


def read_record(place: PathOrUrl) -> RunRecord | None:
    """The record of a cluster; None if it has none, or a corrupt one."""
    try:
        found: Any = json.loads((locate(place) / FINISHED).read_bytes())
        failures = [Failure(*failure) for failure in found["failures"]]
        summary = list(map(int, found["summary"]))
        return RunRecord(str(found["run"]), summary, failures, list(map(str, found["files"])))
    except (InputError, ValueError, KeyError, TypeError, RecursionError):
        return None


def fault_of(place: PathOrUrl) -> str | None:
    """What is wrong with the files of a finished cluster, by their names and sizes; None if nothing is."""
    found = locate(place).entries()
    try:
        shards = read_manifest(join(place, MANIFEST)).shards
    except InputError as error:
        return f"{MANIFEST} {error.reason}"
    for shard in shards:
        if shard.name not in found or found[shard.name].size != shard.bytes:
            return f"{shard.name} is missing or has another size than in {MANIFEST}"
    needed = (*BESIDE, *SPLITS, *(part_of(shard.name) for shard in shards))
    return next((f"{name} is missing" for name in needed if name not in found), None)


def shards_of(place: PathOrUrl) -> list[str]:
    """The names of the shards of a finished cluster. Raises InputError if cluster.json cannot be read."""
    return [shard.name for shard in read_manifest(join(place, MANIFEST)).shards]


def cluster_files(shards: Sequence[str]) -> set[str]:
    """The names of the files of a cluster with these shards."""
    return {*shards, *map(part_of, shards), *BESIDE, *SPLITS, MANIFEST, FINISHED, COPIED}


def directories_of(files: Iterable[str]) -> set[str]:
    """The directories above relative paths.

    >>> sorted(directories_of(["cdx/a/b.cdx.gz", "c"]))
    ['cdx', 'cdx/a']
    """
    return {str(above) for name in files for above in PurePosixPath(name).parents if above.name}
