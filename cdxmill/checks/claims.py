"""The files of a cluster, cdxmill's or another's, and what they say about its shards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from cdxmill.checks.shards import ShardFiles
from cdxmill.cluster.find import (
    Rule,
    check_rule,
    find_directory,
    has_cluster,
    location_names,
    not_a_cluster,
    shard_locations,
)
from cdxmill.cluster.split_files import SPLITS
from cdxmill.cluster.write import KEPT, kept_shards, read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.clusters.manifest import Manifest, most_lines
from cdxmill.formats.clusters.split_points import parse
from cdxmill.formats.clusters.zipnum import (
    INDEX,
    MANIFEST,
    OVERLAY,
    OVERLAY_LINES,
    PART,
    SHARD,
    SUMMARY,
    ParsedLocations,
    parse_locations,
    part_of,
    shard_name,
)
from cdxmill.regex import regex
from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_index import IndexReport, ShardLines, scan_index
from cdxmill.storage.location import Location, pieces


class ClusterFiles:
    """The files of the cluster at a path or URL, by name.

    `index` is the name of its index, None if it has none. `shards` and `parts` are the names of the listed ones.
    With a `rule`, as lookups take it, shards are in another directory.
    """

    def __init__(self, cluster: Location, rule: Rule | None = None) -> None:
        """Raises UsageError if there is no cluster, InputError if its directory cannot be read."""
        if rule is not None:
            check_rule(rule)
        self._rule = rule
        directory, self.index = find_directory(cluster)
        if self.index is None and not has_cluster(directory):
            raise not_a_cluster(cluster, f"{INDEX}, {SUMMARY} or {MANIFEST}")
        self.directory, self.has, self.names = directory.place, directory.has, directory.names
        self.shards = in_order(self.names(SHARD))
        self.parts = in_order(self.names(PART))

    def path(self, name: str) -> str:
        """The path or URL of a file beside the index."""
        return str(self.directory / name)

    def shard(self, name: str) -> Location:
        """Where readers look for a shard first."""
        return next(
            shard_locations(self.directory, name, self._rule, lambda: dict(self.locations.rows), self.has)
        )

    @cached_property
    def kept(self) -> set[str]:
        """The names of the shards that changes have replaced, and that are kept for readers."""
        return set(kept_shards(self.directory)) if self.has(KEPT) else set()

    @cached_property
    def locations_name(self) -> str | None:
        """The name of cluster.loc, None if there is none."""
        return next(filter(self.has, location_names(self.index)), None)

    @cached_property
    def locations(self) -> ParsedLocations:
        """The contents of cluster.loc; no rows if there is none."""
        if self.locations_name is None:
            return ParsedLocations([], [])
        return parse_locations((self.directory / self.locations_name).read_bytes())


def in_order(names: Iterable[str]) -> list[str]:
    """Names of shards or parts by their numbers, which may have more than five digits."""
    return sorted(names, key=lambda name: [int(digits) for digits in re.findall(r"\d+", name)])


class Claims(NamedTuple):
    """The valid manifest of a cluster or None, its index, and the names of its shards in the order of their lines."""

    manifest: Manifest | None
    index_report: IndexReport
    shards: list[str]


def read_claims(files: ClusterFiles, report: Callable[[list[Failure]], None]) -> Claims:
    """Read the manifest and the index of a cluster. Findings are reported at once.

    Raises InputError if the index cannot be read.
    """
    manifest, damage = _manifest(files)
    report(damage)
    index = _index(files)
    path = files.path(files.index or INDEX)
    report([Failure(path, *fault) for fault in index.faults])
    if manifest is None:
        shards = _shards_without_manifest(files, index)
    else:
        shards = [shard.name for shard in manifest.shards]
        unknown = (name for name in index.shards if name not in set(shards))
        report([Failure(path, None, f"{name} is not in {MANIFEST}") for name in unknown])
    overlays = [one.name for one in manifest.overlays] if manifest is not None else []
    report(_foreign_files(files, index, shards, overlays))
    return Claims(manifest, index, shards)


def _manifest(files: ClusterFiles) -> tuple[Manifest | None, list[Failure]]:
    if not files.has(MANIFEST):
        return None, []
    try:
        return read_manifest(files.directory / MANIFEST), []
    except InputError as error:
        return None, [Failure.from_error(error)]


def _index(files: ClusterFiles) -> IndexReport:
    if files.index is None:
        return IndexReport({}, False, [])
    with (files.directory / files.index).open_ranges() as read_at:
        return scan_index(pieces(read_at))


def _shards_without_manifest(files: ClusterFiles, index: IndexReport) -> list[str]:
    located = [row.shard for row in files.locations.rows]
    others = {*files.shards, *located} - index.shards.keys() - _files_of_index(files, index)
    return in_order({*index.shards, *others}) if others else list(index.shards)


def _foreign_files(
    files: ClusterFiles, index: IndexReport, shards: list[str], overlays: Sequence[str]
) -> list[Failure]:
    own = [*shards, *files.kept]
    known = {*own, *map(part_of, own), *_files_of_index(files, index), *overlays}
    return [
        Failure(files.path(name), None, "does not belong to this cluster: its index has no lines for it")
        for name in (*files.shards, *files.parts, *files.names(OVERLAY))
        if name not in known
    ]


def _files_of_index(files: ClusterFiles, index: IndexReport) -> set[str]:
    """File names of the shards in the index, which may omit their endings."""
    return {files.shard(name).name for name in index.shards}


def shard_tasks(files: ClusterFiles, claims: Claims) -> list[ShardFiles]:
    """One task per shard: what is known about it."""
    return [_task(files, claims, name) for name in claims.shards]


def overlay_tasks(files: ClusterFiles, claims: Claims) -> list[ShardFiles]:
    """One task per overlay. Its part is its index."""
    overlays = claims.manifest.overlays if claims.manifest is not None else ()
    return [
        ShardFiles(
            one.name,
            files.shard(one.name),
            files.directory / part_of(one.name),
            None,
            ShardLines(0, 0, 0),
            numbered=False,
            block_lines=OVERLAY_LINES * 3 // 2,
            section_lines=0,
            exact=True,
            is_even=False,
        )
        for one in overlays
    ]


def _task(files: ClusterFiles, claims: Claims, name: str) -> ShardFiles:
    manifest, index, part = claims.manifest, claims.index_report, part_of(name)
    has_parts = manifest is not None or files.parts or files.has(part)
    return ShardFiles(
        name,
        files.shard(name),
        files.directory / part if has_parts else None,
        files.directory / files.index if files.index is not None else None,
        index.shards.get(name, ShardLines(0, 0, 0)),
        index.numbered or manifest is not None,
        most_lines(manifest) if manifest is not None else None,
        manifest.compressor.section_lines if manifest is not None else 0,
        manifest is not None,
        manifest is None or not manifest.change,
    )


_UNFINISHED = regex(r"_temporary|_report-\d+|\.work|\.run-\d+|\.(?:cdx|part|cluster)[-.].*\.tmp")
"""Names that a run leaves in the directory of a cluster until it ends."""


def check_completeness(files: ClusterFiles, claims: Claims) -> Iterator[Failure]:
    """Look for leftovers of a run, for missing numbers of shards, and for another number of split points."""
    for name in sorted(files.names(_UNFINISHED))[:1]:
        reason = "a run that writes this cluster has not finished"
        yield Failure(
            files.path(name), None, reason, "run it again, or delete this file if it belongs to no run"
        )
    if not files.shards:  # elsewhere, or on a server without listings: empty shards are not known
        return
    numbers = {int(match[1]) for name in claims.shards if (match := SHARD.fullmatch(name))}
    for number in sorted(set(range(max(numbers, default=-1))) - numbers)[:1]:
        reason = f"is missing, but there is {shard_name(max(numbers))}"
        yield Failure(files.path(shard_name(number)), None, reason)
    yield from _check_points(files, claims)


def _check_points(files: ClusterFiles, claims: Claims) -> Iterator[Failure]:
    for name in filter(files.has, SPLITS):
        try:
            points = parse((files.directory / name).read_bytes())
        except ValueError as error:
            yield Failure(files.path(name), None, str(error))
            continue
        if len(points) + 1 != len(claims.shards):
            reason = f"has split points for {len(points) + 1} shards, but {len(claims.shards)} were found"
            yield Failure(files.path(name), None, reason)
