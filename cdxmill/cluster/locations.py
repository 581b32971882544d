"""The locations of a cluster's shards: those of a rule, else beside the index, else those of cluster.loc."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cdxmill.errors import UsageError
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.reach import LedUrl, Reach

Rule = tuple[str, str]
"""pywb's `match` and `replace`: a regular expression and its replacement turn the index's directory into that of the shards."""
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
        re.sub(rule[0], rule[1], "directory/")
    except (re.error, IndexError) as error:
        raise UsageError(
            f"invalid --shard-index-loc {rule[0]!r} {rule[1]!r}: not a regular expression and its replacement ({error})"
        ) from None


def shard_locations(
    directory: Location,
    shard: str,
    rule: Rule | None,
    locations: Callable[[], Locations],
    has: Callable[[str], bool],
) -> Iterator[Location]:
    """Where a shard may be, best first; at least one place.

    `directory` is the directory of the index. `has` says whether it has, or may have, a file of a name.
    """
    if rule is not None:
        yield locate(re.sub(rule[0], rule[1], f"{directory}/") + shard)
        return
    if has(shard):
        yield directory / shard
    listed = locations().get(shard, [])
    yield from (resolved(directory, location) for location in listed if not why_refused(directory, location))
    if not listed and not shard.endswith(".gz"):
        yield from (directory / (shard + ending) for ending in _ENDINGS if has(shard + ending))
    yield directory / shard


def resolved(directory: Location, location: str) -> Location:
    """A location in cluster.loc. A relative one starts at the cluster's directory.

    A URL elsewhere may not lead to every address (SECURITY.md).

    >>> str(resolved(locate("/data/C"), "cdx-00000.gz")), str(resolved(locate("/data/C"), "s3://bucket/cdx-00000.gz"))
    ('/data/C/cdx-00000.gz', 's3://bucket/cdx-00000.gz')
    """
    place = locate(location)
    if place.is_remote and not location.startswith(f"{directory}/"):
        return locate(LedUrl(location, directory.content_reach()))
    return place if place.is_remote or _is_local(location) else directory / location


def why_refused(directory: Location, location: str) -> str:
    """Why a location in the cluster.loc of a cluster is not used; "" if it is. What a local cluster names is used.

    >>> why_refused(locate("https://host/C"), "/etc/passwd"), why_refused(locate("/data/C"), "/data/D/cdx-00000.gz")
    ('is a local path, and the cluster is remote', '')
    """
    if directory.is_remote and _is_local(location):
        return "is a local path, and the cluster is remote"
    if locate(location).scheme == "hdfs" != directory.scheme and directory.content_reach() == Reach.PUBLIC:
        return "is in HDFS, and the cluster is public"
    return ""


def _is_local(location: str) -> bool:
    return location.startswith(("/", "file:"))
