"""What cdxmill writes into the directory of a cluster: the names, the shards, the files beside them, the record of the run.

    cluster.json           lists the shards. With it, a cluster is finished. It is written last, and deleted first
    .finished.json         the record of the run. Readers do not need it. It is written before cluster.json
    .kept.json             the shards that changes have replaced, and that are kept for readers: see cluster/change
    .published.json        the shards that `publish` has copied so far, while its destination is not finished
    .work                  what a run that has not finished can continue with

Every other file in the directory is somebody's, and is never deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.cluster.find import find_index, location_names, resolved, why_refused
from cdxmill.cluster.split_files import SPLITS, stored_splits, write_splits
from cdxmill.errors import CdxmillError, InputError, OutageError, UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import (
    Manifest,
    ShardEntry,
    format_manifest,
    make_manifest,
    origin_of,
    parse_manifest,
    splits_digest,
)
from cdxmill.formats.clusters.zipnum import (
    ARCHIVES,
    INDEX,
    LOCATIONS,
    MANIFEST,
    SUMMARY,
    files_of_shard,
    format_location,
    parse_locations,
    part_name,
    part_of,
    shard_name,
)
from cdxmill.regex import regex
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import counted
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.reading import json_if_any, sha256_of
from cdxmill.storage.scratch import Scratch

if TYPE_CHECKING:  # they are slow to import, and most commands only read
    from cdxmill.stages.lines.line_lists import TextBlock
    from cdxmill.stages.lines.sort_lines import Slice


def check_installed(compressor: Compressor) -> None:
    """Raise UsageError if this machine lacks the library of a compressor."""
    try:
        compressor.version()
    except ValueError as error:
        raise UsageError(str(error)) from None


def read_manifest(path: Location) -> Manifest:
    """Read and check the cluster.json at a path or URL. Raises InputError where it is missing or corrupt."""
    try:
        return parse_manifest(path.read_bytes())
    except ValueError as error:
        raise InputError(str(path), f"is corrupt ({error})", "build or publish the cluster again") from None


FINISHED = ".finished.json"
COPIED = ".published.json"
KEPT = ".kept.json"
"""Shards that changes have replaced, each with the time in seconds since 1970: readers may still need them."""
BESIDE = (INDEX, SUMMARY, LOCATIONS)
NUMBERED = regex(r"(?:part-(\d{5,})(?:-\d+)?|cdx-(\d{5,})(?:-\d+)?\.gz|overlay-\d{5,}-\d+\.(?:gz|idx|keys))")
"""The name of a part or a shard, with its number, or of a file of an overlay."""


class RunRecord(NamedTuple):
    """`run` is the fingerprint of inputs and options, `summary` the numbers that the command prints.

    `failures` are those of the run, `files` the paths of files below the directory besides those of the cluster.
    """

    run: str
    summary: list[int]
    failures: list[Failure]
    files: list[str]

    def report(self, place: Location, failures: Failures) -> None:
        """Report the failures of that run again."""
        for path, found in groupby(self.failures, attrgetter("path")):
            failures.report_listed(path, found)
        if self.failures:
            failures.note(
                f"{place}: note: these failures are of the run that built it; --replace tries them again"
            )


def write_record(place: Location, record: RunRecord) -> None:
    """Write the record of a cluster. Raises StoppedError."""
    with (place / FINISHED).write_atomic() as file:
        file.write(json.dumps(record._asdict()).encode())


def read_record(place: Location) -> RunRecord | None:
    """The record of a cluster; None if it has none, or a corrupt one. Raises OutageError."""
    found = json_if_any(place / FINISHED)
    try:
        failures = [Failure(*failure) for failure in found["failures"]]
        summary = list(map(int, found["summary"]))
        return RunRecord(str(found["run"]), summary, failures, list(map(str, found["files"])))
    except (ValueError, KeyError, TypeError):
        return None


def fault_of(place: Location, index_only: bool = False, exact: bool = False) -> str | None:
    """What is wrong with the files of a finished cluster; None if nothing is. Shards and indexes are known by their sizes.

    With `index_only`, its shards are elsewhere. With `exact`, local shards are read, and known by their SHA-256. Raises
    OutageError.
    """
    found = place.entries()
    try:
        manifest = read_manifest(place / MANIFEST)
    except OutageError:
        raise
    except InputError as error:
        return f"{MANIFEST} {error.reason}"
    for shard in () if index_only else manifest.files:
        if shard.name not in found or found[shard.name].size != shard.bytes:
            return f"{shard.name} is missing or has another size than in {MANIFEST}"
        if exact and not place.is_remote and sha256_of(place / shard.name) != shard.sha256:
            return f"{shard.name} is corrupt"
    parts = [part_of(shard.name) for shard in manifest.shards]
    of_overlays = [name for one in manifest.overlays for name in files_of_shard(one.name)[1:]]
    for name in (*BESIDE, *SPLITS, *parts, *of_overlays):
        if name not in found:
            return f"{name} is missing"
    size = sum(found[part].size for part in parts) + _numbers_size(manifest.blocks)
    for name in (INDEX, SUMMARY):
        if found[name].size != size:
            return f"{name} has another size than the parts"
    rows, faults = parse_locations((place / LOCATIONS).read_bytes())
    named = {row.shard for row in rows}
    if lost := next((shard.name for shard in manifest.files if shard.name not in named), None):
        return f"{LOCATIONS} does not have {lost}"
    return f"{LOCATIONS}: {faults[0]}" if faults else fault_of_splits(place, manifest)


def _numbers_size(rows: int) -> int:
    """The bytes of a tab and a number at the end of each row: `write_index` adds them to the rows of the parts.

    >>> _numbers_size(11) == len("".join(f",{number}" for number in range(1, 12)))
    True
    """
    return rows + sum(rows - 10**digits + 1 for digits in range(len(str(rows)))) if rows else 0


def fault_of_splits(place: Location, manifest: Manifest) -> str | None:
    """What is wrong with the files of split points of a cluster; None if nothing is."""
    text, sequence = SPLITS
    points = stored_splits(place / text)
    is_known = points is not None and splits_digest(points) == manifest.splits_sha256
    is_known = is_known and stored_splits(place / sequence) == points
    return None if is_known else f"{text} or {sequence} has other split points than {MANIFEST}"


def shards_of(place: Location) -> list[str]:
    """The names of the shards and overlays of a finished cluster, and of those kept for readers.

    Raises InputError if cluster.json cannot be read.
    """
    return [*(shard.name for shard in read_manifest(place / MANIFEST).files), *kept_shards(place)]


def kept_shards(place: Location) -> dict[str, float]:
    """The replaced shards that are kept for readers, and since when. A corrupt list is an empty one. Raises OutageError."""
    found = json_if_any(place / KEPT)
    try:
        return {name: float(since) for name, since in found.items() if NUMBERED.fullmatch(name)}
    except (ValueError, AttributeError, TypeError):
        return {}


def cluster_files(shards: Sequence[str]) -> set[str]:
    """The names of the files of a cluster with these shards."""
    own = {name for shard in shards for name in files_of_shard(shard)}
    return {*own, *BESIDE, *SPLITS, MANIFEST, FINISHED, COPIED, KEPT}


def files_of(index: Location) -> list[Location]:
    """The files of the cluster of an index, also shards that are elsewhere. No command that reads it writes to one.

    A server without listings has only the index: nothing can be written there.
    """
    directory = index.parent
    names = set(directory.entries()) if directory.properties.can_write else set()
    own = {name for name in names if NUMBERED.fullmatch(name)} | names & {*cluster_files(()), ARCHIVES}
    listed = next((directory / name for name in location_names(index.name) if name in names), None)
    rows = parse_locations(listed.read_bytes()).rows if listed else []
    shards = [one for row in rows for one in row.locations if not why_refused(directory, one)]
    return [index, *(directory / name for name in own), *(resolved(directory, one) for one in shards)]


def files_read(source: PathOrUrl) -> list[Location]:
    """What no command that reads `source` writes to: the files of a cluster, or the CDX file itself."""
    place = locate(source)
    try:
        return files_of(find_index(place))
    except CdxmillError:  # no cluster, or it cannot be read, which is reported by whoever reads it
        return [place]


def shards_in(directory: Location) -> list[Location]:
    """The shards and parts of any cluster in a directory, which a new cluster would replace."""
    return [directory / name for name in directory.entries() if NUMBERED.fullmatch(name)]


def directories_of(files: Iterable[str]) -> set[str]:
    """The directories above relative paths.

    >>> sorted(directories_of(["cdx/a/b.cdx.gz", "c"]))
    ['cdx', 'cdx/a']
    """
    return {str(above) for name in files for above in PurePosixPath(name).parents if above.name}


class ShardTask(NamedTuple):
    """A shard: its slices of the runs in `scratch`, and how it is written to `directory`."""

    number: int
    slices: list[Slice]
    directory: Location
    scratch: Path
    compressor: Compressor
    block_lines: int

    def packed(self) -> int:
        """The approximate number of bytes on disk of all slices."""
        return sum(part.packed() for part in self.slices)


def write_shard_of(task: ShardTask) -> ShardEntry:
    """Merge the slices of a shard, and write its files."""
    from cdxmill.stages.lines.merge_lines import merge_blocks

    scratch = Scratch(task.scratch)
    blocks = merge_blocks(task.slices, lambda name: counted(scratch.reader(name)), task.block_lines)
    return write_shard_files(blocks, task.number, task.directory, task.compressor)


def write_shard_files(
    blocks: Iterable[TextBlock], number: int, directory: Location, compressor: Compressor
) -> ShardEntry:
    """Write the blocks of a shard, and its part of the index, to `directory`, each whole or not at all."""
    from cdxmill.stages.zipnum.write_shard import write_shard

    name = shard_name(number)
    with (
        (directory / name).write_atomic() as shard,
        (directory / part_name(number)).write_atomic() as part,
    ):
        return write_shard(blocks, name, shard, part, compressor)


def is_shard_whole(directory: Location, shard: ShardEntry) -> bool:
    """Whether the files of a shard that an earlier run wrote still exist. Raises TypeError if `shard` has wrong types."""
    if list(map(type, shard)) != [str, int, int, int, str]:
        raise TypeError(f"not a shard: {shard}")
    found, part = (directory / shard.name).status(), (directory / part_of(shard.name)).status()
    if found is None or part is None or found.size != shard.bytes:
        return False
    return bool(part.size or not shard.lines)


def unpublish(directory: Location) -> None:
    """Remove what makes a directory a finished cluster."""
    for name in (MANIFEST, INDEX, SUMMARY, LOCATIONS):
        (directory / name).remove()


def write_cluster_files(
    directory: Location,
    shards: Sequence[ShardEntry],
    points: Sequence[bytes],
    compressor: Compressor,
    block_lines: int,
    location: Location,
) -> None:
    """Finish the cluster in `directory` after its parts and shards are written. cluster.loc has the shards at `location`."""
    made = make_manifest(shards, points, compressor, block_lines)
    if [shard.name for shard in shards] != list(map(shard_name, range(len(shards)))):
        # their blocks have unequal lengths
        made = made._replace(change=1, origin=origin_of(made))
    write_splits(points, directory / "splits.txt")
    write_index(directory, ((directory / part_of(shard.name)).read_bytes() for shard in shards))
    write_locations(directory, [shard.name for shard in shards], location)
    with (directory / MANIFEST).write_atomic() as file:
        file.write(format_manifest(made))


def write_index(directory: Location, parts: Iterable[bytes]) -> None:
    """Write all parts with line numbers to cluster.idx and cluster.summary. Some readers look for the second name."""
    number = 0
    with (
        (directory / INDEX).write_atomic() as index,
        (directory / SUMMARY).write_atomic() as summary,
    ):
        for part in parts:
            for line in part.removesuffix(b"\n").split(b"\n") if part else ():
                number += 1
                numbered = b"%b\t%d\n" % (line, number)
                index.write(numbered)
                summary.write(numbered)


def write_locations(directory: Location, shards: Iterable[str], base: Location) -> None:
    """Write cluster.loc. All shards are in `base`."""
    with (directory / LOCATIONS).write_atomic() as file:
        file.write(format_locations(shards, base))


def write_archive_index(directory: Location, content: bytes) -> None:
    """Write archives.tsv: where the archives of the cluster are."""
    with (directory / ARCHIVES).write_atomic() as file:
        file.write(content)


def format_locations(shards: Iterable[str], base: Location) -> bytes:
    """The contents of cluster.loc."""
    directory = locate(base.absolute())
    return b"".join(format_location(shard, str(directory / shard)) for shard in shards)
