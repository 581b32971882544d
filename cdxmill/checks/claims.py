"""What the files of a cluster say about its shards: cluster.json, the index, and cluster.loc."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import NamedTuple

from cdxmill.checks.shards import ShardFiles
from cdxmill.cluster.files import ClusterFiles, in_order
from cdxmill.cluster.manifest import read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.clusters.manifest import Manifest
from cdxmill.formats.clusters.zipnum_index import INDEX, MANIFEST, part_of
from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_index import IndexReport, ShardLines, scan_index
from cdxmill.storage.location import locate, pieces


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
    report(_foreign_files(files, index, shards))
    return Claims(manifest, index, shards)


def _manifest(files: ClusterFiles) -> tuple[Manifest | None, list[Failure]]:
    if not files.has(MANIFEST):
        return None, []
    try:
        return read_manifest(files.path(MANIFEST)), []
    except InputError as error:
        return None, [Failure(error.path, None, error.reason, error.hint)]


def _index(files: ClusterFiles) -> IndexReport:
    if files.index is None:
        return IndexReport({}, False, [])
    with locate(files.path(files.index)).open_ranges() as read_at:
        return scan_index(pieces(read_at))


def _shards_without_manifest(files: ClusterFiles, index: IndexReport) -> list[str]:
    located = [row.shard for row in files.locations.rows]
    others = {*files.shards, *located} - index.shards.keys() - _files_of_index(files, index)
    return in_order({*index.shards, *others}) if others else list(index.shards)


def _foreign_files(files: ClusterFiles, index: IndexReport, shards: list[str]) -> list[Failure]:
    known = {*shards, *map(part_of, shards), *_files_of_index(files, index)}
    return [
        Failure(files.path(name), None, "does not belong to this cluster: its index has no lines for it")
        for name in (*files.shards, *files.parts)
        if name not in known
    ]


def _files_of_index(files: ClusterFiles, index: IndexReport) -> set[str]:
    """File names of the shards in the index, which may omit their endings."""
    return {posixpath.basename(files.shard_path(name)) for name in index.shards}


def shard_tasks(files: ClusterFiles, claims: Claims) -> list[ShardFiles]:
    """One task per shard: what is known about it."""
    return [_task(files, claims, name) for name in claims.shards]


def _task(files: ClusterFiles, claims: Claims, name: str) -> ShardFiles:
    manifest, index, part = claims.manifest, claims.index_report, part_of(name)
    has_parts = manifest is not None or files.parts or files.has(part)
    return ShardFiles(
        name,
        files.shard_path(name),
        files.path(part) if has_parts else None,
        files.path(files.index) if files.index is not None else None,
        index.shards.get(name, ShardLines(0, 0, 0)),
        index.numbered or manifest is not None,
        manifest.numlines if manifest is not None else None,
        manifest is not None,
    )
