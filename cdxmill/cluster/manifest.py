"""cluster.json of a cluster: read and checked."""

from __future__ import annotations

from typing import Any, NamedTuple

from cdxmill.cluster.files import ClusterFiles
from cdxmill.errors import InputError
from cdxmill.formats.cluster_manifest import parse_manifest
from cdxmill.formats.zipnum_block import LIBRARIES
from cdxmill.formats.zipnum_index import MANIFEST, shard_name
from cdxmill.storage.choose import (
    read_bytes,
)

_ENTRY = {"name": str, "bytes": int, "lines": int, "blocks": int, "sha256": str}


_TOP = {"format", "lines", "blocks", "numlines", "splits_sha256", "compressor", "shards"}


_OWN = "sha256"
"""A checksum of the manifest itself, where it has one: parse_manifest looks at that."""


_COMPRESSOR = {"library": str, "version": str, "level": int}


class Manifest(NamedTuple):
    """cluster.json as it stands, and what is in it."""

    data: bytes
    content: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """Those of all shards."""
        return [entry["name"] for entry in self.content["shards"]]

    @property
    def block_lines(self) -> int:
        """Lines in a block."""
        return int(self.content["numlines"])


def read_manifest(files: ClusterFiles) -> Manifest | None:
    """cluster.json; None where there is none. Raises InputError where it is damaged."""
    if not files.has(MANIFEST):
        return None
    data = read_bytes(files.place(MANIFEST))
    try:
        content = parse_manifest(data)
        wrong = _wrong_form(content)
    except (ValueError, RecursionError) as error:
        wrong = str(error)
    except (LookupError, TypeError, AttributeError):
        wrong = "a field is missing or of another kind"
    if wrong:
        raise InputError(files.place(MANIFEST), f"is damaged ({wrong})", "build or publish the cluster again")
    return Manifest(data, content)


def _wrong_form(content: dict[str, Any]) -> str | None:
    if content.keys() - {_OWN} != _TOP:
        return "fields are missing or unknown"
    if not isinstance(content["numlines"], int) or content["numlines"] < 1:
        return "numlines is no number from 1"
    compressor = content["compressor"]
    if {key: type(value) for key, value in compressor.items()} != _COMPRESSOR:
        return "compressor is not library, version and level"
    if compressor["library"] not in LIBRARIES or not 1 <= compressor["level"] <= 12:
        return "there is no such compressor"
    for number, entry in enumerate(content["shards"]):
        if {key: type(value) for key, value in entry.items()} != _ENTRY or entry["name"] != shard_name(
            number
        ):
            return f"entry {number + 1} is not one of {shard_name(number)}"
    return None if content["shards"] else "it has no shards"
