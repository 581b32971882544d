"""A cluster of another tool, without cluster.json -> one that can be changed: it is read whole, and gets what is missing.

Its shards stay as they are. Shards with sections are ours alone, so blocks that are added later have none either.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdxmill.checks.claims import Claims, ClusterFiles, read_claims, shard_tasks
from cdxmill.checks.shards import ReadShard, check_order, read_shards
from cdxmill.checks.verify_run import VerifyRun
from cdxmill.cluster.change import Change, changed_record, is_ready
from cdxmill.cluster.output import place_of
from cdxmill.cluster.split_files import SPLITS, stored_splits, write_splits
from cdxmill.cluster.write import write_locations
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.compressor import BLOCKS
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, make_manifest
from cdxmill.formats.clusters.zipnum import (
    LOCATIONS,
    MANIFEST,
    format_part_line,
    key_of,
    parse_index_line,
    part_of,
    shard_name,
)
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.storage.location import Location, PathOrUrl, locate

_COPY = "make a copy that can be changed: cdxmill merge -o NEW"


def adopt(path: PathOrUrl, failures: Failures, processes: int, quiet: bool) -> None:
    """Make the cluster at a path one that can be changed, if it has no cluster.json. Nothing is done if it has one.

    Raises UsageError if it cannot be adopted, InputError if it has a fault.
    """
    place = place_of(locate(path))
    if (place / MANIFEST).exists() or is_ready(place):
        return
    files = ClusterFiles(place)
    failures.note(f"{place}: note: has no {MANIFEST}, so all of it is checked first")
    with hold(files.directory, failures.note):
        claims, shards = _checked(files, failures, processes, quiet)
        points = _points(files.directory, claims, shards)
        _write_missing(files, claims, points)
        entries = [_entry(shard) for shard in shards]
        change = Change(files.directory, _manifest(shards, entries, points), points, 1)
        change.commit(entries, changed_record(files.directory, 1, [], []), {})


def _checked(
    files: ClusterFiles, failures: Failures, processes: int, quiet: bool
) -> tuple[Claims, list[ReadShard]]:
    """The shards, which have no fault. Raises InputError, UsageError."""
    run = VerifyRun(processes, failures, quiet)
    before = failures.count
    claims = read_claims(files, run.report)
    shards = read_shards(shard_tasks(files, claims), run)
    run.report(list(check_order(shards)))
    if failures.count > before:
        raise InputError(str(files.directory), f"has errors and no {MANIFEST}, so it was not changed")
    names = [shard_name(number) for number in range(len(claims.shards))]
    places = [files.shard(name) for name in claims.shards]
    if places != [files.directory / name for name in names]:
        raise UsageError(
            f"{files.directory}: its shards are elsewhere, or have other names than {shard_name(0)}; {_COPY} {files.directory}"
        )
    return claims, shards


def _points(place: Location, claims: Claims, shards: Sequence[ReadShard]) -> list[bytes]:
    """The keys at which the shards start. Raises UsageError if a key is in two shards, or a shard is empty."""
    points = [key_of(shard.report.first) for shard in shards[1:]]
    for point, shard in zip(points, shards, strict=False):
        if shard.report.last >= point:  # an empty shard has an empty point
            raise UsageError(
                f"{place}: one of its shards is empty, or has a key of the next one; {_COPY} {place}"
            )
    return points


def _write_missing(files: ClusterFiles, claims: Claims, points: Sequence[bytes]) -> None:
    """Write the parts, the split points and cluster.loc, if there are none. Raises UsageError if there are other split points."""
    place = files.directory
    for name in filter(files.has, SPLITS):
        if stored_splits(place / name) != list(points):
            raise UsageError(f"{place}: {name} has other split points than its shards; {_COPY} {place}")
    index = (place / (files.index or "")).read_bytes()
    for name, lines in claims.index_report.shards.items():
        if not files.has(part_of(name)):
            rows = index[lines.start : lines.end].split(b"\n")[:-1]
            with (place / part_of(name)).write_atomic() as file:
                file.write(b"".join(format_part_line(parse_index_line(row)) for row in rows))
    write_splits(points, str(place / SPLITS[0]))
    if not files.has(LOCATIONS):
        write_locations(place, claims.shards, place)


def _entry(shard: ReadShard) -> ShardEntry:
    report = shard.report
    return ShardEntry(shard.task.name, report.size, report.lines, report.blocks, report.sha256)


def _manifest(
    shards: Sequence[ReadShard], entries: Sequence[ShardEntry], points: Sequence[bytes]
) -> Manifest:
    """The manifest of the cluster before its first change."""
    lines = max(max(shard.report.block_lines, shard.report.last_lines) for shard in shards)
    return make_manifest(entries, points, BLOCKS._replace(section_lines=0), lines)
