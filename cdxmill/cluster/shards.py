"""What a cluster in a folder or behind a URL consists of, and whether its parts fit it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.cluster_manifest import parse_manifest
from cdxmill.formats.zipnum_index import MANIFEST, BlockRef, parse_index_line, part_name, shard_name
from cdxmill.storage.choose import PathOrUrl, join, list_folder, read_bytes
from cdxmill.storage.entry import Entry

_SHARD = re.compile(r"cdx-(\d{5,})\.gz")
_AGAIN = "build the cluster again"


class Shard(NamedTuple):
    """A shard: its file, its part, size in bytes; SHA-256 and blocks where the manifest tells them."""

    name: str
    part: str
    bytes: int
    sha256: str
    blocks: int | None


def find_shards(cluster: PathOrUrl, unfinished: bool) -> list[Shard]:
    """The shards of a cluster, in order, as its manifest has them; all that stand if it may be `unfinished`.

    Raises UsageError without a manifest, InputError where files are absent or have another size
    than the manifest says.
    """
    found = list_folder(cluster)
    if MANIFEST in found:
        shards = listed_shards(cluster)
    elif unfinished:
        shards = _standing(found)
    else:
        raise UsageError(f"{cluster}: no finished cluster (no {MANIFEST}); finish it, or say --unfinished")
    if not shards:
        raise UsageError(f"{cluster}: no cluster (no {shard_name(0)})")
    for shard in shards:
        for name in (shard.name, shard.part):
            if name not in found:
                raise InputError(str(cluster), f"{name} is absent", _AGAIN)
        if found[shard.name].size != shard.bytes:
            sizes = f"{found[shard.name].size} bytes, {shard.bytes} in {MANIFEST}"
            raise InputError(str(cluster), f"{shard.name} has {sizes}", _AGAIN)
    return shards


def listed_shards(cluster: PathOrUrl) -> list[Shard]:
    """The shards that a cluster's manifest names, in order. Raises InputError."""
    manifest = join(cluster, MANIFEST)
    try:
        shards = parse_manifest(read_bytes(manifest))["shards"]
        return [
            Shard(shard_name(number), part_name(number), shard["bytes"], shard["sha256"], shard["blocks"])
            for number, shard in enumerate(shards)
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(manifest, f"is damaged ({error})", _AGAIN) from None


def _standing(found: Mapping[str, Entry]) -> list[Shard]:
    """Those from 0 to the last that stands; one that is absent between them is told as such."""
    numbers = [int(match[1]) for match in map(_SHARD.fullmatch, found) if match is not None]
    names = ((shard_name(number), part_name(number)) for number in range(max(numbers, default=-1) + 1))
    return [Shard(name, part, found[name].size if name in found else 0, "", None) for name, part in names]


def check_parts(cluster: PathOrUrl, shards: Sequence[Shard]) -> int:
    """The number of blocks of all shards.

    Raises InputError where a part has not the blocks of its shard, one behind the other, or the
    keys of all parts are not in order.
    """
    last, blocks = b"", 0
    for shard in shards:
        lines = read_bytes(join(cluster, shard.part)).split(b"\n")
        reason = None if not lines.pop() else "the last line is cut"
        end = 0
        for number, line in enumerate(lines, 1):
            try:
                block = parse_index_line(line)
            except ValueError as error:
                raise InputError(join(cluster, shard.part), f"line {number}: {error}", _AGAIN) from None
            if line.count(b"\t") != 3:
                reason = reason or f"line {number}: has not four columns"
            reason = reason or _wrong(block, shard, end, last, number)
            last, end = block.key, block.offset + block.length
        if lines and end != shard.bytes:
            reason = reason or f"its blocks have {end} bytes, but {shard.name} has {shard.bytes}"
        if shard.blocks is not None and len(lines) != shard.blocks:
            reason = reason or f"it has {len(lines)} lines, but {MANIFEST} says {shard.blocks}"
        if reason is not None:
            raise InputError(join(cluster, shard.part), reason, _AGAIN)
        blocks += len(lines)
    return blocks


def _wrong(block: BlockRef, shard: Shard, end: int, last: bytes, number: int) -> str | None:
    if block.key < last:
        return f"line {number}: not in order"
    if block.shard != shard.name.encode():
        return f"line {number}: not of {shard.name}"
    return None if block.offset == end else f"line {number}: the block does not begin where the last one ends"
