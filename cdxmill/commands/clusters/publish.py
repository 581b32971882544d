"""publish: a cluster that a job or `zipnum` wrote -> a complete cluster in the directory from which it is served.

check all       cluster.json, the shards' sizes, the parts' lines and order
copy            missing or changed shards, then parts and split points
write           cluster.idx, cluster.summary, cluster.loc, archives.tsv, metadata.yaml, and last cluster.json
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from cdxmill.cluster.archive_index import published_index
from cdxmill.cluster.find import COLLECTION_INDEXES, find_directory, is_switched
from cdxmill.cluster.output import check_settled, hold_new, mend, place_of, put_in_place
from cdxmill.cluster.split_files import SPLITS
from cdxmill.cluster.switch import discard, new_place
from cdxmill.cluster.write import (
    COPIED,
    format_locations,
    unpublish,
    write_archive_index,
    write_index,
    write_locations,
)
from cdxmill.commands.clusters.publish_checks import PublishTarget, Shard, Way, check_parts, find_shards
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum import ARCHIVES, LOCATIONS, MANIFEST, files_of_shard
from cdxmill.messages import count, human_bytes, say
from cdxmill.options.clusters import Publishing
from cdxmill.running.lock import check_held, hold
from cdxmill.running.processes import counted, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.storage.location import Location, locate, pieces

METADATA = "metadata.yaml"


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


class _ClusterCopy(NamedTuple):
    shard: Shard
    source: Location
    target: Location


class _Places(NamedTuple):
    """The contents of cluster.loc and archives.tsv. `shards` is a directory or URL. `archives` is None without such a file."""

    shards: Location
    archives: bytes | None


def publish(asked: Publishing) -> PublishSummary:
    """Publish a cluster in a directory; each is a path or URL. If they are the same, only write the index.

    Raises UsageError if the cluster is unfinished and `asked` does not allow that, or if the target has another cluster
    that may not be replaced; InputError if the cluster is corrupt. Nothing is written before these checks.
    """
    cluster, target = locate(os.fspath(asked.cluster)), locate(os.fspath(asked.destination))
    cluster.check_writable()
    target.check_writable()
    mend(place_of(target), say)
    directory = find_directory(cluster)[0].place
    target = directory if cluster.is_same(target) else target
    shards = find_shards(directory, asked.unfinished and not is_switched(directory))
    blocks = check_parts(directory, shards)
    copied = _publish(directory, target, shards, asked)
    _write_metadata(target, asked.title)
    return PublishSummary(
        shards=len(shards), copied=copied, blocks=blocks, bytes=sum(shard.bytes for shard in shards)
    )


def _publish(directory: Location, target: Location, shards: Sequence[Shard], options: Publishing) -> int:
    """Write everything besides the title. Returns the number of shards copied."""
    shards_at = directory if options.index_only else target
    places = _Places(
        locate(options.location or shards_at),
        published_index(directory, target, options.archives, say),
    )
    place, is_same = place_of(target), directory.is_same(target)
    if not is_same:
        _way(directory, target, shards, options)
    with ExitStack() as locks:
        locks.enter_context(hold(place))
        check_settled(place)
        if is_same:
            write_index(target, _parts(directory, shards))
        way = (
            Way.NOTHING if is_same else _way(directory, target, shards, options)
        )  # again: nobody else writes
        if way is Way.NOTHING:
            _update_places(target, shards, places)
            return 0
        if way is Way.THERE:
            return _copy_all(directory, target, shards, places, options)
        locks.enter_context(hold_new(place, say))
        return _copy_and_switch(directory, place, shards, places, options)


def _way(directory: Location, target: Location, shards: Sequence[Shard], options: Publishing) -> Way:
    return PublishTarget(target).way(directory, shards, options.index_only, options.replace)


def _update_places(target: Location, shards: Sequence[Shard], places: _Places) -> None:
    """Write cluster.loc and archives.tsv, unless they have this content already."""
    names, path = [shard.name for shard in shards], target / LOCATIONS
    if not path.exists() or path.read_bytes() != format_locations(names, places.shards):
        write_locations(target, names, places.shards)
    path = target / ARCHIVES
    if places.archives is not None and not (path.exists() and path.read_bytes() == places.archives):
        write_archive_index(target, places.archives)


def _copy_and_switch(
    cluster: Location, place: Location, shards: Sequence[Shard], places: _Places, options: Publishing
) -> int:
    """Copy the cluster beside the one in `place`, and switch. Shards that this one has already are not copied again."""
    new = new_place(place)
    there = PublishTarget(new)
    if MANIFEST in there.found or COPIED not in there.found or there.surplus(shards):  # of another run
        discard(place)
        there = PublishTarget(new)
    same = {} if options.index_only else PublishTarget(place).present(shards)
    kept = () if place.properties.has_directories else tuple(same)
    present = there.present(shards)
    _note(new, present)  # before other files get the names of shards that are noted
    for name in same.keys() - present.keys() - set(kept):
        if _link(place, new, name):
            present[name] = same[name]
    _note(new, present)
    copied = _copy_all(cluster, new, shards, places, options, kept)
    put_in_place(place, say, kept)
    return copied


def _link(old: Location, new: Location, name: str) -> bool:
    """Give a shard of the old cluster a second name in the new one, if the storage can."""
    with suppress(OSError):  # a file system without hard links
        if not old.is_remote:
            (new / name).remove()
            os.link((old / name).local, (new / name).local)
            return True
    return False


def _copy_all(
    cluster: Location,
    target: Location,
    shards: Sequence[Shard],
    places: _Places,
    options: Publishing,
    kept: Collection[str] = (),
) -> int:
    """Copy shards, parts and split points, and write the index. Returns the number of shards copied.

    The shards `kept` are not copied. A target that is finished is this cluster without some shards: it stays until they are there.
    """
    there = PublishTarget(target)
    present, surplus = there.present(shards), there.surplus(shards, options.index_only)
    listed = {**dict.fromkeys(surplus, ""), **present}
    is_finished = MANIFEST in there.found
    if not is_finished:
        _unpublish(target, listed)
    missing = () if options.index_only else [shard for shard in shards if shard.name not in (*present, *kept)]
    copies = [_ClusterCopy(shard, cluster / shard.name, target / shard.name) for shard in missing]
    total = sum(shard.bytes for shard in missing)
    with Progress("copying shards", len(copies), total, options.quiet) as progress:
        for index, digest in run_tasks(_copy, copies, options.processes, progress.tick):
            listed[copies[index].shard.name] = digest
            if not is_finished:
                _note(target, listed)
            progress.advance()
    if is_finished:
        _unpublish(target, listed)
    for name in (one for shard in surplus for one in files_of_shard(shard)):
        (target / name).remove()
    write_index(target, _copied_parts(cluster, target, shards))
    _copy_overlay_files(cluster, target, shards)
    for name in SPLITS:
        if (cluster / name).exists():
            _copy_small(cluster / name, target / name)
    write_locations(target, [shard.name for shard in shards], places.shards)
    if places.archives is not None:
        write_archive_index(target, places.archives)
    _finish(cluster, target)
    return len(copies)


def _unpublish(target: Location, present: dict[str, str]) -> None:
    _note(target, present)
    unpublish(target)


def _note(target: Location, present: dict[str, str]) -> None:
    with (target / COPIED).write_atomic() as file:
        file.write(json.dumps(present).encode())


def _copy(task: _ClusterCopy) -> str:
    """Copy a shard and return its SHA-256. Raises InputError if it is not the shard of the manifest."""
    digest = hashlib.sha256()
    size = 0
    with task.target.write_atomic() as file, task.source.open_ranges() as read_at:
        for piece in pieces(counted(read_at)):
            digest.update(piece)
            file.write(piece)
            size += len(piece)
        found = digest.hexdigest()
        if size != task.shard.bytes or task.shard.sha256 not in ("", found):
            raise InputError(
                str(task.source), f"its contents do not match {MANIFEST}", "build the cluster again"
            )
    return found


def _copy_small(source: Location, target: Location) -> bytes:
    data = source.read_bytes()
    with target.write_atomic() as file:
        file.write(data)
    return data


def _parts(cluster: Location, shards: Sequence[Shard]) -> Iterator[bytes]:
    return ((cluster / shard.part).read_bytes() for shard in shards if not shard.is_overlay)


def _copied_parts(cluster: Location, target: Location, shards: Sequence[Shard]) -> Iterator[bytes]:
    return (
        _copy_small(cluster / shard.part, target / shard.part) for shard in shards if not shard.is_overlay
    )


def _copy_overlay_files(cluster: Location, target: Location, shards: Sequence[Shard]) -> None:
    """Copy the parts and key filters of overlays."""
    for shard in shards:
        for name in files_of_shard(shard.name)[1:] if shard.is_overlay else ():
            _copy_small(cluster / name, target / name)


def _write_metadata(target: Location, title: str | None) -> None:
    """Write the collection's title, which pywb shows. Without a new title an existing one is kept."""
    collection = locate(target.absolute())
    if collection.name == COLLECTION_INDEXES:
        collection = collection.parent
    metadata = collection / METADATA
    if title is None and metadata.exists():
        return
    title = collection.name if title is None else title
    with metadata.write_named() as file:
        text = json.dumps(title, ensure_ascii=False)  # a string of JSON is one of YAML
        file.write(f"title: {text}\n".encode("utf-8", "surrogateescape"))


def _finish(cluster: Location, target: Location) -> None:
    """Copy the manifest. Without one the list of copied shards stays: it says that the target is of this cluster."""
    if (cluster / MANIFEST).exists():
        check_held()
        _copy_small(cluster / MANIFEST, target / MANIFEST)
        (target / COPIED).remove()
