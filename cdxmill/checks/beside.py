"""The files beside a cluster's shards, compared with the shards: indexes, cluster.loc, manifest, split points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from cdxmill.checks.claims import ClusterFiles
from cdxmill.cluster.find import resolved, why_refused
from cdxmill.cluster.overlays import filter_content
from cdxmill.cluster.split_files import SPLITS
from cdxmill.errors import InputError, OutageError
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, splits_digest
from cdxmill.formats.clusters.split_points import format_sequence_file, parse_text
from cdxmill.formats.clusters.zipnum import (
    ARCHIVES,
    INDEX,
    LOCATIONS,
    MANIFEST,
    SUMMARY,
    ShardLocations,
    filter_of,
)
from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_shard import CheckedShard
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.storage.location import Location, PathOrUrl, ask_all, join, locate, pieces
from cdxmill.storage.reading import sha256_of


class _Wrong(NamedTuple):
    reason: str
    hint: str = ""
    is_outage: bool = False


def check_locations(
    files: ClusterFiles, reports: Mapping[str, CheckedShard], base: PathOrUrl | None, exact: bool
) -> Iterator[Failure]:
    """Compare cluster.loc with the shards. Without a cluster.loc there are no findings.

    With a `base` the first location of every shard must be there, and no file is looked up. If `exact`, the rows must
    be in the order of the shards. Other local files are read.
    """
    if files.locations_name is None:
        return
    path = files.path(files.locations_name)
    yield from (Failure(path, None, reason) for reason in _wrong_rows(files, reports, exact))
    rows = files.locations.rows
    if base is not None:
        yield from (Failure(path, None, reason) for reason in _elsewhere(rows, locate(base).absolute()))
    else:
        yield from (Failure(path, None, *wrong) for wrong in _wrong_files(files, rows, reports))


def _wrong_rows(files: ClusterFiles, reports: Mapping[str, CheckedShard], exact: bool) -> Iterator[str]:
    rows, faults = files.locations
    yield from faults
    names = [row.shard for row in rows if row.shard in reports or row.shard not in files.kept]
    for name in sorted(reports.keys() - set(names)):
        yield f"{name} is missing"
    for name in sorted(set(names) - reports.keys()):
        yield f"names {name}, which is not a shard of this cluster"
    if len(set(names)) < len(names):
        yield "names a shard twice"
    if exact and not faults and set(names) == set(reports) and names != list(reports):
        yield "is not in the order of the shards"


def _elsewhere(rows: list[ShardLocations], base: str) -> Iterator[str]:
    for name, locations in rows:
        if locations[0] != join(base, name):
            yield f"the location of {name} is {locations[0]}, not {join(base, name)}"


def _wrong_files(
    files: ClusterFiles, rows: list[ShardLocations], reports: Mapping[str, CheckedShard]
) -> Iterator[_Wrong]:
    """Look up the file at each location. Those that readers do not use are findings."""
    listed = [(name, location) for name, locations in rows if name in reports for location in locations]
    named: list[tuple[str, Location]] = []
    for name, location in listed:
        if why := why_refused(files.directory, location):
            yield _Wrong(
                f"{name} is not used at {location}, which {why}", "publish the cluster with --location"
            )
        else:
            named.append((name, resolved(files.directory, location)))
    sizes = ask_all(_size, [place for _, place in named])
    for (name, place), size in zip(named, sizes, strict=True):
        if size is None:
            hint = "if the cluster was moved, publish it to itself"
            yield _Wrong(f"{name} is not at {place}: the file is missing or unreadable", hint)
            continue
        if isinstance(size, OutageError):
            yield _Wrong(f"cannot look up {name} at {place}: {size.reason}", size.hint, True)
            continue
        report = reports[name]
        if report.faults or place.is_same(files.shard(name)):
            continue
        if size and size != report.size:
            yield _Wrong(f"{name} is not at {place}: that file has {size} bytes, the shard {report.size}")
        elif not place.is_remote and sha256_of(place) != report.sha256:
            yield _Wrong(f"{name} is not at {place}: that file has other contents")


def _size(place: Location) -> int | OutageError | None:
    """The size of a file; None if it is missing or unreadable, an error if a machine or a right is at fault."""
    try:
        found = place.status()
    except OutageError as error:
        return error
    except InputError:
        return None
    return None if found is None or found.is_directory else found.size


def check_indexes(files: ClusterFiles) -> Iterator[Failure]:
    """Check that cluster.idx and cluster.summary are equal, if both exist."""
    if not (files.has(INDEX) and files.has(SUMMARY)):
        return
    with (
        (files.directory / INDEX).open_ranges() as first,
        (files.directory / SUMMARY).open_ranges() as second,
    ):
        start = 0
        for left, right in zip_longest(pieces(first), pieces(second), fillvalue=b""):
            if left != right:
                yield Failure(files.path(SUMMARY), None, f"differs from {INDEX} after byte {start}")
                return
            start += len(left)


def check_archive_index(files: ClusterFiles) -> Iterator[Failure]:
    """Check that the lines of archives.tsv, if it exists, are sorted and name places: pywb searches it by halves."""
    if not files.has(ARCHIVES):
        return
    last = b""
    for number, line in enumerate((files.directory / ARCHIVES).read_bytes().splitlines(), 1):
        name, *places = line.split(b"\t")
        if not name or not all(places) or not places:
            yield Failure(
                files.path(ARCHIVES), None, f"line {number}: expected a file name, a tab and a path or URL"
            )
        elif line <= last:
            yield Failure(files.path(ARCHIVES), None, f"line {number}: out of order")
        last = line


def check_complete(files: ClusterFiles) -> Iterator[Failure]:
    """Check that the files which cdxmill writes exist. Requires: the cluster has a manifest."""
    for name in (INDEX, SUMMARY, LOCATIONS):
        if not files.has(name):
            yield Failure(files.path(name), None, "is missing")


def check_manifest(
    files: ClusterFiles, manifest: Manifest, reports: Mapping[str, CheckedShard]
) -> Iterator[Failure]:
    """Compare the entries of cluster.json with the shards that have no faults."""
    for entry in manifest.files:
        report = reports[entry.name]
        if report.faults:
            continue
        found = ShardEntry(entry.name, report.size, report.lines, report.blocks, report.sha256)
        for field, value, recorded in zip(entry._fields, found, entry, strict=True):
            if value != recorded:
                reason = f"{field} is {value}, but {recorded} in {MANIFEST}"
                yield Failure(files.path(entry.name), None, reason)


def check_filters(files: ClusterFiles, manifest: Manifest) -> Iterator[Failure]:
    """Check that the key filters of overlays have all their keys: with a wrong one, readers would miss lines."""
    for entry in manifest.overlays:
        try:
            wanted = filter_content(files.directory, entry, files.shard(entry.name))
        except (InputError, DamagedCluster):
            continue  # reported where it was read
        path = files.directory / filter_of(entry.name)
        if path.read_bytes() != wanted:
            yield Failure(str(path), None, f"is not the key filter of {entry.name}")


def check_splits(
    files: ClusterFiles, manifest: Manifest, reports: Mapping[str, CheckedShard]
) -> Iterator[Failure]:
    """Compare the split points with the manifest and the shards."""
    text, sequence = (files.directory / name for name in SPLITS)
    for name in SPLITS:
        if not files.has(name):
            yield Failure(files.path(name), None, "is missing")
            return
    data = text.read_bytes()
    try:
        points = parse_text(data)
    except ValueError as error:
        yield Failure(str(text), None, str(error))
        return
    if hashlib.sha256(data).hexdigest() != manifest.splits_sha256:
        yield Failure(str(text), None, f"its SHA-256 does not match {MANIFEST}")
    elif splits_digest(points) != manifest.splits_sha256:
        yield Failure(str(text), None, "it is not written as cdxmill writes it")
    if sequence.read_bytes() != format_sequence_file(points):
        yield Failure(str(sequence), None, f"its split points differ from {SPLITS[0]}")
    names = [shard.name for shard in manifest.shards]
    if len(points) + 1 != len(names):
        yield Failure(str(text), None, f"has {len(points)} split points for {len(names)} shards")
        return
    yield from _outside(files, names, points, reports)


def _outside(
    files: ClusterFiles, names: Sequence[str], points: Sequence[bytes], reports: Mapping[str, CheckedShard]
) -> Iterator[Failure]:
    """Shards with lines outside their split points."""
    for name, low, high in zip(names, [None, *points], [*points, None], strict=True):
        report = reports[name]
        if not report.lines:
            continue
        if low is not None and report.first < low:
            reason = f"starts with {report.first[:80]!r}, which is below its split point {low[:80]!r}"
            yield Failure(files.path(name), None, reason)
        if high is not None and report.last >= high:
            reason = f"ends with {report.last[:80]!r}, which is not below the next split point {high[:80]!r}"
            yield Failure(files.path(name), None, reason)
