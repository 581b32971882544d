"""Which cluster a user means -> its directory, its index, and where its shards are.

A path, a URL or the name of a crawl of Common Crawl says which. The server of the crawls has these files:

    <base>/cc-index/collections/<name>/indexes/    the index, a ZipNum cluster
    <base>/<file name of an index line>            the archives
    collinfo.json                                  the list of all crawls, newest first

CDXMILL_COMMONCRAWL sets another base, such as that of a mirror or s3://commoncrawl, and CDXMILL_COLLINFO the URL of
another list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import CdxmillError, InputError, RefusedError, UsageError
from cdxmill.formats.clusters.zipnum import INDEX, LOCATIONS, MANIFEST, SHARD, SUMMARY, part_name, shard_name
from cdxmill.regex import regex
from cdxmill.storage.location import Location, PathOrUrl, join, locate
from cdxmill.storage.reach import LedUrl, Reach

BASE = "https://data.commoncrawl.org"
COLLINFO = "https://index.commoncrawl.org/collinfo.json"
_BUCKET = "s3://commoncrawl"
_NAME = regex(r"CC-MAIN-[0-9*?\[\]-]+")
_PATTERN = regex(r"[*?\[]")
_KEPT = 86400.0
"""Seconds for which the list is kept: a new crawl is published once a month."""
_SHOWN = 3


def is_crawl(name: str) -> bool:
    """Whether it is the name of a crawl, or a pattern for such names.

    >>> [is_crawl(name) for name in ("CC-MAIN-2024-22", "CC-MAIN-2024-*", "CC-MAIN-2024-22/indexes")]
    [True, True, False]
    """
    return bool(_NAME.fullmatch(name))


def archives_of_crawls() -> str:
    """The URL that the file names of index lines start from."""
    return os.environ.get("CDXMILL_COMMONCRAWL", "").rstrip("/") or BASE


def index_of_crawl(name: str) -> str:
    """The URL of the index of a crawl."""
    return join(archives_of_crawls(), "cc-index", "collections", name, "indexes")


def no_crawl(index: str) -> UsageError | None:
    """The error for the URL of an index that does not exist; None if it is not that of a crawl."""
    name = index.rstrip("/").split("/")[-2:][0]
    if not is_crawl(name) or index != index_of_crawl(name):
        return None
    return UsageError(f"{name}: no such crawl ({index} does not exist); {list_url()} has all names")


class Crawl(NamedTuple):
    """A crawl in the list of crawls: its name, and its title or ""."""

    name: str
    title: str


def is_pattern(name: str) -> bool:
    """Whether the name of a crawl is a pattern for several names."""
    return bool(_PATTERN.search(name))


def crawls_like(pattern: str, newest: int | None = None) -> list[Crawl]:
    """The crawls that a name or a pattern stands for, newest first as in the list; of these, the first `newest`.

    Raises UsageError if the list has none, InputError if it cannot be read and no earlier copy is kept.
    """
    url = list_url()
    from cdxmill.storage.cache import read_recent  # slow to import, and most names are paths

    crawls = _crawls(url, read_recent(url, _KEPT))
    found = [one for one in crawls if fnmatchcase(one.name, pattern)]
    if not found:
        names = ", ".join(one.name for one in crawls[:_SHOWN])
        raise UsageError(f"{pattern}: no such crawl in {url}; the newest are {names}")
    return found[:newest]


def list_url() -> str:
    """The URL of the list of all crawls."""
    base = archives_of_crawls()
    default = COLLINFO if base in (BASE, _BUCKET) else join(base, "collinfo.json")
    return os.environ.get("CDXMILL_COLLINFO") or default


def _crawls(url: str, data: bytes) -> list[Crawl]:
    import json

    try:
        found = [Crawl(str(one["id"]), str(one.get("name") or "")) for one in json.loads(data)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(url, "is not a list of crawls", "check the URL, or name each crawl") from None
    return [one for one in found if is_crawl(one.name) and not is_pattern(one.name)]


INDEXES = (INDEX, SUMMARY, "all.idx")
"""File names of an index, in the order in which commands look for them."""
COLLECTION_INDEXES = "indexes"
"""The directory of the index in a collection, as pywb and Common Crawl lay it out."""
SWITCHED = ".new/.replaces.json"
"""What the directory of a cluster on S3 has while it is replaced: see cluster/switch."""
_INDEX_ENDINGS = (".idx", ".summary")


class Directory:
    """The files of a directory. A server without listings is asked for each name."""

    def __init__(self, place: Location) -> None:
        self.place = locate(place.text.rstrip("/") or "/")
        self._listed = set(self.place.entries()) if self.place.properties.can_write else None
        self._asked: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        if self._listed is not None:
            return name in self._listed
        if name not in self._asked:
            self._asked[name] = (self.place / name).exists()
        return self._asked[name]

    def names(self, pattern: re.Pattern[str]) -> list[str]:
        """The listed files whose names match; none where the server has no listings."""
        return [name for name in self._listed or () if pattern.fullmatch(name)]


def index_files(cluster: Location) -> list[Location]:
    """Where the index of a cluster may be, best first. `cluster` may be an index file."""
    if is_index_file(cluster):
        return [cluster]
    return [cluster / name for name in (*INDEXES, f"{COLLECTION_INDEXES}/{INDEX}")]


def find_index(cluster: Location) -> Location:
    """The index of a cluster. Raises UsageError or InputError if it has none."""
    refused: InputError | None = None
    for place in index_files(cluster):
        try:
            if place.exists():
                return place
        except RefusedError as error:  # S3 without the right to list answers so for a missing file, too
            refused = refused or error
    raise refused or no_index(cluster)


def no_index(cluster: Location) -> CdxmillError:
    """The error for a cluster without an index. A directory without shards is no cluster."""
    if is_switched(cluster):
        reason = "is being replaced, so there is no index"
        return InputError(str(cluster), reason, "run it again when the run that replaces it has ended")
    directory = Directory(cluster)
    if directory.has(part_name(0)):
        return InputError(str(cluster), f"has no {INDEX}", "create it with cdxmill publish --unfinished")
    if directory.names(SHARD) or directory.has(shard_name(0)) or directory.has(MANIFEST):
        return InputError(str(cluster), f"has no {INDEX}", "build the cluster again")
    return not_a_cluster(cluster, f"{INDEX} or {SUMMARY}")


def is_switched(cluster: Location) -> bool:
    """Whether files are just moved from a directory below a cluster to it, so that it may have those of two clusters."""
    with suppress(InputError):
        return (cluster / SWITCHED).exists()
    return False


def not_a_cluster(cluster: Location, files: str) -> UsageError:
    """The error for a path or URL without any of these `files`, or for a path at which there is no directory."""
    hint = "; the URL of a prefix B-tree must end in .tree" if cluster.is_remote else ""
    other = UsageError(f"{cluster}: not a ZipNum cluster (no {files}){hint}")
    return no_directory(cluster) or no_crawl(cluster.text) or other


def no_directory(cluster: Location) -> UsageError | None:
    """The error for a path at which there is no directory; None if there is one, and for a URL. Raises InputError."""
    found = None if cluster.is_remote else cluster.status()
    if cluster.is_remote or (found is not None and found.is_directory):
        return None
    reason = "(no such file or directory); check the path"
    if found is not None:
        reason = "(it is a file); name the directory of a cluster"
    return UsageError(f"{cluster}: not a ZipNum cluster {reason}")


def find_directory(cluster: Location) -> tuple[Directory, str | None]:
    """The directory of a cluster's files and the name of its index, None if it has no index.

    A directory without cluster files may be a collection, which has them in `indexes`.
    """
    if is_index_file(cluster):
        directory = Directory(cluster.parent)
        return directory, cluster.name if directory.has(cluster.name) else None
    directory = Directory(cluster)
    if not has_cluster(directory) and no_directory(cluster) is None:
        below = Directory(cluster / COLLECTION_INDEXES)
        directory = below if below.has(INDEX) else directory
    return directory, next(filter(directory.has, INDEXES), None)


def has_cluster(directory: Directory) -> bool:
    """Whether a directory has an index, a manifest or shards."""
    return any(map(directory.has, (*INDEXES, MANIFEST))) or bool(directory.names(SHARD))


def location_names(index: str | None) -> list[str]:
    """The names that cluster.loc may have beside an index: its usual one, or that of the index.

    >>> location_names("crawl.idx"), location_names(None)
    (['cluster.loc', 'crawl.loc'], ['cluster.loc'])
    """
    own = [] if index is None else [re.sub(r"\.[^./]*$", "", index) + ".loc"]
    return list(dict.fromkeys([LOCATIONS, *own]))


def is_index_file(place: Location) -> bool:
    """Whether a path or URL is that of the index of a cluster, by its ending."""
    if not place.text.endswith(_INDEX_ENDINGS):
        return False
    found = None if place.is_remote else place.status()
    return found is None or not found.is_directory


Rule = tuple[str, str]
"""pywb's `match` and `replace`: a regular expression and its replacement turn the index's directory into that of the shards."""
Locations = Mapping[str, list[str]]
"""The locations of each shard by cluster.loc, best first."""

_NOT_LISTED = regex("[\t\r\n]")
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
    place.check_writable()
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
    >>> why_refused(locate("s3://b/C"), "s3a://b/cdx-00000.gz"), why_refused(locate("s3://b/C"), "cdx-00000.gz")
    ('', '')
    """
    if not directory.is_remote:
        return ""
    if _is_local(location):
        return "is a local path, and the cluster is remote"
    place = locate(location)
    if (bucket := _bucket(place)) is not None and bucket != _bucket(directory):
        return "is in another S3 bucket than the cluster, and requests to S3 have your signature"
    if place.scheme == "hdfs" != directory.scheme and directory.content_reach() == Reach.PUBLIC:
        return "is in HDFS, and the cluster is public"
    return ""


def _bucket(place: Location) -> str | None:
    return place.text.partition("://")[2].partition("/")[0] if place.scheme in ("s3", "s3a") else None


def _is_local(location: str) -> bool:
    return location.startswith(("/", "file:"))
