"""The locations of a cluster's shards: those of a rule, else beside the index, else those of cluster.loc."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cdxmill.errors import UsageError
from cdxmill.storage.choose import content_reach, is_remote, join, scheme_of
from cdxmill.storage.location import PathOrUrl, locate
from cdxmill.storage.places import LedUrl, Reach

Rule = tuple[str, str]
"""pywb's `match` and `replace`: a regular expression and its replacement turn the index's folder into that of the shards."""
Locations = Mapping[str, list[str]]
"""The locations of each shard by cluster.loc, best first."""

_NOT_LISTED = re.compile("[\t\r\n]")
"""No path in cluster.loc may have one of these characters."""
_ENDINGS = (".gz", ".cdx.gz")
"""Some indexes name shards without these endings."""


def local_directory(path: PathOrUrl) -> Path:
    """The local directory that a path or file URL names, for a cluster. Raises UsageError if a cluster cannot be there."""
    place = locate(path)
    if place.is_remote:
        raise UsageError(
            f"{path}: not a local directory; build the cluster locally, then copy it with cdxmill publish"
        )
    if _NOT_LISTED.search(place.absolute()):
        raise UsageError(
            f"{path}: cluster.loc cannot have a path with a tab or a line end; choose another directory"
        )
    return Path(place.local)


def check_rule(rule: Rule) -> None:
    """Raise UsageError if a rule is invalid."""
    try:
        re.sub(rule[0], rule[1], "folder/")
    except (re.error, IndexError) as error:
        raise UsageError(
            f"invalid --shard-index-loc {rule[0]!r} {rule[1]!r}: not a regular expression and its replacement ({error})"
        ) from None


def shard_locations(
    folder: str, shard: str, rule: Rule | None, locations: Callable[[], Locations], has: Callable[[str], bool]
) -> Iterator[str]:
    """The paths or URLs at which a shard may be, best first; at least one.

    `folder` is that of the index. `has` says whether the folder has, or may have, a file of a name.
    """
    if rule is not None:
        yield re.sub(rule[0], rule[1], f"{folder}/") + shard
        return
    if has(shard):
        yield join(folder, shard)
    listed = locations().get(shard, [])
    yield from (resolved(folder, location) for location in listed if not why_refused(folder, location))
    if not listed and not shard.endswith(".gz"):
        yield from (join(folder, shard + ending) for ending in _ENDINGS if has(shard + ending))
    yield join(folder, shard)


def resolved(folder: str, location: str) -> str:
    """The path or URL of a location in cluster.loc. A relative one starts at the cluster's folder.

    A URL elsewhere may not lead to every address (SECURITY.md).

    >>> resolved("/data/C", "cdx-00000.gz"), resolved("/data/C", "s3://bucket/cdx-00000.gz")
    ('/data/C/cdx-00000.gz', 's3://bucket/cdx-00000.gz')
    """
    if is_remote(location) and not location.startswith(f"{folder}/"):
        return LedUrl(location, content_reach(folder))
    return location if is_remote(location) or _is_local(location) else join(folder, location)


def why_refused(folder: str, location: str) -> str:
    """Why a location in the cluster.loc of a cluster is not used; "" if it is. What a local cluster names is used.

    >>> why_refused("https://host/C", "/etc/passwd"), why_refused("/data/C", "/data/D/cdx-00000.gz")
    ('is a local path, and the cluster is remote', '')
    """
    if is_remote(folder) and _is_local(location):
        return "is a local path, and the cluster is remote"
    if scheme_of(location) == "hdfs" != scheme_of(folder) and content_reach(folder) == Reach.PUBLIC:
        return "is in HDFS, and the cluster is public"
    return ""


def _is_local(location: str) -> bool:
    return location.startswith(("/", "file:"))
