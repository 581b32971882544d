"""publish: a cluster that a job or `zipnum` wrote -> a complete cluster in the folder from which it is served.

check all       cluster.json, the shards' sizes, the parts' lines and order
copy            missing or changed shards, then parts and split points
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

from cdxmill.cluster.find import COLLECTION_INDEXES, find_folder
from cdxmill.cluster.manifest import read_manifest
from cdxmill.cluster.shards import Shard, check_parts, find_shards
from cdxmill.cluster.write import remove_others, unpublish, write_index, write_locations
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.zipnum_index import MANIFEST
from cdxmill.inputs.split_files import SPLITS
from cdxmill.running.counted_reads import counted
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
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
_COPIED = ".published.json"
"""The shards copied so far, with their SHA-256. It exists while the destination is not a finished cluster."""


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """How a cluster is published."""

    location: str | None = None
    title: str | None = None
    index_only: bool = False
    unfinished: bool = False
    processes: int = 1
    quiet: bool = False


class PublishSummary(NamedTuple):
    """What was published. `bytes` is the size of all shards."""

    shards: int
    copied: int
    blocks: int
    bytes: int

    def __str__(self) -> str:
        """Return one line."""
        size = f"{human_bytes(self.bytes)}, {count(self.blocks, 'block')}"
        return f"{count(self.shards, 'shard')} ({size}), {self.copied} copied"


class _Copy(NamedTuple):
    shard: Shard
    source: str
    target: str


def publish(cluster: str, target: str, options: PublishOptions) -> PublishSummary:
    """Publish `cluster` in the folder `target`; each is a path or URL. If they are the same, only write the index.

    Raises UsageError if the cluster is unfinished and `options` do not allow that, InputError if it is corrupt.
    Nothing is written before these checks.
    """
    check_writable(cluster)
    check_writable(target)
    folder = find_folder(cluster)[0].path
    target = folder if same_location(cluster, target) else target
    shards = find_shards(folder, options.unfinished)
    blocks = check_parts(folder, shards)
    if same_location(folder, target):
        copied = 0
        write_index(target, _parts(folder, shards))
    else:
        copied = _copy_all(folder, target, shards, options)
    shards_at = folder if options.index_only else target
    write_locations(target, [shard.name for shard in shards], options.location or shards_at)
    _write_metadata(target, options.title)
    if not same_location(folder, target):
        _finish(folder, target)
    return PublishSummary(
        shards=len(shards), copied=copied, blocks=blocks, bytes=sum(shard.bytes for shard in shards)
    )


def _copy_all(cluster: str, target: str, shards: Sequence[Shard], options: PublishOptions) -> int:
    """Copy shards, parts and split points, and write the index. Returns the number of shards copied."""
    present = _already_copied(target, shards)
    if options.index_only:
        _refuse_other_shards(target, shards, present)
    _note(target, present)
    unpublish(target)
    missing = () if options.index_only else [shard for shard in shards if shard.name not in present]
    copies = [_Copy(shard, join(cluster, shard.name), join(target, shard.name)) for shard in missing]
    total = sum(shard.bytes for shard in missing)
    with Progress("copying shards", len(copies), total, options.quiet) as progress:
        for index, digest in run_tasks(_copy, copies, options.processes, progress.tick):
            present[copies[index].shard.name] = digest
            _note(target, present)
            progress.advance()
    remove_others(target, len(shards))
    write_index(target, _copied_parts(cluster, target, shards))
    for name in SPLITS:
        if exists(join(cluster, name)):
            _copy_small(join(cluster, name), join(target, name))
    return len(copies)


def _already_copied(target: str, shards: Sequence[Shard]) -> dict[str, str]:
    """The shards at the target that have the right size and are known to be the same: name, SHA-256."""
    found = list_folder(target)
    known = _known(target, found)
    return {
        shard.name: shard.sha256
        for shard in shards
        if shard.sha256 and known.get(shard.name) == shard.sha256
        if shard.name in found and found[shard.name].size == shard.bytes
    }


def _known(target: str, found: Container[str]) -> dict[str, str]:
    """The shards that an earlier run, finished or not, copied to the target: name, SHA-256."""
    with suppress(InputError, ValueError):
        if MANIFEST in found:
            return {shard.name: shard.sha256 for shard in read_manifest(join(target, MANIFEST)).shards}
        if _COPIED in found:
            return dict(json.loads(read_bytes(join(target, _COPIED))))
    return {}


def _refuse_other_shards(target: str, shards: Sequence[Shard], present: dict[str, str]) -> None:
    """Raise UsageError if the target has other shards. Readers use shards beside the index first."""
    found = list_folder(target)
    if any(shard.name in found and shard.name not in present for shard in shards):
        raise UsageError(
            f"{target}: contains shards of another cluster, and readers would use them; omit --index-only, or choose another directory"
        )


def _note(target: str, present: dict[str, str]) -> None:
    with write_atomic(join(target, _COPIED)) as file:
        file.write(json.dumps(present).encode())


def _copy(task: _Copy) -> str:
    """Copy a shard and return its SHA-256. Raises InputError if it is not the shard of the manifest."""
    digest = hashlib.sha256()
    size = 0
    with write_atomic(task.target) as file, open_ranges(task.source) as read_at:
        for piece in pieces(counted(read_at)):
            digest.update(piece)
            file.write(piece)
            size += len(piece)
        found = digest.hexdigest()
        if size != task.shard.bytes or task.shard.sha256 not in ("", found):
            raise InputError(task.source, f"its contents do not match {MANIFEST}", "build the cluster again")
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
    """Write the collection's title, which pywb shows. Without a new title an existing one is kept."""
    folder, name = posixpath.split(absolute(target))
    collection = folder if name == COLLECTION_INDEXES else absolute(target)
    metadata = join(collection, METADATA)
    if title is None and exists(metadata):
        return
    title = posixpath.basename(collection) if title is None else title
    with write_atomic(metadata) as file:
        text = json.dumps(title, ensure_ascii=False)  # a string of JSON is one of YAML
        file.write(f"title: {text}\n".encode("utf-8", "surrogateescape"))


def _finish(cluster: str, target: str) -> None:
    """Copy the manifest, if there is one. From now on the target is a finished cluster."""
    if exists(join(cluster, MANIFEST)):
        _copy_small(join(cluster, MANIFEST), join(target, MANIFEST))
    remove(join(target, _COPIED))
