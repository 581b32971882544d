"""publish: a cluster that a job or `zipnum` left -> a cluster that stands where readers look for it.

check all       cluster.json, the shards' sizes, the parts' lines and order
copy            shards that do not stand there yet, then parts and split points
write           cluster.idx, cluster.summary, cluster.loc, metadata.yaml, and last cluster.json
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from cdxmill.cluster.shards import Shard, check_parts, find_shards, listed_shards
from cdxmill.cluster.write import remove_others, unpublish, write_index, write_locations
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.zipnum_index import MANIFEST
from cdxmill.inputs.split_files import SPLITS
from cdxmill.running.counted_reads import counted
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.storage.choose import (
    absolute,
    check_writable,
    exists,
    join,
    list_folder,
    open_ranges,
    pieces,
    read_bytes,
    remove,
    same_location,
    write_atomic,
)

METADATA = "metadata.yaml"
_INDEXES = "indexes"
"""The folder of the index in a collection, as pywb and Common Crawl lay it out."""
_COPIED = ".published.json"
"""What stands at the destination while it is no finished cluster: shard, SHA-256."""


@dataclass(frozen=True)
class PublishOptions:
    """How a cluster is published."""

    location: str | None = None
    title: str | None = None
    index_only: bool = False
    unfinished: bool = False
    processes: int = 1
    quiet: bool = False


class PublishSummary(NamedTuple):
    """What was published; `bytes` are those of all shards."""

    shards: int
    copied: int
    blocks: int
    bytes: int


class _Copy(NamedTuple):
    shard: Shard
    source: str
    target: str


def publish(cluster: str, target: str, options: PublishOptions) -> PublishSummary:
    """Publish `cluster` in the folder `target`, both a path or URL; where they are one, only the index is written.

    Raises UsageError where it is unfinished and that was not asked for, InputError where it is
    damaged: both before anything is written.
    """
    check_writable(cluster)
    check_writable(target)
    shards = find_shards(cluster, options.unfinished)
    blocks = check_parts(cluster, shards)
    if same_location(cluster, target):
        copied = 0
        write_index(target, _parts(cluster, shards))
    else:
        copied = _copy_all(cluster, target, shards, options)
    shards_at = cluster if options.index_only else target
    write_locations(target, [shard.name for shard in shards], options.location or shards_at)
    _write_metadata(target, options.title)
    if not same_location(cluster, target):
        _finish(cluster, target)
    return PublishSummary(len(shards), copied, blocks, sum(shard.bytes for shard in shards))


def _copy_all(cluster: str, target: str, shards: Sequence[Shard], options: PublishOptions) -> int:
    """Everything but what tells where the shards are, and the manifest; the number of shards copied."""
    standing = _standing(target, shards)
    if options.index_only:
        _refuse_other_shards(target, shards, standing)
    _note(target, standing)
    unpublish(target)
    missing = () if options.index_only else [shard for shard in shards if shard.name not in standing]
    copies = [_Copy(shard, join(cluster, shard.name), join(target, shard.name)) for shard in missing]
    total = sum(shard.bytes for shard in missing)
    with Progress("copying shards", len(copies), total, options.quiet) as progress:
        for index, digest in run_tasks(_copy, copies, options.processes, progress.tick):
            standing[copies[index].shard.name] = digest
            _note(target, standing)
            progress.advance()
    remove_others(target, len(shards))
    write_index(target, _copied_parts(cluster, target, shards))
    for name in SPLITS:
        if exists(join(cluster, name)):
            _copy_small(join(cluster, name), join(target, name))
    return len(copies)


def _standing(target: str, shards: Sequence[Shard]) -> dict[str, str]:
    """The shards that stand at the target, by name with their SHA-256: of this size, and known to be the same."""
    found = list_folder(target)
    known = _known(target, found)
    return {
        shard.name: shard.sha256
        for shard in shards
        if shard.sha256 and known.get(shard.name) == shard.sha256
        if shard.name in found and found[shard.name].size == shard.bytes
    }


def _known(target: str, found: Container[str]) -> dict[str, str]:
    """What an earlier run, finished or not, has put at the target: shard, SHA-256."""
    with suppress(InputError, ValueError):
        if MANIFEST in found:
            return {shard.name: shard.sha256 for shard in listed_shards(target)}
        if _COPIED in found:
            return dict(json.loads(read_bytes(join(target, _COPIED))))
    return {}


def _refuse_other_shards(target: str, shards: Sequence[Shard], standing: dict[str, str]) -> None:
    """Readers look for shards beside the index first."""
    found = list_folder(target)
    if any(shard.name in found and shard.name not in standing for shard in shards):
        raise UsageError(
            f"{target}: holds other shards, which readers would take; leave out --index-only, or name another folder"
        )


def _note(target: str, standing: dict[str, str]) -> None:
    with write_atomic(join(target, _COPIED)) as file:
        file.write(json.dumps(standing).encode())


def _copy(task: _Copy) -> str:
    """Copy a shard; its SHA-256. Raises InputError where it is not the one of the manifest."""
    digest = hashlib.sha256()
    size = 0
    with write_atomic(task.target) as file, open_ranges(task.source) as read_at:
        for piece in pieces(counted(read_at)):
            digest.update(piece)
            file.write(piece)
            size += len(piece)
        found = digest.hexdigest()
        if size != task.shard.bytes or task.shard.sha256 not in ("", found):
            raise InputError(task.source, f"its content is not that of {MANIFEST}", "build the cluster again")
    return found


def _copy_small(source: str, target: str) -> bytes:
    data = read_bytes(source)
    with write_atomic(target) as file:
        file.write(data)
    return data


def _parts(cluster: str, shards: Sequence[Shard]) -> Iterator[bytes]:
    return (read_bytes(join(cluster, shard.part)) for shard in shards)


def _copied_parts(cluster: str, target: str, shards: Sequence[Shard]) -> Iterator[bytes]:
    return (_copy_small(join(cluster, shard.part), join(target, shard.part)) for shard in shards)


def _write_metadata(target: str, title: str | None) -> None:
    """The collection's title, as pywb shows it. One that stands is kept where no other is given."""
    folder, name = posixpath.split(absolute(target))
    collection = folder if name == _INDEXES else absolute(target)
    metadata = join(collection, METADATA)
    if title is None and exists(metadata):
        return
    title = posixpath.basename(collection) if title is None else title
    with write_atomic(metadata) as file:
        text = json.dumps(title, ensure_ascii=False)  # a string of JSON is one of YAML
        file.write(f"title: {text}\n".encode("utf-8", "surrogateescape"))


def _finish(cluster: str, target: str) -> None:
    """The manifest, where there is one, last; from now on the target is a finished cluster."""
    if exists(join(cluster, MANIFEST)):
        _copy_small(join(cluster, MANIFEST), join(target, MANIFEST))
    remove(join(target, _COPIED))
