"""A cluster at a path or URL, opened for questions: its secondary index, and bytes of its shards."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from cdxmill.commands.publish import INDEX, LOCATIONS, MANIFEST, SUMMARY
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.zipnum_index import parse_locations
from cdxmill.stages.secondary_index import LOCAL_PAGE, REMOTE_PAGE, DamagedCluster, SecondaryIndex
from cdxmill.storage.choose import Place, exists, is_remote, join, open_ranges, read_bytes, status

INDEXES = (INDEX, SUMMARY, "all.idx", f"indexes/{INDEX}")
"""Names that clusters are published with, in the order in which they are looked for."""
_INDEX_ENDINGS = (".idx", ".summary")
_SHARD_ENDINGS = ("", ".gz", ".cdx.gz")
"""Some indexes name shards without them."""
_OPEN = 64
"""Shards that are held open."""
_ABSENT = re.compile(r"\((40[34]|410)\b|No such file|\babsent\b|not found", re.I)


class ClusterReader:
    """An open cluster: `index` to search, `read` for the bytes of its shards. Made by `open_cluster`."""

    def __init__(
        self,
        cluster: str,
        index_file: str,
        index: SecondaryIndex,
        rule: tuple[str, str] | None,
        files: ExitStack,
    ) -> None:
        self.cluster, self.index = cluster, index
        self.is_remote = is_remote(index_file)
        self._index_file, self._rule, self._files = index_file, rule, files
        self._folder = os.path.dirname(index_file) or "."  # noqa: PTH120 - may be a URL
        self._open: OrderedDict[bytes, tuple[Callable[[int, int], bytes], ExitStack]] = OrderedDict()
        self._locations: dict[bytes, list[str]] | None = None
        if not self.is_remote:
            self._locations = self._read_locations()

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` of a shard; fewer where it ends. Raises InputError."""
        known = self._open.get(shard)
        if known is not None:
            return known[0](offset, size)
        first: InputError | None = None
        for place in self._places(shard):
            files = ExitStack()
            try:
                read_at = files.enter_context(_open_shard(place))
                data = read_at(offset, size)
            except InputError as error:
                files.close()
                first = first or error
                continue
            self._hold(shard, read_at, files)
            return data
        assert first is not None, "there is always a place to look at"
        raise first

    def close(self) -> None:
        """Close what is open of the shards."""
        while self._open:
            self._open.popitem()[1][1].close()

    def block_lines(self) -> int | None:
        """Lines that a full block has, where cluster.json is there to tell."""
        place = join(self._folder, MANIFEST)
        with suppress(InputError, ValueError):
            from cdxmill.formats.cluster_manifest import parse_manifest  # for estimates alone

            if self.is_remote or exists(place):
                return int(parse_manifest(read_bytes(place))["numlines"])
        return None

    def _hold(self, shard: bytes, read_at: Callable[[int, int], bytes], files: ExitStack) -> None:
        if shard in self._open:  # another thread was first
            files.close()
            return
        while len(self._open) >= _OPEN:
            self._open.popitem(last=False)[1][1].close()
        self._open[shard] = read_at, files

    def _places(self, shard: bytes) -> Iterator[str]:
        """Where a shard may be, best first: by the rule, else beside the index, then where cluster.loc has it."""
        name = os.fsdecode(shard)
        if self._rule is not None:
            yield re.sub(self._rule[0], self._rule[1], f"{self._folder}/") + name
            return
        beside = join(self._folder, name)
        if self.is_remote or exists(beside):
            yield beside
        if self._locations is None:
            self._locations = self._read_locations()
        listed = [self._resolved(place) for place in self._locations.get(shard, ())]
        yield from listed
        for ending in _SHARD_ENDINGS[1:]:
            if not listed and not name.endswith(".gz") and (self.is_remote or exists(beside + ending)):
                yield beside + ending
        yield beside

    def _resolved(self, place: str) -> str:
        return place if is_remote(place) or place.startswith(("/", "file:")) else join(self._folder, place)

    def _read_locations(self) -> dict[bytes, list[str]]:
        own = re.sub(r"\.[^./]*$", "", self._index_file) + ".loc"
        for place in dict.fromkeys((join(self._folder, LOCATIONS), own)):
            if not self.is_remote and not exists(place):
                continue
            try:
                return parse_locations(read_bytes(place))
            except InputError as error:
                if not self.is_remote:
                    raise
                if not _is_absent(error):
                    return {}
        return {}


@contextmanager
def open_cluster(cluster: Place, rule: tuple[str, str] | None = None) -> Iterator[ClusterReader]:
    """The cluster whose folder, or whose index, is at a path or URL.

    `rule` is pywb's `match` and `replace`, which make of the index's folder that of the shards. Raises
    UsageError where no cluster is there, InputError where it cannot be read or, also in the `with`, is damaged.
    """
    cluster = str(cluster)
    if rule is not None:
        _check_rule(rule)
    with ExitStack() as files, damage_told(cluster):
        index_file, read_at, size = _open_index(cluster, files)
        index = SecondaryIndex(read_at, size, REMOTE_PAGE if is_remote(cluster) else LOCAL_PAGE)
        if not is_remote(cluster):  # behind a network it would cost two requests
            index.check_ends()
        reader = ClusterReader(cluster, index_file, index, rule, files)
        files.callback(reader.close)
        yield reader


@contextmanager
def damage_told(cluster: str) -> Iterator[None]:
    """What is wrong with a cluster becomes InputError."""
    try:
        yield
    except DamagedCluster as error:
        raise InputError(cluster, str(error), "verify it, or build the cluster again") from None


def _open_shard(place: str) -> AbstractContextManager[Callable[[int, int], bytes]]:
    if not is_remote(place):
        return open_ranges(place)
    from cdxmill.storage.cache import open_known

    return open_known(place)


def _check_rule(rule: tuple[str, str]) -> None:
    try:
        re.sub(rule[0], rule[1], "folder/")
    except (re.error, IndexError) as error:
        raise UsageError(
            f"--shard-index-loc {rule[0]!r} {rule[1]!r}: no regular expression ({error})"
        ) from None


def _open_index(cluster: str, files: ExitStack) -> tuple[str, Callable[[int, int], bytes], int]:
    """The index's path or URL, what reads it, and its size."""
    names = [cluster] if cluster.endswith(_INDEX_ENDINGS) else [join(cluster, name) for name in INDEXES]
    refused: InputError | None = None
    for place in names:
        if not is_remote(place):
            found = status(place)
            if found is not None and not (found.is_folder and len(names) == 1):
                return place, files.enter_context(open_ranges(place)), found.size
            continue
        from cdxmill.storage.cache import open_cached  # slow to import, and only for what is behind a network

        try:
            ranges = files.enter_context(open_cached(place))
        except InputError as error:
            if not _is_absent(error):
                raise
            refused = refused or (error if "(403" in error.reason else None)
            continue
        if ranges.size is None:
            raise InputError(place, "the server does not tell the size", "fetch the cluster")
        return place, ranges.read_at, ranges.size
    if refused is not None:
        raise refused
    raise UsageError(f"{cluster}: not a ZipNum cluster (no {INDEX} or {SUMMARY})")


def _is_absent(error: InputError) -> bool:
    return _ABSENT.search(error.reason) is not None
