"""What stands in the folder of a ZipNum cluster, ours or another's, and where its shards are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cdxmill.commands.publish import INDEX, LOCATIONS, MANIFEST, SUMMARY
from cdxmill.errors import UsageError
from cdxmill.formats.zipnum_index import parse_locations
from cdxmill.storage.choose import Place, exists, is_listed, is_remote, join, list_folder, read_bytes

INDEXES = (INDEX, SUMMARY, "all.idx")
"""Names of a secondary index, in the order in which readers look for them."""

_SHARD = re.compile(r"cdx-\d{5,}\.gz")
_PART = re.compile(r"part-\d{5,}")


class ClusterFiles:
    """The files of the cluster at a path or URL, by name; a server that lists none is asked for each."""

    def __init__(self, cluster: Place) -> None:
        """Raises UsageError where no cluster is there, InputError where its folder cannot be looked into."""
        self.cluster = cluster
        can_list = not is_remote(str(cluster)) or is_listed(str(cluster))
        self._listed = set(list_folder(cluster)) if can_list else None
        self._asked: dict[str, bool] = {}
        self.index = next(filter(self.has, INDEXES), None)
        self.shards = self._like(_SHARD)
        self.parts = self._like(_PART)
        if self.index is None and not self.has(MANIFEST) and not self.shards:
            raise UsageError(f"{cluster}: not a ZipNum cluster (no {INDEX}, {SUMMARY} or {MANIFEST})")
        self._locations: dict[bytes, list[str]] | None = None

    def _like(self, pattern: re.Pattern[str]) -> list[str]:
        return in_order(name for name in self._listed or () if pattern.fullmatch(name))

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        if self._listed is not None:
            return name in self._listed
        if name not in self._asked:
            self._asked[name] = exists(self.place(name))
        return self._asked[name]

    def place(self, name: str) -> str:
        """The path or URL of a file beside the shards."""
        return join(self.cluster, name)

    def shard_place(self, shard: str) -> str:
        """The path or URL of a shard: beside the index, else where cluster.loc has it first."""
        if self.has(shard):
            return self.place(shard)
        if self._locations is None:
            self._locations = (
                parse_locations(read_bytes(self.place(LOCATIONS))) if self.has(LOCATIONS) else {}
            )
        listed = self._locations.get(shard.encode("utf-8", "surrogateescape"))
        return self.resolved(listed[0]) if listed else self.place(shard)

    def resolved(self, location: str) -> str:
        """The path or URL that a location of cluster.loc names: one without root starts at the cluster's folder."""
        is_whole = is_remote(location) or location.startswith(("/", "file:"))
        return location if is_whole else self.place(location)


def in_order(names: Iterable[str]) -> list[str]:
    """Names of shards or parts by their numbers, which may have more than five digits."""
    return sorted(names, key=lambda name: (len(name), name))


def part_of(shard: str) -> str:
    """The name of a shard's part.

    >>> part_of("cdx-00007.gz")
    'part-00007'
    """
    return shard.replace("cdx-", "part-", 1).removesuffix(".gz")
