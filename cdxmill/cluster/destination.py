"""May `publish` write to a destination: a path or URL? What is there stays, unless --replace is given."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path

from cdxmill.cluster.files import part_of
from cdxmill.cluster.find import INDEXES
from cdxmill.cluster.finished import BESIDE, COPIED
from cdxmill.cluster.manifest import read_manifest
from cdxmill.cluster.output import REPLACE, check_replaceable
from cdxmill.cluster.shards import Shard
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import MANIFEST, SHARD
from cdxmill.storage.choose import is_remote, join, list_folder, local_path, read_bytes
from cdxmill.storage.entry import Entry

_PART = re.compile(r"part-\d{5,}")


class Way(Enum):
    """What is to be done: nothing, write there, or write beside it and switch."""

    NOTHING = "nothing"
    THERE = "there"
    BESIDE = "beside"


class Destination:
    """The destination as it is: `known` are the shards that earlier runs copied, finished or not, with their SHA-256."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.found = list_folder(target)
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

    def way(self, source: str, shards: Sequence[Shard], index_only: bool, replace: bool) -> Way:
        """How the cluster `source` gets there. Raises UsageError if it may not."""
        if index_only and not replace and (others := self.found.keys() & self.surplus(shards, True)):
            raise UsageError(
                f"{self.target}: has {min(others)} of another cluster, and readers would use it; omit --index-only, use"
                " --replace, or choose another directory"
            )
        if MANIFEST in self.found:
            return self._way_to_finished(source, shards, index_only, replace)
        if COPIED in self.found:
            other = next(iter(self._unlike(shards)), None)
            if other is not None and not replace:
                raise UsageError(
                    f"{self.target}: has {other} of another cluster; use --replace, or choose another directory"
                )
            return Way.THERE
        foreign = [
            name
            for name in self.found
            if SHARD.fullmatch(name) or _PART.fullmatch(name) or name in (*INDEXES, ARCHIVES)
        ]
        if foreign:
            raise UsageError(
                f"{self.target}: has {min(foreign)}, and no {MANIFEST} says of which cluster it is;"
                " choose another directory, or move it away"
            )
        return Way.THERE

    def _way_to_finished(self, source: str, shards: Sequence[Shard], index_only: bool, replace: bool) -> Way:
        if self._manifest_of(source) == read_bytes(join(self.target, MANIFEST)):
            return Way.NOTHING if self._is_whole(source, shards, index_only) else Way.THERE
        if not replace:
            raise UsageError(f"{self.target}: already has another cluster; {REPLACE}")
        if not is_remote(self.target):
            check_replaceable(Path(local_path(self.target)).resolve())
        return Way.BESIDE

    def _manifest_of(self, source: str) -> bytes | None:
        return read_bytes(join(source, MANIFEST)) if MANIFEST in list_folder(source) else None

    def _is_whole(self, source: str, shards: Sequence[Shard], index_only: bool) -> bool:
        parts = list_folder(source)
        return (
            all(name in self.found for name in BESIDE)
            and all(self._has(shard.part, parts[shard.part].size) for shard in shards)
            and (index_only or all(self._has(shard.name, shard.bytes) for shard in shards))
        )

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


def _known(target: str, found: Mapping[str, Entry]) -> dict[str, str]:
    with suppress(InputError, ValueError):
        if MANIFEST in found:
            return {shard.name: shard.sha256 for shard in read_manifest(join(target, MANIFEST)).shards}
        if COPIED in found:
            return {
                str(name): str(digest)
                for name, digest in json.loads(read_bytes(join(target, COPIED))).items()
            }
    return {}


def parts_and_shards(shards: Sequence[str]) -> list[str]:
    """The names of shards and of their parts.

    >>> parts_and_shards(["cdx-00007.gz"])
    ['cdx-00007.gz', 'part-00007']
    """
    return [name for shard in shards for name in (shard, part_of(shard))]
