"""The files of a ZipNum cluster, cdxmill's or another's, and the locations of its shards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from cdxmill.cluster.find import find_directory, has_cluster, location_names, not_a_cluster
from cdxmill.cluster.locations import Locations, Rule, check_rule, shard_locations
from cdxmill.formats.clusters.zipnum_index import (
    INDEX,
    MANIFEST,
    PART,
    SHARD,
    SUMMARY,
    ParsedLocations,
    parse_locations,
)
from cdxmill.storage.location import PathOrUrl, locate


class ClusterFiles:
    """The files of the cluster at a path or URL, by name.

    `index` is the name of its index, None if it has none. `shards` and `parts` are the names of the listed ones.
    With a `rule`, as lookups take it, shards are in another directory.
    """

    def __init__(self, cluster: PathOrUrl, rule: Rule | None = None) -> None:
        """Raises UsageError if there is no cluster, InputError if its directory cannot be read."""
        if rule is not None:
            check_rule(rule)
        self._rule = rule
        self._directory, self.index = find_directory(str(cluster))
        if self.index is None and not has_cluster(self._directory):
            raise not_a_cluster(str(cluster), f"{INDEX}, {SUMMARY} or {MANIFEST}")
        self.directory = self._directory.path
        self.shards = in_order(self._directory.names(SHARD))
        self.parts = in_order(self._directory.names(PART))

    def has(self, name: str) -> bool:
        """Whether there is such a file beside the index."""
        return self._directory.has(name)

    def names(self, pattern: re.Pattern[str]) -> list[str]:
        """The listed files whose names match; none where the server has no listings."""
        return self._directory.names(pattern)

    def path(self, name: str) -> str:
        """The path or URL of a file beside the index."""
        return self._directory.file(name)

    def shard_path(self, shard: str) -> str:
        """The path or URL of a shard at which readers look first."""
        return next(shard_locations(locate(self.directory), shard, self._rule, self._by_shard, self.has)).text

    @cached_property
    def locations_name(self) -> str | None:
        """The name of cluster.loc, None if there is none."""
        return next(filter(self.has, location_names(self.index)), None)

    @cached_property
    def locations(self) -> ParsedLocations:
        """The contents of cluster.loc; no rows if there is none."""
        if self.locations_name is None:
            return ParsedLocations([], [])
        return parse_locations(locate(self.path(self.locations_name)).read_bytes())

    def _by_shard(self) -> Locations:
        return dict(self.locations.rows)


def in_order(names: Iterable[str]) -> list[str]:
    """Names of shards or parts by their numbers, which may have more than five digits."""
    return sorted(names, key=lambda name: (len(name), name))
