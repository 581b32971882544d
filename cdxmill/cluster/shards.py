"""The shards of a cluster to be published, and the check that its parts match them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cdxmill.cluster.manifest import read_manifest
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.manifest import Manifest
from cdxmill.formats.clusters.zipnum_index import (
    MANIFEST,
    SHARD,
    BlockRef,
    parse_index_line,
    part_name,
    shard_name,
)
from cdxmill.storage.choose import PathOrUrl, join, list_folder, read_bytes
from cdxmill.storage.entry import Entry

_AGAIN = "build the cluster again"


class Shard(NamedTuple):
    """A shard: file name, name of its part, size in bytes. Without a manifest `sha256` is "" and `blocks` None."""

    name: str
    part: str
    bytes: int
    sha256: str
    blocks: int | None


def find_shards(cluster: PathOrUrl, unfinished: bool) -> list[Shard]:
    """The shards in the manifest of a cluster, in order. Without one, all shards found if it may be `unfinished`.

    Raises UsageError without a manifest, InputError if files are missing or have another size than in the
    manifest.
    """
    found = list_folder(cluster)
    if MANIFEST in found:
        shards = _listed(read_manifest(join(cluster, MANIFEST)))
    elif unfinished:
        shards = _found_shards(found)
    else:
        raise UsageError(f"{cluster}: not a finished cluster (no {MANIFEST}); finish it, or use --unfinished")
    if not shards:
        raise UsageError(f"{cluster}: not a ZipNum cluster (no {shard_name(0)})")
    for shard in shards:
        for name in (shard.name, shard.part):
            if name not in found:
                raise InputError(str(cluster), f"{name} is missing", _AGAIN)
        if found[shard.name].size != shard.bytes:
            sizes = f"{found[shard.name].size} bytes, but {MANIFEST} has {shard.bytes}"
            raise InputError(str(cluster), f"{shard.name} has {sizes}", _AGAIN)
    return shards


def _listed(manifest: Manifest) -> list[Shard]:
    """The shards of a manifest, in order."""
    parts = map(part_name, range(len(manifest.shards)))
    return [
        Shard(shard.name, part, shard.bytes, shard.sha256, shard.blocks)
        for shard, part in zip(manifest.shards, parts, strict=True)
    ]


def _found_shards(found: Mapping[str, Entry]) -> list[Shard]:
    """All shards from 0 to the last one found. A missing one between them is included, so that it is reported."""
    numbers = [int(match[1]) for match in map(SHARD.fullmatch, found) if match is not None]
    names = ((shard_name(number), part_name(number)) for number in range(max(numbers, default=-1) + 1))
    return [Shard(name, part, found[name].size if name in found else 0, "", None) for name, part in names]


def check_parts(cluster: PathOrUrl, shards: Sequence[Shard]) -> int:
    """The number of blocks of all shards.

    Raises InputError if the blocks of a part do not fill its shard without gaps, or if the keys of all parts are
    not in order.
    """
    last, blocks = b"", 0
    for shard in shards:
        lines = read_bytes(join(cluster, shard.part)).split(b"\n")
        reason = None if not lines.pop() else "the last line is truncated"
        end = 0
        for number, line in enumerate(lines, 1):
            try:
                block = parse_index_line(line)
            except ValueError as error:
                raise InputError(join(cluster, shard.part), f"line {number}: {error}", _AGAIN) from None
            if line.count(b"\t") != 3:
                reason = reason or f"line {number}: expected 4 columns"
            reason = reason or _wrong(block, shard, end, last, number)
            last, end = block.key, block.offset + block.length
        if lines and end != shard.bytes:
            reason = reason or f"its blocks have {end} bytes, but {shard.name} has {shard.bytes}"
        if shard.blocks is not None and len(lines) != shard.blocks:
            reason = reason or f"it has {len(lines)} lines, but {MANIFEST} has {shard.blocks} blocks"
        if reason is not None:
            raise InputError(join(cluster, shard.part), reason, _AGAIN)
        blocks += len(lines)
    return blocks


def _wrong(block: BlockRef, shard: Shard, end: int, last: bytes, number: int) -> str | None:
    if block.key < last:
        return f"line {number}: out of order"
    if block.shard != shard.name.encode():
        return f"line {number}: not a block of {shard.name}"
    return (
        None
        if block.offset == end
        else f"line {number}: the block does not start where the previous one ends"
    )
