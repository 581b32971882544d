"""The files beside a cluster's shards, compared with the shards: indexes, manifest, split points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from cdxmill.cluster.files import ClusterFiles
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, splits_digest
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.split_points import format_sequence_file, parse_text
from cdxmill.formats.clusters.zipnum_index import INDEX, LOCATIONS, MANIFEST, SUMMARY
from cdxmill.inputs.split_files import SPLITS
from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_shard import CheckedShard
from cdxmill.storage.location import locate, pieces


def check_indexes(files: ClusterFiles) -> Iterator[Failure]:
    """Check that cluster.idx and cluster.summary are equal, if both exist."""
    if not (files.has(INDEX) and files.has(SUMMARY)):
        return
    with (
        locate(files.path(INDEX)).open_ranges() as first,
        locate(files.path(SUMMARY)).open_ranges() as second,
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
    for number, line in enumerate(locate(files.path(ARCHIVES)).read_bytes().splitlines(), 1):
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
    for entry in manifest.shards:
        report = reports[entry.name]
        if report.faults:
            continue
        found = ShardEntry(entry.name, report.size, report.lines, report.blocks, report.sha256)
        for field, value, recorded in zip(entry._fields, found, entry, strict=True):
            if value != recorded:
                reason = f"{field} is {value}, but {recorded} in {MANIFEST}"
                yield Failure(files.path(entry.name), None, reason)


def check_splits(
    files: ClusterFiles, manifest: Manifest, reports: Mapping[str, CheckedShard]
) -> Iterator[Failure]:
    """Compare the split points with the manifest and the shards."""
    text, sequence = map(files.path, SPLITS)
    for name in SPLITS:
        if not files.has(name):
            yield Failure(files.path(name), None, "is missing")
            return
    data = locate(text).read_bytes()
    try:
        points = parse_text(data)
    except ValueError as error:
        yield Failure(text, None, str(error))
        return
    if hashlib.sha256(data).hexdigest() != manifest.splits_sha256:
        yield Failure(text, None, f"its SHA-256 does not match {MANIFEST}")
    elif splits_digest(points) != manifest.splits_sha256:
        yield Failure(text, None, "it is not written as cdxmill writes it")
    if locate(sequence).read_bytes() != format_sequence_file(points):
        yield Failure(sequence, None, f"its split points differ from {SPLITS[0]}")
    names = [shard.name for shard in manifest.shards]
    if len(points) + 1 != len(names):
        yield Failure(text, None, f"has {len(points)} split points for {len(names)} shards")
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
