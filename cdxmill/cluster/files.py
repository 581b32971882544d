"""What stands in the folder of a ZipNum cluster, ours or another's, and where its shards are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cdxmill.cluster.locations import Locations, Rule, check_rule, shard_locations
from cdxmill.errors import UsageError
from cdxmill.formats.zipnum_index import INDEX, LOCATIONS, MANIFEST, SUMMARY, parse_locations
from cdxmill.storage.choose import PathOrUrl, exists, is_listed, is_remote, join, list_folder, read_bytes

INDEXES = (INDEX, SUMMARY, "all.idx")
"""Names of a secondary index, in the order in which readers look for them."""

_SHARD = re.compile(r"cdx-\d{5,}\.gz")
_PART = re.compile(r"part-\d{5,}")


class ClusterFiles:
    """The files of the cluster at a path or URL, by name; a server that lists none is asked for each.

    By a `rule` as lookups have it shards are elsewhere.
    """

    def __init__(self, cluster: PathOrUrl, rule: Rule | None = None) -> None:
        """Raises UsageError where no cluster is there, InputError where its folder cannot be looked into."""
        self.cluster, self._rule = str(cluster).rstrip("/") or "/", rule
        if rule is not None:
            check_rule(rule)
        can_list = not is_remote(str(cluster)) or is_listed(str(cluster))
        self._listed = set(list_folder(cluster)) if can_list else None
        self._asked: dict[str, bool] = {}
        self.index = next(filter(self.has, INDEXES), None)
        self.shards = self._like(_SHARD)
        self.parts = self._like(_PART)
        if self.index is None and not self.has(MANIFEST) and not self.shards:
            raise UsageError(f"{cluster}: not a ZipNum cluster (no {INDEX}, {SUMMARY} or {MANIFEST})")
        self._locations: Locations | None = None

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
        """The path or URL of a shard, where readers look for it first."""
        return next(shard_locations(self.cluster, shard, self._rule, self._read_locations, self.has))

    def _read_locations(self) -> Locations:
        if self._locations is None:
            has = self.has(LOCATIONS)
            self._locations = parse_locations(read_bytes(self.place(LOCATIONS))) if has else {}
        return self._locations


def in_order(names: Iterable[str]) -> list[str]:
    """Names of shards or parts by their numbers, which may have more than five digits."""
    return sorted(names, key=lambda name: (len(name), name))


def part_of(shard: str) -> str:
    """The name of a shard's part.

    >>> part_of("cdx-00007.gz")
    'part-00007'
    """
    return shard.replace("cdx-", "part-", 1).removesuffix(".gz")
