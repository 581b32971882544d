"""Where the shards of a cluster are: where a rule says, else beside the index, else where cluster.loc has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from cdxmill.errors import UsageError
from cdxmill.storage.choose import is_remote, join

Rule = tuple[str, str]
"""pywb's `match` and `replace`, which make of the index's folder that of the shards."""
Locations = Mapping[bytes, list[str]]
"""What cluster.loc has of each shard, best first."""

_ENDINGS = (".gz", ".cdx.gz")
"""Some indexes name shards without them."""


def check_rule(rule: Rule) -> None:
    """Raise UsageError where a rule cannot be followed."""
    try:
        re.sub(rule[0], rule[1], "folder/")
    except (re.error, IndexError) as error:
        raise UsageError(
            f"--shard-index-loc {rule[0]!r} {rule[1]!r}: no regular expression ({error})"
        ) from None


def shard_locations(
    folder: str, shard: str, rule: Rule | None, locations: Callable[[], Locations], has: Callable[[str], bool]
) -> Iterator[str]:
    """The paths or URLs at which a shard may be, best first; one at the least.

    `folder` is that of the index. `has` says whether a file of that name is, or may be, in it.
    """
    if rule is not None:
        yield re.sub(rule[0], rule[1], f"{folder}/") + shard
        return
    if has(shard):
        yield join(folder, shard)
    listed = locations().get(shard.encode("utf-8", "surrogateescape"), [])
    yield from (resolved(folder, place) for place in listed)
    if not listed and not shard.endswith(".gz"):
        yield from (join(folder, shard + ending) for ending in _ENDINGS if has(shard + ending))
    yield join(folder, shard)


def resolved(folder: str, location: str) -> str:
    """The path or URL that a location of cluster.loc names: one without root starts at the cluster's folder.

    >>> resolved("/data/C", "cdx-00000.gz"), resolved("/data/C", "s3://bucket/cdx-00000.gz")
    ('/data/C/cdx-00000.gz', 's3://bucket/cdx-00000.gz')
    """
    is_whole = is_remote(location) or location.startswith(("/", "file:"))
    return location if is_whole else join(folder, location)
