"""cluster.loc, compared with the shards and with the files at its locations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cdxmill.cluster.files import ClusterFiles
from cdxmill.cluster.locations import resolved, why_refused
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_index import ShardLocations
from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_shard import CheckedShard
from cdxmill.storage.location import Location, PathOrUrl, ask_all, join, locate, pieces


class _Wrong(NamedTuple):
    reason: str
    hint: str = ""


def check_locations(
    files: ClusterFiles, reports: Mapping[str, CheckedShard], base: PathOrUrl | None, exact: bool
) -> Iterator[Failure]:
    """Compare cluster.loc with the shards. Without a cluster.loc there are no findings.

    With a `base` the first location of every shard must be there, and no file is looked up. If `exact`, the rows must
    be in the order of the shards, and other local files are read.
    """
    if files.locations_name is None:
        return
    path = files.path(files.locations_name)
    yield from (Failure(path, None, reason) for reason in _wrong_rows(files, reports, exact))
    rows = files.locations.rows
    if base is not None:
        yield from (Failure(path, None, reason) for reason in _elsewhere(rows, locate(base).absolute()))
    else:
        yield from (Failure(path, None, *wrong) for wrong in _wrong_files(files, rows, reports, exact))


def _wrong_rows(files: ClusterFiles, reports: Mapping[str, CheckedShard], exact: bool) -> Iterator[str]:
    rows, faults = files.locations
    yield from faults
    names = [row.shard for row in rows]
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
    files: ClusterFiles, rows: list[ShardLocations], reports: Mapping[str, CheckedShard], exact: bool
) -> Iterator[_Wrong]:
    """Look up the file at each location. Those that readers do not use are findings."""
    listed = [(name, location) for name, locations in rows if name in reports for location in locations]
    directory = locate(files.directory)
    refused = [why_refused(directory, location) for _, location in listed]
    for (name, location), why in zip(listed, refused, strict=True):
        if why:
            yield _Wrong(
                f"{name} is not used at {location}, which {why}", "publish the cluster with --location"
            )
    named = [
        (name, resolved(directory, location))
        for (name, location), why in zip(listed, refused, strict=True)
        if not why
    ]
    sizes = ask_all(_size, [place for _, place in named])
    for (name, place), size in zip(named, sizes, strict=True):
        if size is None:
            hint = "if the cluster was moved, publish it to itself"
            yield _Wrong(f"{name} is not at {place}: the file is missing or unreadable", hint)
            continue
        report = reports[name]
        if report.faults or place.is_same(locate(files.shard_path(name))):
            continue
        if size and size != report.size:
            yield _Wrong(f"{name} is not at {place}: that file has {size} bytes, the shard {report.size}")
        elif exact and not place.is_remote and _sha256(place) != report.sha256:
            yield _Wrong(f"{name} is not at {place}: that file has other contents")


def _size(place: Location) -> int | None:
    """The size of a file; None if it is missing or unreadable."""
    try:
        found = place.status()
    except InputError:
        return None
    return None if found is None or found.is_directory else found.size


def _sha256(place: Location) -> str:
    digest = hashlib.sha256()
    with place.open_ranges() as read_at:
        for piece in pieces(read_at):
            digest.update(piece)
    return digest.hexdigest()
