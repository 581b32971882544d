"""publish: a cluster that a job or `zipnum` wrote -> a complete cluster in the folder from which it is served.

check all       cluster.json, the shards' sizes, the parts' lines and order
copy            missing or changed shards, then parts and split points
write           cluster.idx, cluster.summary, cluster.loc, archives.tsv, metadata.yaml, and last cluster.json
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster import remote_switch
from cdxmill.cluster.archive_index import published_index
from cdxmill.cluster.destination import Destination, Way, parts_and_shards
from cdxmill.cluster.find import COLLECTION_INDEXES, find_folder
from cdxmill.cluster.finished import COPIED
from cdxmill.cluster.output import empty, mend, put_in_place
from cdxmill.cluster.shards import Shard, check_parts, find_shards
from cdxmill.cluster.switch import mark
from cdxmill.cluster.write import (
    format_locations,
    unpublish,
    write_archive_index,
    write_index,
    write_locations,
)
from cdxmill.errors import InputError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import LOCATIONS, MANIFEST
from cdxmill.inputs.split_files import SPLITS
from cdxmill.messages import say
from cdxmill.running.counted_reads import counted
from cdxmill.running.lock import hold
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.storage.choose import (
    absolute,
    check_writable,
    exists,
    is_remote,
    join,
    local_path,
    open_ranges,
    pieces,
    read_bytes,
    remove,
    same_location,
    write_atomic,
)

METADATA = "metadata.yaml"


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """How a cluster is published."""

    location: str | None = None
    archives: str | None = None
    title: str | None = None
    index_only: bool = False
    unfinished: bool = False
    replace: bool = False
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


class _Places(NamedTuple):
    """What cluster.loc and archives.tsv say: the folder or URL of the shards, and the whole content; None: no such file."""

    shards: str
    archives: bytes | None


def publish(cluster: str, target: str, options: PublishOptions) -> PublishSummary:
    """Publish `cluster` in the folder `target`; each is a path or URL. If they are the same, only write the index.

    Raises UsageError if the cluster is unfinished and `options` do not allow that, or if the target has another cluster
    and `options` do not replace it; InputError if the cluster is corrupt. Nothing is written before these checks.
    """
    check_writable(cluster)
    check_writable(target)
    folder = find_folder(cluster)[0].path
    target = folder if same_location(cluster, target) else target
    shards = find_shards(folder, options.unfinished)
    blocks = check_parts(folder, shards)
    copied = _publish(folder, target, shards, options)
    _write_metadata(target, options.title)
    return PublishSummary(
        shards=len(shards), copied=copied, blocks=blocks, bytes=sum(shard.bytes for shard in shards)
    )


def _publish(folder: str, target: str, shards: Sequence[Shard], options: PublishOptions) -> int:
    """Write everything besides the title. Returns the number of shards copied."""
    shards_at = folder if options.index_only else target
    places = _Places(
        absolute(options.location or shards_at), published_index(folder, target, options.archives, say)
    )
    is_same = same_location(folder, target)
    place = None if is_remote(target) else Path(local_path(target)).resolve()
    if place is not None:
        mend(place, say)
    elif not is_same:
        remote_switch.repair(target)
    way = (
        Way.THERE if is_same else Destination(target).way(folder, shards, options.index_only, options.replace)
    )
    with ExitStack() as locks:
        if place is not None:
            locks.enter_context(hold(place))
            if not is_same:  # again: from now on nobody else writes
                way = _way(folder, target, shards, options)
        if is_same:
            write_index(target, _parts(folder, shards))
        if is_same or way is Way.NOTHING:
            _update_places(target, shards, places)
            return 0
        if way is Way.THERE:
            return _copy_all(folder, target, shards, places, options)
        if place is None:
            return _copy_beside_remote(folder, target, shards, places, options)
        new = mark(place)
        locks.enter_context(hold(new))
        copied = _copy_beside(folder, place, new, shards, places, options)
        put_in_place(place, say)
        return copied


def _way(folder: str, target: str, shards: Sequence[Shard], options: PublishOptions) -> Way:
    return Destination(target).way(folder, shards, options.index_only, options.replace)


def _update_places(target: str, shards: Sequence[Shard], places: _Places) -> None:
    """Write cluster.loc and archives.tsv, unless they have this content already."""
    names, path = [shard.name for shard in shards], join(target, LOCATIONS)
    if not exists(path) or read_bytes(path) != format_locations(names, places.shards):
        write_locations(target, names, places.shards)
    path = join(target, ARCHIVES)
    if places.archives is not None and not (exists(path) and read_bytes(path) == places.archives):
        write_archive_index(target, places.archives)


def _copy_beside(
    cluster: str, old: Path, new: Path, shards: Sequence[Shard], places: _Places, options: PublishOptions
) -> int:
    """Copy the cluster to the folder `new`. Shards that `old` has already get a second name."""
    there = Destination(str(new))
    if MANIFEST in there.found or there.surplus(shards):
        empty(new)
    present = there.present(shards)
    for name, digest in Destination(str(old)).present(shards).items():
        if name not in present and not options.index_only:
            with suppress(OSError):  # a file system without hard links
                os.link(old / name, new / name)
                present[name] = digest
    _note(str(new), present)
    return _copy_all(cluster, str(new), shards, places, options)


def _copy_beside_remote(
    cluster: str, target: str, shards: Sequence[Shard], places: _Places, options: PublishOptions
) -> int:
    """Copy what the cluster at the URL `target` does not have yet, and then switch."""
    new = remote_switch.new_place(target)
    there = Destination(new)
    is_other = COPIED not in there.found or there.surplus(shards)  # of another run, or of Spark
    if there.found and (MANIFEST in there.found or is_other):
        remote_switch.clear(new)
    kept = Destination(target).present(shards)
    copied = _copy_all(cluster, new, shards, places, options, kept)
    remote_switch.switch(target, kept)
    return copied


def _copy_all(
    cluster: str,
    target: str,
    shards: Sequence[Shard],
    places: _Places,
    options: PublishOptions,
    kept: Collection[str] = (),
) -> int:
    """Copy shards, parts and split points, and write the index. Returns the number of shards copied.

    The shards `kept` are not copied.
    """
    there = Destination(target)
    present, surplus = there.present(shards), there.surplus(shards, options.index_only)
    listed = {**dict.fromkeys(surplus, ""), **present}
    _note(target, listed)
    unpublish(target)
    missing = () if options.index_only else [shard for shard in shards if shard.name not in (*present, *kept)]
    copies = [_Copy(shard, join(cluster, shard.name), join(target, shard.name)) for shard in missing]
    total = sum(shard.bytes for shard in missing)
    with Progress("copying shards", len(copies), total, options.quiet) as progress:
        for index, digest in run_tasks(_copy, copies, options.processes, progress.tick):
            listed[copies[index].shard.name] = digest
            _note(target, listed)
            progress.advance()
    for name in parts_and_shards(surplus):
        remove(join(target, name))
    write_index(target, _copied_parts(cluster, target, shards))
    for name in SPLITS:
        if exists(join(cluster, name)):
            _copy_small(join(cluster, name), join(target, name))
    write_locations(target, [shard.name for shard in shards], places.shards)
    if places.archives is not None:
        write_archive_index(target, places.archives)
    _finish(cluster, target)
    return len(copies)


def _note(target: str, present: dict[str, str]) -> None:
    with write_atomic(join(target, COPIED)) as file:
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
    """Copy the manifest. Without one the list of copied shards stays: it says that the target is of this cluster."""
    if exists(join(cluster, MANIFEST)):
        _copy_small(join(cluster, MANIFEST), join(target, MANIFEST))
        remove(join(target, COPIED))
