"""A cluster at a path or URL, opened for questions: its secondary index, and bytes of its shards."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import NamedTuple

from cdxmill.cluster.locations import Locations, Rule, check_rule, shard_locations
from cdxmill.errors import AbsentError, InputError, RefusedError, UsageError
from cdxmill.formats.zipnum_index import (
    INDEX,
    LOCATIONS,
    MANIFEST,
    SUMMARY,
    number_of,
    parse_locations,
    part_name,
)
from cdxmill.stages.zipnum.secondary_index import LOCAL_PAGE, REMOTE_PAGE, DamagedCluster, SecondaryIndex
from cdxmill.storage.choose import PathOrUrl, exists, is_remote, join, open_ranges, read_bytes, status

INDEXES = (INDEX, SUMMARY, "all.idx", f"indexes/{INDEX}")
"""Names that clusters are published with, in the order in which they are looked for."""
_INDEX_ENDINGS = (".idx", ".summary")
_OPEN = 64
"""Shards that are held open."""


class _Shard(NamedTuple):
    place: str
    read_at: Callable[[int, int], bytes]
    files: ExitStack


class ClusterReader:
    """An open cluster: `index` to search, `read` for the bytes of its shards. Made by `open_cluster`."""

    def __init__(
        self,
        cluster: str,
        index_file: str,
        index: SecondaryIndex,
        rule: Rule | None,
    ) -> None:
        self.cluster, self.index = cluster, index
        self.is_remote = is_remote(index_file)
        self._index_file, self._rule = index_file, rule
        self._folder = os.path.dirname(index_file) or "."  # noqa: PTH120 - may be a URL
        self._open: OrderedDict[bytes, _Shard] = OrderedDict()
        self._locations: Locations | None = None
        if not self.is_remote:
            self._known_locations()

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` of a shard; fewer where it ends. Raises InputError where no place has them."""
        known = self._open.get(shard)
        errors: dict[str, InputError] = {}
        if known is not None:
            try:
                return known.read_at(offset, size)
            except InputError as error:
                errors[known.place] = error
                self._let_go(shard, known)
        for place in self._places(shard):
            if place in errors:
                continue
            with ExitStack() as files:
                try:
                    read_at = files.enter_context(_open_shard(place))
                    data = read_at(offset, size)
                except InputError as error:
                    errors[place] = error
                    continue
                self._hold(shard, _Shard(place, read_at, files.pop_all()))
                return data
        raise next(iter(errors.values()))

    def close(self) -> None:
        """Close what is open of the shards."""
        while self._open:
            self._open.popitem()[1].files.close()

    def block_lines(self) -> int | None:
        """Lines that a full block has, where cluster.json is there to tell."""
        return self._told("numlines")

    def check_index(self) -> None:
        """Raise DamagedCluster where the index is out of order at its ends, or has not the blocks of cluster.json."""
        self.index.check_ends()
        if os.path.basename(self._index_file) not in (INDEX, SUMMARY):  # noqa: PTH119 - may be a URL
            return
        last = self.index.last_line()
        have, want = number_of(last) if last else 0, self._told("blocks")
        if None not in (have, want) and have != want:
            raise DamagedCluster(f"the index has {have} blocks, {MANIFEST} {want}: it is cut, or another's")

    def _told(self, field: str) -> int | None:
        """A number of cluster.json, where that is there."""
        place = join(self._folder, MANIFEST)
        with suppress(InputError, ValueError, LookupError, TypeError):
            from cdxmill.formats.cluster_manifest import parse_manifest  # where there is one

            if self.is_remote or exists(place):
                return int(parse_manifest(read_bytes(place))[field])
        return None

    def _hold(self, shard: bytes, opened: _Shard) -> None:
        if shard in self._open:  # another thread was first
            opened.files.close()
            return
        while len(self._open) >= _OPEN:
            self._open.popitem(last=False)[1].files.close()
        self._open[shard] = opened

    def _let_go(self, shard: bytes, opened: _Shard) -> None:
        if self._open.get(shard) is opened:  # else another thread was first
            del self._open[shard]
            opened.files.close()

    def _places(self, shard: bytes) -> Iterator[str]:
        """Where a shard may be; a file behind a network is not asked for before it is read."""
        return shard_locations(
            self._folder,
            os.fsdecode(shard),
            self._rule,
            self._known_locations,
            lambda name: self.is_remote or exists(join(self._folder, name)),
        )

    def _known_locations(self) -> Locations:
        if self._locations is None:
            self._locations = self._read_locations()
        return self._locations

    def _read_locations(self) -> Locations:
        own = re.sub(r"\.[^./]*$", "", self._index_file) + ".loc"
        for place in dict.fromkeys((join(self._folder, LOCATIONS), own)):
            if not self.is_remote and not exists(place):
                continue
            try:
                return parse_locations(read_bytes(place))
            except InputError as error:
                if not self.is_remote:
                    raise
                if not isinstance(error, AbsentError | RefusedError):
                    return {}
        return {}


@contextmanager
def open_cluster(cluster: PathOrUrl, rule: Rule | None = None) -> Iterator[ClusterReader]:
    """The cluster whose folder, or whose index, is at a path or URL; by a `rule` its shards are elsewhere.

    Raises UsageError where no cluster is there, InputError where it cannot be read or, also in the `with`,
    is damaged.
    """
    cluster = str(cluster)
    if rule is not None:
        check_rule(rule)
    with ExitStack() as files, damage_told(cluster):
        index_file, read_at, size = _open_index(cluster, files)
        index = SecondaryIndex(read_at, size, REMOTE_PAGE if is_remote(cluster) else LOCAL_PAGE)
        reader = ClusterReader(cluster, index_file, index, rule)
        files.callback(reader.close)
        if not reader.is_remote:  # behind a network it would cost three requests
            reader.check_index()
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
        except AbsentError:
            continue
        except RefusedError as error:  # S3 without the right to list answers so for a missing file, too
            refused = refused or error
            continue
        if ranges.size is None:
            raise InputError(place, "the server does not tell the size", "fetch the cluster")
        return place, ranges.read_at, ranges.size
    if refused is not None:
        raise refused
    if not is_remote(cluster) and exists(join(cluster, part_name(0))):
        raise InputError(cluster, f"it has no {INDEX}", "cdxmill publish --unfinished makes one of its parts")
    raise UsageError(f"{cluster}: not a ZipNum cluster (no {INDEX} or {SUMMARY})")
