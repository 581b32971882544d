"""A path or URL that a user gave -> the directory of a cluster and its index. All commands look here."""

from __future__ import annotations

import re
from contextlib import suppress

from cdxmill.cluster.crawls import no_crawl
from cdxmill.errors import CdxmillError, InputError, RefusedError, UsageError
from cdxmill.formats.clusters.zipnum_index import (
    INDEX,
    LOCATIONS,
    MANIFEST,
    SHARD,
    SUMMARY,
    part_name,
    shard_name,
)
from cdxmill.storage.location import Location, PathOrUrl, join, locate

INDEXES = (INDEX, SUMMARY, "all.idx")
"""File names of an index, in the order in which commands look for them."""
COLLECTION_INDEXES = "indexes"
"""The directory of the index in a collection, as pywb and Common Crawl lay it out."""
SWITCHED = ".new/.replaces.json"
"""What the directory of a cluster on S3 has while it is replaced: see cluster/switch."""
_INDEX_ENDINGS = (".idx", ".summary")


class Directory:
    """The files of a directory at a path or URL. A server without listings is asked for each name."""

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/") or "/"
        self._place = locate(self.path)
        self._listed = set(self._place.entries()) if self._place.properties.can_write else None
        self._asked: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        if self._listed is not None:
            return name in self._listed
        if name not in self._asked:
            self._asked[name] = (self._place / name).exists()
        return self._asked[name]

    def file(self, name: str) -> str:
        """The path or URL of a file."""
        return join(self.path, name)

    def names(self, pattern: re.Pattern[str]) -> list[str]:
        """The listed files whose names match; none where the server has no listings."""
        return [name for name in self._listed or () if pattern.fullmatch(name)]


def index_files(cluster: Location) -> list[Location]:
    """Where the index of a cluster may be, best first. `cluster` may be an index file."""
    if is_index_file(cluster):
        return [cluster]
    return [cluster / name for name in (*INDEXES, f"{COLLECTION_INDEXES}/{INDEX}")]


def find_index(cluster: str) -> str:
    """The path or URL of a cluster's index. Raises UsageError or InputError if it has none."""
    refused: InputError | None = None
    for place in index_files(locate(cluster)):
        try:
            if place.exists():
                return place.text
        except RefusedError as error:  # S3 without the right to list answers so for a missing file, too
            refused = refused or error
    raise refused or no_index(cluster)


def no_index(cluster: str) -> CdxmillError:
    """The error for a cluster without an index. A directory without shards is no cluster."""
    if is_switched(cluster):
        reason = "is being replaced, so there is no index"
        return InputError(cluster, reason, "run it again when the run that replaces it has ended")
    directory = Directory(cluster)
    if directory.has(part_name(0)):
        return InputError(cluster, f"has no {INDEX}", "create it with cdxmill publish --unfinished")
    if directory.names(SHARD) or directory.has(shard_name(0)) or directory.has(MANIFEST):
        return InputError(cluster, f"has no {INDEX}", "build the cluster again")
    return not_a_cluster(cluster, f"{INDEX} or {SUMMARY}")


def is_switched(cluster: str) -> bool:
    """Whether the files of two clusters are in the directory, because the cluster is being replaced on S3."""
    with suppress(InputError):
        place = locate(cluster)
        return not place.properties.has_directories and (place / SWITCHED).exists()
    return False


def not_a_cluster(cluster: str, files: str) -> UsageError:
    """The error for a path or URL without any of these `files`, or for a path at which there is nothing."""
    directory = locate(cluster).directory
    if directory is not None and not directory.exists():
        return UsageError(f"{cluster}: not a ZipNum cluster (no such file or directory); check the path")
    return no_crawl(cluster) or UsageError(f"{cluster}: not a ZipNum cluster (no {files})")


def find_directory(cluster: str) -> tuple[Directory, str | None]:
    """The directory of a cluster's files and the name of its index, None if it has no index.

    A directory without cluster files may be a collection, which has them in `indexes`.
    """
    place = locate(cluster)
    if is_index_file(place):
        directory = Directory(place.parent.text)
        return directory, place.name if directory.has(place.name) else None
    directory = Directory(cluster)
    if not has_cluster(directory):
        below = Directory(join(cluster, COLLECTION_INDEXES))
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


def is_index_file(path: PathOrUrl) -> bool:
    """Whether a path or URL is that of the index of a cluster, by its ending."""
    place = locate(path)
    if not place.text.endswith(_INDEX_ENDINGS):
        return False
    found = None if place.is_remote else place.status()
    return found is None or not found.is_directory
