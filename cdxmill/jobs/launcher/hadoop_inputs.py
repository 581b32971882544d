"""The CDX files that a job on Hadoop reads, in groups, one for each mapper."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from pathlib import Path

from cdxmill.errors import UsageError
from cdxmill.formats.lines.cdx_lines import CDX_NAME
from cdxmill.inputs.cdx_files import cdx_files_of, take_inventory
from cdxmill.inputs.shared_names import two_archives
from cdxmill.jobs.launcher.hadoop_directory import directory_of, is_url
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike, settings_of
from cdxmill.messages import say
from cdxmill.stages.lines.cdx_text import REBUILD
from cdxmill.storage.walk import is_glob, unfinished_in

SIZE_SETTING = "mapreduce.input.fileinputformat.split.maxsize"
"""Hadoop's name for the number of bytes that a mapper reads."""
MAPPER_BYTES = 320 << 20
"""Compressed bytes that a mapper reads, if SIZE_SETTING does not say otherwise: few mappers start few JVMs."""


def cdx_inputs(inputs: Iterable[str], runner: RunnerLike) -> dict[str, int]:
    """The CDX files and their sizes: URLs, and paths of this machine.

    Raises UsageError if an input has no CDX file, and StoppedError if that cannot be found out.
    """
    found: dict[str, int] = {}
    for path in inputs:
        found.update(_files_at(path, runner) if is_url(path) else _local_files(path))
    return found


def note_shared_names(files: Iterable[str], runner: RunnerLike) -> None:
    """Note two archives of one name, as `cdxmill zipnum` does. Files that only the hadoop command reaches are not compared."""
    found = [path for path in files if not is_url(path) or directory_of(path, runner).is_near]
    for text in two_archives(take_inventory(found, formats=True).sources):
        say(text)


def group_inputs(files: Mapping[str, int], most: int) -> list[list[str]]:
    """Files in groups of similar size, of at most about `most` bytes. The largest files are placed first.

    >>> group_inputs({"a": 5, "b": 1, "c": 4}, 5)
    [['a'], ['b', 'c']]
    """
    count = min(len(files), -(-sum(files.values()) // max(most, 1)) or 1)
    groups: list[tuple[int, int, list[str]]] = [(0, number, []) for number in range(count)]
    for path in sorted(files, key=lambda path: (-files[path], path)):
        size, number, group = heapq.heappop(groups)
        group.append(path)
        heapq.heappush(groups, (size + files[path], number, group))
    return [sorted(group) for _, _, group in sorted(groups, key=lambda group: group[1])]


def bytes_per_mapper(runner: RunnerLike) -> int:
    """What the user has set, or MAPPER_BYTES. Raises UsageError."""
    given = settings_of(runner).get(SIZE_SETTING, MAPPER_BYTES)
    try:
        return int(given)
    except ValueError:
        raise UsageError(f"{SIZE_SETTING}: {given} is not a number of bytes") from None


def _local_files(path: str) -> dict[str, int]:
    found = {file: Path(file) for file in cdx_files_of([path])}
    for file, place in found.items():
        if not place.exists():
            raise UsageError(f"{file}: no such file; for a file in HDFS write hdfs:///PATH")
        if not place.stat().st_size:
            raise UsageError(f"{file}: the file is empty; {REBUILD}")
    return {file: place.stat().st_size for file, place in found.items()}


def _files_at(url: str, runner: RunnerLike) -> dict[str, int]:
    files = directory_of(url, runner).files()
    if not is_glob(url) and url in files:
        return {url: files[url]}  # whatever its name
    found = {file: size for file, size in files.items() if CDX_NAME.search(file) and not unfinished_in(file)}
    if not found:
        raise UsageError(f"{url}: no CDX file found")
    return found
