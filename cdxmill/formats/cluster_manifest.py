"""cluster.json: what a finished ZipNum cluster consists of (docs/formats/zipnum.md).

It is written last: a folder without it is no finished cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cdxmill.formats.split_points import format_text
from cdxmill.formats.zipnum_block import Compressor

FORMAT_VERSION = 1


class ShardEntry(NamedTuple):
    """One shard: its file, size in bytes, lines, blocks, and SHA-256 of the file."""

    name: str
    bytes: int
    lines: int
    blocks: int
    sha256: str


def splits_digest(points: Sequence[bytes]) -> str:
    """SHA-256 of the split points as a text file."""
    return hashlib.sha256(format_text(points)).hexdigest()


def format_manifest(
    shards: Sequence[ShardEntry], points: Sequence[bytes], compressor: Compressor, block_lines: int
) -> bytes:
    """The manifest as JSON. No time and no machine's name: equal clusters have equal manifests."""
    content: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "lines": sum(shard.lines for shard in shards),
        "blocks": sum(shard.blocks for shard in shards),
        "numlines": block_lines,
        "splits_sha256": splits_digest(points),
        "compressor": {
            "library": compressor.library,
            "version": compressor.version(),
            "level": compressor.level,
        },
        "shards": [shard._asdict() for shard in shards],
    }
    content["sha256"] = _digest(content)
    return (json.dumps(content, indent=1) + "\n").encode()


def _digest(content: dict[str, Any]) -> str:
    """SHA-256 of all fields but the last, `sha256`, written as the manifest is: a changed byte in it shows."""
    fields = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(fields, indent=1).encode()).hexdigest()


def parse_manifest(data: bytes) -> dict[str, Any]:
    """The manifest's content. Raises ValueError where it is none of this version, or was changed."""
    content = json.loads(data)
    if not isinstance(content, dict) or content.get("format") != FORMAT_VERSION:
        raise ValueError(f"not a cluster.json of format {FORMAT_VERSION}")
    if content.get("sha256") != _digest(content):
        raise ValueError("it does not fit its own checksum")
    return content
