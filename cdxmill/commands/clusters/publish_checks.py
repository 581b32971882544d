"""What `publish` checks before it writes: the shards of the cluster, and what its target has. That stays without --replace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from cdxmill.cluster.find import INDEXES, no_directory
from cdxmill.cluster.manifest_file import manifest_beside
from cdxmill.cluster.output import REPLACE, check_replaceable, place_of
from cdxmill.cluster.split_files import SPLITS
from cdxmill.cluster.write import COPIED, NUMBERED, fault_of, fault_of_splits, read_manifest
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.manifest import Manifest
from cdxmill.formats.clusters.zipnum import (
    ARCHIVES,
    LOCATIONS,
    MANIFEST,
    OVERLAY,
    SHARD,
    BlockRef,
    files_of_shard,
    parse_index_line,
    part_name,
    part_of,
    shard_name,
)
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location
from cdxmill.storage.reading import bytes_if_any

_AGAIN = "build the cluster again"


class Shard(NamedTuple):
    """A shard: file name, name of its part, size in bytes. Without a manifest `sha256` is "" and `blocks` None."""

    name: str
    part: str
    bytes: int
    sha256: str
    blocks: int | None

    @property
    def is_overlay(self) -> bool:
        """Whether it is an overlay, whose part is an index of its own."""
        return OVERLAY.fullmatch(self.name) is not None


def find_shards(cluster: Location, unfinished: bool) -> list[Shard]:
    """The shards and overlays in the manifest of a cluster, in order. Without one, all shards found if it may be `unfinished`.

    Raises UsageError without a manifest, InputError if files are missing or have another size than in the
    manifest.
    """
    found = cluster.entries()
    if MANIFEST in found:
        manifest = read_manifest(cluster / MANIFEST)
        shards = _listed(manifest)
        fault = fault_of_splits(cluster, manifest) if not found.keys().isdisjoint(SPLITS) else None
        if fault is not None:
            raise InputError(str(cluster), fault, _AGAIN)
    elif unfinished:
        shards = _found_shards(found)
    else:
        unfinished_one = f"{cluster}: not a finished cluster (no {MANIFEST}); finish it, or use --unfinished"
        raise no_directory(cluster) or UsageError(unfinished_one)
    if not shards:
        raise UsageError(f"{cluster}: not a ZipNum cluster (no {shard_name(0)})")
    for shard in shards:
        for name in (*files_of_shard(shard.name), shard.part):
            if name not in found:
                raise InputError(str(cluster), f"{name} is missing", _AGAIN)
        if found[shard.name].size != shard.bytes:
            sizes = f"{found[shard.name].size} bytes, but {MANIFEST} has {shard.bytes}"
            raise InputError(str(cluster), f"{shard.name} has {sizes}", _AGAIN)
    return shards


def _listed(manifest: Manifest) -> list[Shard]:
    """The shards and overlays of a manifest, in order."""
    return [
        Shard(shard.name, part_of(shard.name), shard.bytes, shard.sha256, shard.blocks)
        for shard in manifest.files
    ]


def _found_shards(found: Mapping[str, Entry]) -> list[Shard]:
    """All shards from 0 to the last one found. A missing one between them is included, so that it is reported."""
    numbers = [int(match[1]) for match in map(SHARD.fullmatch, found) if match is not None]
    names = ((shard_name(number), part_name(number)) for number in range(max(numbers, default=-1) + 1))
    return [Shard(name, part, found[name].size if name in found else 0, "", None) for name, part in names]


def check_parts(cluster: Location, shards: Sequence[Shard]) -> int:
    """The number of blocks of all shards.

    Raises InputError if the blocks of a part do not fill its shard without gaps, or if the keys of all parts are
    not in order.
    """
    last, blocks = b"", 0
    for shard in shards:
        part = cluster / shard.part
        lines = part.read_bytes().split(b"\n")
        reason = None if not lines.pop() else "the last line is truncated"
        end = 0
        last = b"" if shard.is_overlay else last
        for number, line in enumerate(lines, 1):
            try:
                block = parse_index_line(line)
            except ValueError as error:
                raise InputError(str(part), f"line {number}: {error}", _AGAIN) from None
            if line.count(b"\t") != 3:
                reason = reason or f"line {number}: expected 4 columns"
            reason = reason or _wrong(block, shard, end, last, number)
            last, end = block.key, block.offset + block.length
        if lines and end != shard.bytes:
            reason = reason or f"its blocks have {end} bytes, but {shard.name} has {shard.bytes}"
        if shard.blocks is not None and len(lines) != shard.blocks:
            reason = reason or f"it has {len(lines)} lines, but {MANIFEST} has {shard.blocks} blocks"
        if reason is not None:
            raise InputError(str(part), reason, _AGAIN)
        blocks += len(lines)
    return blocks


def _wrong(block: BlockRef, shard: Shard, end: int, last: bytes, number: int) -> str | None:
    if block.key < last:
        return f"line {number}: out of order"
    if block.shard != shard.name.encode():
        return f"line {number}: not a block of {shard.name}"
    if block.offset != end:
        return f"line {number}: the block does not start where the previous one ends"
    return None


class Way(Enum):
    """What is to be done: nothing, write there, or write beside it and switch."""

    NOTHING = "nothing"
    THERE = "there"
    BESIDE = "beside"


class PublishTarget:
    """What the target has: `known` are the shards that earlier runs copied, finished or not, with their SHA-256.

    Raises UsageError if the list of an unfinished run is somebody else's file.
    """

    def __init__(self, target: Location) -> None:
        self.target = target
        self.found = target.entries()
        self.known = _known(target, self.found)

    def present(self, shards: Sequence[Shard]) -> dict[str, str]:
        """The shards there that have the right size and are known to be the same: name, SHA-256."""
        return {
            shard.name: shard.sha256
            for shard in shards
            if shard.sha256 and self.known.get(shard.name) == shard.sha256
            if self._has(shard.name, shard.bytes)
        }

    def surplus(self, shards: Sequence[Shard], index_only: bool = False) -> list[str]:
        """The shards of an earlier, larger cluster. For an index only, all others: readers use shards beside it first."""
        kept = self.present(shards) if index_only else {shard.name for shard in shards}
        return sorted(self.known.keys() - kept)

    def way(self, source: Location, shards: Sequence[Shard], index_only: bool, replace: bool) -> Way:
        """How the cluster `source` gets there. Raises UsageError if it may not."""
        if index_only and not replace and (others := self.found.keys() & self.surplus(shards, True)):
            raise UsageError(
                f"{self.target}: has {min(others)} of another cluster, and readers would use it; omit --index-only, use"
                " --replace, or choose another directory"
            )
        if MANIFEST in self.found:
            return self._way_to_finished(source, index_only, replace)
        if COPIED in self.found:
            other = next(iter(self._unlike(shards)), None)
            if other is not None and not replace:
                raise UsageError(
                    f"{self.target}: has {other} of another cluster; use --replace, or choose another directory"
                )
            return Way.THERE
        written = (*INDEXES, LOCATIONS, ARCHIVES)
        foreign = [name for name in self.found if NUMBERED.fullmatch(name) or name in written]
        foreign += [name for name in SPLITS if name in self.found and not self._is_copy(source, name)]
        if foreign:
            raise _foreign(self.target, min(foreign))
        return Way.THERE

    def _way_to_finished(self, source: Location, index_only: bool, replace: bool) -> Way:
        if self._manifest_of(source) == (self.target / MANIFEST).read_bytes():
            return Way.NOTHING if fault_of(self.target, index_only) is None else Way.THERE
        if not replace:
            raise UsageError(f"{self.target}: already has another cluster; {REPLACE}")
        check_replaceable(place_of(self.target))
        return Way.BESIDE

    def _manifest_of(self, source: Location) -> bytes | None:
        return (source / MANIFEST).read_bytes() if MANIFEST in source.entries() else None

    def _is_copy(self, source: Location, name: str) -> bool:
        """Whether a file is that of the source, or would not be written."""
        path = source / name
        return not path.exists() or path.read_bytes() == (self.target / name).read_bytes()

    def _unlike(self, shards: Sequence[Shard]) -> list[str]:
        """Shards that were copied, and are not shards of this cluster."""
        wanted = {shard.name: shard for shard in shards}
        return [
            name
            for name, digest in sorted(self.known.items())
            if digest and not (name in wanted and wanted[name].sha256 in ("", digest))
        ]

    def _has(self, name: str, size: int) -> bool:
        return name in self.found and self.found[name].size == size


def _known(target: Location, found: Mapping[str, Entry]) -> dict[str, str]:
    """The SHA-256 of the shards that are there already. Raises OutageError, UsageError."""
    if MANIFEST in found:
        manifest = manifest_beside(target)
        return {} if manifest is None else {shard.name: shard.sha256 for shard in manifest.files}
    if COPIED in found and (data := bytes_if_any(target / COPIED)) is not None:
        try:
            return {str(name): str(digest) for name, digest in json.loads(data).items()}
        except (ValueError, AttributeError, RecursionError):
            raise _foreign(target, COPIED) from None
    return {}


def _foreign(target: Location, name: str) -> UsageError:
    return UsageError(
        f"{target}: has {name}, and no {MANIFEST} says of which cluster it is; choose another directory, or move it away"
    )
