"""An open cluster: its secondary index, and bytes of its shards, the most recently used of which stay open."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from cdxmill.cluster.find import (
    Locations,
    Rule,
    check_rule,
    index_files,
    location_names,
    no_crawl,
    no_index,
    shard_locations,
    why_refused,
)
from cdxmill.cluster.manifest_file import manifest_beside, manifest_of_index, staged_manifest
from cdxmill.cluster.open_shards import OpenShard, OpenShards
from cdxmill.errors import AbsentError, CorruptError, InputError, OutageError, RefusedError
from cdxmill.formats.clusters.zipnum import (
    INDEX,
    LOCATIONS,
    MANIFEST,
    SUMMARY,
    NumberedBlock,
    number_of,
    parse_locations,
)
from cdxmill.stages.window import ReadAt
from cdxmill.stages.zipnum.block_pieces import ReadShard, Tables
from cdxmill.stages.zipnum.find_lines import BlockReader
from cdxmill.stages.zipnum.secondary_index import LOCAL_PAGE, REMOTE_PAGE, DamagedCluster, SecondaryIndex
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.optional import optional

if TYPE_CHECKING:
    from cdxmill.cluster.overlays import Overlay
    from cdxmill.formats.clusters.manifest import Manifest


_MOST_OPEN = 64
"""Shards that stay open."""
_TRIES = 5
"""How often a cluster is opened that is replaced or changed in that moment."""
UNCHECKED = 5.0
"""Seconds after which a read of a cluster at a URL asks again whether the cluster is the same: one request."""


class Replaced(InputError):
    """Another cluster is in the place of the one that is read."""


class ClusterReader:
    """An open cluster: `index` to search, `read` for the bytes of its shards. Made by `open_cluster`."""

    def __init__(
        self,
        cluster: str,
        index_file: Location,
        index: SecondaryIndex,
        rule: Rule | None,
        state: Entry | None,
    ) -> None:
        self.cluster, self.index = cluster, index
        self._index_file, self.state = index_file, state
        self.is_remote, self._directory = index_file.is_remote, index_file.parent
        self._rule, self._manifest_file = rule, index_file.parent / MANIFEST
        self._open, self.tables = OpenShards(_MOST_OPEN), Tables()
        self._checked = time.monotonic()
        self._listed: Entry | None = None
        index.check_last = self.check_last
        if not self.is_remote:
            self._locations  # noqa: B018 - reads it, so that a corrupt one is reported at once

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` of a shard; fewer at its end. Threads may share a reader.

        Raises InputError if no location of the shard can be read.
        """
        if self.is_remote and time.monotonic() - self._checked > UNCHECKED:
            self._checked = time.monotonic()
            self.check_unchanged()
        errors: dict[Location, InputError] = {}
        known = self._open.borrow(shard)
        if known is not None:
            try:
                return known.read_at(offset, size)
            except InputError as error:
                errors[known.place] = error
                self._open.remove(shard, known)
            finally:
                self._open.give_back(known)
        data = self._read_anew(shard, offset, size, errors)
        if data is not None:
            return data
        with suppress(OutageError):
            self.check_unchanged()
        raise self._with_refused(os.fsdecode(shard), next(iter(errors.values())))

    def _read_anew(
        self, shard: bytes, offset: int, size: int, errors: dict[Location, InputError]
    ) -> bytes | None:
        """The bytes from the first location that can be read; None if there is none. `errors` get why.

        Raises OutageError if cluster.loc, which may name further locations, cannot be read now.
        """
        try:
            for place in self._places(shard):
                if place not in errors:
                    try:
                        return self._open_and_read(shard, place, offset, size)
                    except InputError as error:
                        errors[place] = error
        except OutageError as error:
            outages = [one for one in errors.values() if isinstance(one, OutageError)]
            raise (*outages, error)[0] from None
        return None

    def _with_refused(self, shard: str, error: InputError) -> InputError:
        """The error, and the first location in cluster.loc that was not tried because others' content named it."""
        for location in self._locations.get(shard, []) if self._rule is None else []:
            if why := why_refused(self._directory, location):
                hint = f"{LOCATIONS} names {location}, which {why}; if you trust it, search with cdxmill lookup --shard-index-loc"
                return type(error)(error.path, error.reason, hint)
        return error

    def _open_and_read(self, shard: bytes, place: Location, offset: int, size: int) -> bytes:
        with ExitStack() as files:
            read_at = files.enter_context(open_known(place))
            if not self.is_remote:
                self.check_unchanged()
            data = read_at(offset, size)
            self._open.add(shard, OpenShard(place, read_at, files.pop_all()))
            return data

    def blocks(self, read: ReadShard | None = None) -> BlockReader:
        """A reader of blocks, by `read` or else by its own function. They share what is known of the blocks."""
        return BlockReader(read or self.read, tables=self.tables)

    def has_changed(self) -> bool:
        """Whether the index or cluster.json has changed since it was opened. At a URL it is asked seldom."""
        if self.is_remote and time.monotonic() - self._checked <= UNCHECKED:
            return False
        self._checked = time.monotonic()
        return self.has_other_index() or _is_other(self._manifest_file, self._listed)

    @property
    def version(self) -> tuple[Entry, Entry | None] | None:
        """The state of the index, and of the manifest, which lists overlays. None if a web server tells none."""
        return None if self.state is None else (self.state, self._listed)

    def has_other_index(self) -> bool:
        """Whether the index is another one than that which was opened."""
        return _is_other(self._index_file, self.state)

    def check_unchanged(self) -> None:
        """Raise Replaced if the cluster was replaced since it was opened: its shards are others now.

        The shards of one that was only changed (cluster/change) have names of their own.
        """
        if self.has_other_index() and not self._is_changed():
            raise Replaced(self.cluster, "it was replaced while it was read", "run it again")

    def _is_changed(self) -> bool:
        """Whether the cluster that is there now is this one after changes."""
        from cdxmill.formats.clusters.manifest import origin_of  # see manifest_beside

        own = self.__dict__.get("_manifest")  # if it is read now, it is that of the other cluster
        if own is None:
            return False
        now = manifest_beside(self._directory)
        return now is not None and origin_of(own) == origin_of(now)

    def close(self) -> None:
        """Close all open shards."""
        self._open.close()

    def block_lines(self) -> int | None:
        """The number of lines of a full block, None without a valid cluster.json."""
        return None if self._manifest is None else self._manifest.numlines

    def total_lines(self) -> int | None:
        """The number of lines in cluster.json, None without a valid one."""
        return None if self._manifest is None else self._manifest.lines

    def has_full_blocks(self) -> bool:
        """Whether all blocks are full but the last one of each shard: changes leave shorter and longer ones."""
        return self._manifest is None or not self._manifest.change

    def check_index(self) -> None:
        """Raise DamagedCluster if the index is out of order at its ends, or has not the blocks of cluster.json.

        Raises InputError if the cluster was replaced since it was opened.
        """
        try:
            self._check_index()
        finally:
            self.check_unchanged()

    def _check_index(self) -> None:
        self.index.check_ends()
        line = self.index.last_line()
        self._check_blocks(0 if line is None else number_of(line))

    def _check_blocks(self, found: int | None) -> None:
        """Compare the number of the last line with cluster.json, if there is one."""
        if self._index_file.name not in (INDEX, SUMMARY) or self._manifest is None:
            return
        if found == self._manifest.blocks:
            return
        staged = staged_manifest(self._directory)
        if staged is not None and found == staged.blocks:  # cluster.json follows in a moment
            self._manifest = staged
        elif self.has_other_index():
            raise Replaced(self.cluster, "it was replaced while it was read", "run it again")
        elif (now := manifest_beside(self._directory)) is not None and found == now.blocks:
            self._manifest = now
        else:
            raise DamagedCluster(
                f"the index has {'unnumbered' if found is None else found} blocks, but {MANIFEST} has"
                f" {self._manifest.blocks}: the index is truncated, or belongs to another cluster"
            )

    def check_last(self, last: NumberedBlock | None) -> None:
        """Raise DamagedCluster if the cluster has blocks after `last`, where the index ends; None: it is empty.

        Without cluster.json, a local shard shows whether its last block is the last one of the index.
        """
        self._check_blocks(last.number if last is not None else 0)
        if last is None or self.is_remote or self._manifest is not None:
            return
        block = last.block
        with suppress(InputError):  # reading the block reports it
            place = next(self._places(block.shard))
            found = None if place.is_remote else place.status()
            if found is not None and found.size > block.offset + block.length:
                raise DamagedCluster(
                    f"the index ends at {block.offset + block.length} of {block.shard.decode(errors='replace')},"
                    f" but the shard has {found.size} bytes: the index is truncated"
                )

    @cached_property
    def _manifest(self) -> Manifest | None:
        """A missing or corrupt one is not an error, unless there are overlays. During a change, it is that of the index."""
        manifest, self._listed = manifest_of_index(self._directory)
        return manifest

    @cached_property
    def overlays(self) -> list[Overlay]:
        """Its overlays. Raises InputError if cluster.json, which lists them, cannot be read."""
        if no_crawl(str(self._directory)) is not None:
            return []  # Common Crawl has no cluster.json, so it is not asked for
        if self._manifest is not None and not self._manifest.overlays:
            return []
        from cdxmill.cluster.overlays import overlays_of  # see manifest_beside

        return overlays_of(self._directory, self._manifest)

    def _places(self, shard: bytes) -> Iterator[Location]:
        """The locations of a shard. Remote files are not checked before they are read: that would cost requests."""
        return shard_locations(
            self._directory,
            os.fsdecode(shard),
            self._rule,
            lambda: self._locations,
            lambda name: self.is_remote or (self._directory / name).exists(),
        )

    @cached_property
    def _locations(self) -> Locations:
        """The rows of cluster.loc. Raises InputError if a local one cannot be read, OutageError if the storage does not answer."""
        for name in location_names(self._index_file.name):
            place = self._directory / name
            if not self.is_remote and not place.exists():
                continue
            try:
                with optional():
                    return dict(parse_locations(place.read_bytes()).rows)
            except (AbsentError, RefusedError):
                if not self.is_remote:
                    raise
            except InputError as error:
                if not self.is_remote or isinstance(error, OutageError):
                    raise
                return {}
        return {}


def _is_other(file: Location, known: Entry | None) -> bool:
    """Whether a file is another one than that whose entry is known. False if no entry is known, or now refused by a web server."""
    if known is None:
        return False
    found = file.status()
    return found != known and (found is not None or file.properties.can_write)


@contextmanager
def open_cluster(cluster: PathOrUrl, rule: Rule | None = None) -> Iterator[ClusterReader]:
    """Open the cluster at a path or URL: its directory, the collection above, or its index file.

    With a `rule` its shards are in another directory. Raises UsageError if there is no cluster, InputError if it
    cannot be read or is corrupt, also inside the `with`.
    """
    place = locate(cluster)
    if rule is not None:
        check_rule(rule)
    with ExitStack() as files, damage_as_input_error(place.text):
        yield _opened(place, rule, files)


def _opened(place: Location, rule: Rule | None, files: ExitStack) -> ClusterReader:
    """Open a cluster. If it is replaced or changed in that moment, it is opened again."""
    for tries in range(_TRIES):
        with ExitStack() as attempt:
            index_file, read_at, size, state = _open_index(place, attempt)
            index = SecondaryIndex(read_at, size, REMOTE_PAGE if place.is_remote else LOCAL_PAGE)
            reader = ClusterReader(place.text, index_file, index, rule, state)
            attempt.callback(reader.close)
            try:
                if not reader.is_remote:  # a remote check would cost three requests
                    reader.check_index()
                    reader.overlays  # noqa: B018 - reads cluster.json
                    if reader.has_other_index():  # cluster.json may be newer
                        raise Replaced(reader.cluster, "it is being changed", "run it again")
            except Replaced:
                if tries + 1 == _TRIES:
                    raise
                continue
            files.push(attempt.pop_all())
            return reader
    raise AssertionError("not reached")


@contextmanager
def damage_as_input_error(cluster: str) -> Iterator[None]:
    """Turn DamagedCluster into CorruptError, an InputError."""
    try:
        yield
    except DamagedCluster as error:
        raise CorruptError(cluster, str(error), error.hint) from None


def open_known(place: Location) -> AbstractContextManager[ReadAt]:
    """Open a file. At a URL, there is no first request that asks whether it exists."""
    if not place.is_remote:
        return place.open_ranges()
    from cdxmill.storage import cache  # slow to import, and only remote files need it

    return cache.open_known(place)


def _open_index(cluster: Location, files: ExitStack) -> tuple[Location, ReadAt, int, Entry | None]:
    """The index, its `read_at`, its size in bytes, and its state; None if a web server tells none."""
    refused: InputError | None = None
    for place in index_files(cluster):
        if not place.is_remote:
            found = place.status()
            if found is not None:
                return place, files.enter_context(place.open_ranges()), found.size, found
            continue
        from cdxmill.storage.cache import open_cached  # slow to import, and only remote files need it

        try:
            with optional():
                ranges = files.enter_context(open_cached(place))
        except AbsentError:
            continue
        except RefusedError as error:  # S3 without the right to list answers so for a missing file, too
            refused = refused or error
            continue
        if ranges.size is None:
            raise InputError(place.text, "the server does not report the file size", "download the cluster")
        return place, ranges.read_at, ranges.size, ranges.entry
    raise refused or no_index(cluster)
