"""merge: clusters -> one new cluster of all their lines. A shard is a sorted file, so nothing is sorted again.

Blocks between whose lines no other cluster has any are copied, if all clusters have blocks as they are wanted. If a cluster has
others, has no cluster.json, or a damaged index, all shards are sorted files for `zipnum`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from cdxmill.checks.claims import ClusterFiles, read_claims
from cdxmill.cluster.archive_index import has_archive_index
from cdxmill.cluster.exclude import read_excluded
from cdxmill.cluster.find import local_directory
from cdxmill.cluster.manifest_file import manifest_beside
from cdxmill.cluster.split_files import SPLITS, stored_splits
from cdxmill.commands.clusters.zipnum import Beside, ClusterSummary, build_cluster, zipnum_options
from cdxmill.commands.collections.merge_shards import make_merged
from cdxmill.commands.collections.other_clusters import OtherCluster, why_not_copied
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.manifest import used_compressor
from cdxmill.formats.clusters.zipnum import ARCHIVES, format_path_index, parse_path_index
from cdxmill.options.collections import Merging
from cdxmill.options.option import required_paths
from cdxmill.running.failures import Failure, Failures, stop_at_outage
from cdxmill.storage.location import Location, locate


def merge(asked: Merging, failures: Failures) -> ClusterSummary:
    """Make the cluster of all lines of `clusters`, which stay as they are. Equal lines are taken once.

    If all clusters have the same split points, so has the new one. `compact` then gives the bytes of `zipnum` with these split
    points on the same lines. Raises as `build_cluster`.
    """
    clusters = [ClusterFiles(locate(path)) for path in required_paths(asked.clusters)]
    place = local_directory(os.fspath(asked.output))
    if any(locate(place).is_same(cluster.directory) for cluster in clusters):
        raise UsageError(f"{place}: is one of the clusters that are merged; choose another directory")
    options = zipnum_options(asked)
    points = _common_points(clusters)
    if not (asked.shards or asked.splits) and points is not None:
        options = zipnum_options(asked, points=tuple(points))
    reported = len(failures.items)
    shards = [str(cluster.shard(name)) for cluster in clusters for name in _shards(cluster, failures)]
    if not shards:
        names = ", ".join(str(cluster.directory) for cluster in clusters)
        raise InputError(names, "no shards, so there is nothing to merge", "check it with cdxmill verify")
    found = [(cluster.directory, manifest_beside(cluster.directory)) for cluster in clusters]
    others = [OtherCluster(one, manifest) for one, manifest in found if manifest is not None]
    is_sound = len(failures.items) == reported and not read_excluded(locate(place))
    used = used_compressor(options.compressor)
    if is_sound and len(others) == len(found) and not why_not_copied(others, used, options.block_lines):
        options = replace(options, make=partial(make_merged, others), method="merge")
    archives = format_path_index(_archives(clusters))[0]
    beside = Beside([ARCHIVES], archives) if archives else Beside()
    return build_cluster(shards, place, options, failures, beside)


def _shards(cluster: ClusterFiles, failures: Failures) -> Sequence[str]:
    """The shards and overlays of a cluster. Faults of its index are reported."""

    def report(found: list[Failure]) -> None:
        stop_at_outage(found)
        for one in found:
            failures.report(one)

    claims = read_claims(cluster, report)
    overlays = claims.manifest.overlays if claims.manifest is not None else ()
    return [*claims.shards, *(one.name for one in overlays)]


def _common_points(clusters: Sequence[ClusterFiles]) -> list[bytes] | None:
    """The split points that all clusters have; None if they have others, or none."""
    found = [stored_splits(cluster.directory / SPLITS[0]) for cluster in clusters]
    return found[0] if all(points == found[0] for points in found) else None


def _archives(clusters: Sequence[ClusterFiles]) -> Iterator[tuple[str, str]]:
    """The names and places in the archives.tsv of all clusters."""
    for cluster in clusters:
        if has_archive_index(cluster.directory):
            path: Location = cluster.directory / ARCHIVES
            for name, places in parse_path_index(path.read_bytes()):
                yield from ((name, place) for place in places)
