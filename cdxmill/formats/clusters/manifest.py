"""cluster.json: the contents of a finished ZipNum cluster (docs/formats/zipnum.md).

cdxmill writes it last, so a directory without it is not a finished cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cdxmill.formats.clusters.compressor import LEVELS, Compressor
from cdxmill.formats.clusters.split_points import format_text
from cdxmill.formats.clusters.zipnum import OVERLAY, SHARD, shard_name
from cdxmill.regex import regex

FORMAT_VERSION = 1

_END = "\n}"
_SHA256 = regex(r"[0-9a-f]{64}")
_TOP = {
    "format": int,
    "lines": int,
    "blocks": int,
    "numlines": int,
    "splits_sha256": str,
    "compressor": dict,
    "shards": list,
    "sha256": str,
}
_CHANGED = {"change": int, "origin": str}
_COMPRESSOR = {"library": str, "version": str, "level": int, "section_lines": int}
_ENTRY = {"name": str, "bytes": int, "lines": int, "blocks": int, "sha256": str}


class ShardEntry(NamedTuple):
    """One shard: file name, size in bytes, number of lines and blocks, SHA-256 of the file."""

    name: str
    bytes: int
    lines: int
    blocks: int
    sha256: str


class UsedCompressor(NamedTuple):
    """The compressor that packed the blocks: library, version and level, and the lines of a section."""

    library: str
    version: str
    level: int
    section_lines: int = 0


class Manifest(NamedTuple):
    """The contents of a cluster. `numlines` is the number of lines of a full block.

    `change` counts the changes since it was built. `origin` is the SHA-256 in the manifest of the build, "" in that one.
    `overlays` have lines that were added later. Each has the form of a shard, and all keys.
    """

    shards: tuple[ShardEntry, ...]
    numlines: int
    compressor: UsedCompressor
    splits_sha256: str
    change: int = 0
    origin: str = ""
    overlays: tuple[ShardEntry, ...] = ()

    @property
    def files(self) -> tuple[ShardEntry, ...]:
        """The shards, then the overlays."""
        return (*self.shards, *self.overlays)

    @property
    def lines(self) -> int:
        """Lines of all shards."""
        return sum(shard.lines for shard in self.shards)

    @property
    def blocks(self) -> int:
        """Blocks of all shards."""
        return sum(shard.blocks for shard in self.shards)


def make_manifest(
    shards: Iterable[ShardEntry], points: Sequence[bytes], compressor: Compressor, block_lines: int
) -> Manifest:
    """The manifest of a cluster that was written with `compressor`, `block_lines` lines in a block."""
    return Manifest(tuple(shards), block_lines, used_compressor(compressor), splits_digest(points))


def used_compressor(compressor: Compressor) -> UsedCompressor:
    """A compressor with its version."""
    return UsedCompressor(
        compressor.library, compressor.version(), compressor.level, compressor.section_lines
    )


def splits_digest(points: Sequence[bytes]) -> str:
    """SHA-256 of the split points as a text file."""
    return hashlib.sha256(format_text(points)).hexdigest()


def format_manifest(manifest: Manifest) -> bytes:
    """The manifest as JSON. It has no time and no machine name: equal clusters have equal manifests.

    The last field, `sha256`, is the SHA-256 of the JSON without that field. It reveals any changed byte.
    """
    content: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "lines": manifest.lines,
        "blocks": manifest.blocks,
        "numlines": manifest.numlines,
        "splits_sha256": manifest.splits_sha256,
        "compressor": _compressor_fields(manifest.compressor),
        "shards": [shard._asdict() for shard in manifest.shards],
    }
    if manifest.change:
        content |= {"change": manifest.change, "origin": manifest.origin}
    if manifest.overlays:
        content["overlays"] = [one._asdict() for one in manifest.overlays]
    text = json.dumps(content, indent=1)
    return f'{text.removesuffix(_END)},\n "sha256": "{_sha256(text)}"{_END}\n'.encode()


def origin_of(manifest: Manifest) -> str:
    """What a cluster keeps when it is changed, and no other cluster has: the SHA-256 in the manifest of its build."""
    return manifest.origin or str(json.loads(format_manifest(manifest))["sha256"])


def most_lines(manifest: Manifest) -> int:
    """The most lines that a block may have. Changes leave blocks of unequal length."""
    return manifest.numlines if not manifest.change else manifest.numlines * 3 // 2


def _compressor_fields(compressor: UsedCompressor) -> dict[str, Any]:
    fields = compressor._asdict()
    if not compressor.section_lines:
        del fields["section_lines"]
    return fields


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def parse_manifest(data: bytes) -> Manifest:
    """Parse and check a manifest: its form, its checksum, and that it is written as cdxmill writes it.

    Raises ValueError.

    >>> parse_manifest(b"{}")
    Traceback (most recent call last):
    ValueError: not a cluster.json of format 1
    """
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT_VERSION:
        raise ValueError(f"not a cluster.json of format {FORMAT_VERSION}")
    changed = (_CHANGED if "change" in content else {}) | (
        {"overlays": list} if "overlays" in content else {}
    )
    _check_types("cluster.json", content, _TOP | changed)
    manifest = _manifest_of(content)
    for field, total in (("lines", manifest.lines), ("blocks", manifest.blocks)):
        if content[field] != total:
            raise ValueError(f"{field} is {content[field]}, but its shards have {total}")
    if format_manifest(manifest) != data:
        raise ValueError(_change_of(content))
    return manifest


def _change_of(content: dict[str, Any]) -> str:
    """Why a manifest with valid fields is not the one that cdxmill wrote."""
    digest = content.pop("sha256")
    if digest != _sha256(json.dumps(content, indent=1)):
        return "it does not match its own checksum"
    return "it is not written as cdxmill writes it"


def _manifest_of(content: dict[str, Any]) -> Manifest:
    """The manifest without its totals. Raises ValueError where a value is invalid."""
    if content["numlines"] < 1:
        raise ValueError("numlines is less than 1")
    if not _SHA256.fullmatch(content["splits_sha256"]):
        raise ValueError("splits_sha256 is not a SHA-256")
    if not content["shards"]:
        raise ValueError("it has no shards")
    change, origin = content.get("change", 0), content.get("origin", "")
    if "change" in content and (change < 1 or not _SHA256.fullmatch(origin)):
        raise ValueError("change or origin is invalid")
    shards = tuple(_entry(number, fields, change) for number, fields in enumerate(content["shards"]))
    compressor = _compressor(content["compressor"])
    overlays = tuple(_overlay(fields, change) for fields in content.get("overlays", ()))
    return Manifest(
        shards, content["numlines"], compressor, content["splits_sha256"], change, origin, overlays
    )


def _compressor(fields: dict[str, Any]) -> UsedCompressor:
    _check_types("compressor", {"section_lines": 0, **fields}, _COMPRESSOR)
    compressor = UsedCompressor(**fields)
    if not 1 <= compressor.level <= LEVELS.get(compressor.library, 0) or compressor.section_lines < 0:
        raise ValueError(f"unknown compressor {compressor.library!r}, level {compressor.level}")
    return compressor


def _overlay(fields: Any, change: int) -> ShardEntry:
    _check_types("overlay", fields, _ENTRY)
    entry = ShardEntry(**fields)
    name = OVERLAY.fullmatch(entry.name)
    if name is None or not int(name[1]) <= int(name[2]) <= change:
        raise ValueError(f"{entry.name!r} is not an overlay of change {change}")
    return _with_valid_numbers(entry, entry.name)


def _entry(number: int, fields: Any, change: int) -> ShardEntry:
    _check_types(f"entry {number + 1}", fields, _ENTRY)
    entry = ShardEntry(**fields)
    name = SHARD.fullmatch(entry.name)
    written = int(name[2] or 0) if name is not None else 0
    if written > change or entry.name != shard_name(number, written):
        raise ValueError(f"entry {number + 1} is {entry.name!r}, not {shard_name(number)}")
    return _with_valid_numbers(entry, f"entry {number + 1}")


def _with_valid_numbers(entry: ShardEntry, name: str) -> ShardEntry:
    if min(entry.bytes, entry.lines, entry.blocks) < 0 or not _SHA256.fullmatch(entry.sha256):
        raise ValueError(f"{name} has an invalid number or SHA-256")
    return entry


def _check_types(name: str, value: Any, wanted: dict[str, type]) -> None:
    """Raise ValueError unless `value` is an object with exactly the `wanted` fields, each of its type."""
    if not isinstance(value, dict) or {key: type(field) for key, field in value.items()} != wanted:
        raise ValueError(f"{name} has missing, unknown or invalid fields")
