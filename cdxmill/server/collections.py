"""The collections of a server: a name, and clusters that stay open and follow their changes. Several are asked as one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import islice

from cdxmill.cluster.reader import ClusterReader
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum import BLOCK_LINES
from cdxmill.formats.lines.capture_fields import Fields, parse_fields
from cdxmill.formats.lines.lookup_query import KeyRange, Passes
from cdxmill.options.queries import Query
from cdxmill.search.kept import HeldCluster, KeptCluster
from cdxmill.search.opened import BlockSource, OpenCluster, no_page
from cdxmill.search.query import Pages, PreparedQuery, count_pages
from cdxmill.search.sources import Source
from cdxmill.server.access import Access
from cdxmill.server.answers import bad_request
from cdxmill.server.patterns import compile_safely
from cdxmill.server.watch import Watch, watched
from cdxmill.stages.zipnum.kept_texts import BlockMemory
from cdxmill.storage.location import locate

_FEW = 1000
"""Lines that are put in order at once, while other requests wait."""
_FRESH_SECONDS = 0.01
"""The time for which kept answers may be older than their cluster."""
_FEW_CLUSTERS = 4
"""Clusters of which blocks are read at once, while other requests wait."""


def prepare(query: Query, visible: Passes | None = None) -> PreparedQuery:
    """A checked query, whose patterns may be those of a stranger. Raises RequestError."""
    try:
        return PreparedQuery(query, None, visible, compile_safely)
    except UsageError as error:
        raise bad_request(str(error)) from None


class Inquiry:
    """A question to a collection that was checked: it can be answered now, or in another thread. Raises RequestError."""

    def __init__(
        self, collection: Collection, url: str | KeyRange, prepared: PreparedQuery, watch: Watch
    ) -> None:
        self.collection, self.query, self.watch = collection, prepared.query, watch
        self._page = self.query.page
        self.state: bytes | None = None
        """That of the collection when it was read."""
        access = collection.access
        try:
            self.keys = prepared.keys(url) if isinstance(url, str) else url
        except UsageError as error:
            raise bad_request(str(error)) from None
        self._is_guarded = access is not None and access.touches(self.keys)
        if access is not None and self._is_guarded:
            prepared = prepare(replace(self.query, page=None), access.visible())
        # what is found out about fields is true of one collection
        self._prepared = copy(prepared) if prepared.unknown else prepared

    @property
    def is_quick(self) -> bool:
        """Whether each piece of the answer takes a block or two of a local cluster."""
        query = self.query
        is_near = (
            query.limit is not None
            and query.limit <= _FEW
            and self.keys.is_one_url
            and not (query.collapse or query.resolve_revisits)
        )
        is_sorted = query.sort in ("reverse", "newest") or (query.closest is not None and not is_near)
        is_simple = not is_sorted and self._page is None and len(self.collection.sources) <= _FEW_CLUSTERS
        return is_simple and self.collection.is_near

    @property
    def is_plain(self) -> bool:
        """Whether all lines of one URL are the answer, so that the first one is found at once."""
        return self.keys.is_one_url and not (self.query.filter or self._is_guarded)

    @property
    def header(self) -> bytes | None:
        """The line before all others, if the format has one."""
        return self._prepared.header

    def lists(self) -> Iterator[list[bytes]]:
        """The printed lines. Raises RequestError if the page does not exist, or a field."""
        with self.collection.opened(self.watch) as (cluster, self.state):
            try:
                yield from self._of_page(cluster)
            except UsageError as error:
                raise bad_request(self.collection.without_paths(str(error))) from None

    def _of_page(self, cluster: OpenCluster) -> Iterator[list[bytes]]:
        lists = self._prepared.answer(cluster, self.keys)
        if self._page is None or not self._is_guarded:
            return lists
        return self._visible_page(lists, self._page, _lines_of_page(cluster, self.query.page_size))

    def _visible_page(self, lists: Iterator[list[bytes]], page: int, size: int) -> Iterator[list[bytes]]:
        """The lines of a page, of those that may be seen: blocks would show how many are hidden."""
        lines = (line for some in lists for line in some)
        taken = islice(lines, page * size, (page + 1) * size)
        first = next(taken, None)
        if first is None and page:
            raise no_page(page)
        yield [] if first is None else [first, *taken]

    def captures(self) -> Iterator[Fields]:
        """The fields of the lines. Raises as `lists`, and ValueError for a line that cannot be parsed."""
        return (parse_fields(line) for lines in self.lists() for line in lines)

    def pages(self) -> Pages:
        """The number of pages."""
        with self.collection.opened(self.watch) as (cluster, self.state):
            size = self.query.page_size
            if not self._is_guarded:
                return count_pages(cluster, self.keys, size)
            lines, most = self._prepared.count(cluster, self.keys), _lines_of_page(cluster, size)
            return Pages(-(-lines // most), size, -(-lines * size // most))


def _lines_of_page(cluster: OpenCluster, size: int) -> int:
    return size * (cluster.reader.block_lines() or BLOCK_LINES)


class Collection:
    """Clusters under a name. They are opened by the first question."""

    def __init__(
        self,
        name: str,
        sources: Sequence[Source],
        access: Access | None,
        memory: BlockMemory | None = None,
    ) -> None:
        self.name, self.sources, self.access = name, sources, access
        self.is_local = not any(locate(one.cluster).is_remote for one in sources)
        self._lock = threading.Lock()
        self._kept: list[KeptCluster] = []
        self._last_state: tuple[list[object | None], bytes] = ([], b"")
        self._seen: bytes | None = None
        self._look_again = 0.0
        self._memory = memory

    @contextmanager
    def opened(self, watch: Watch) -> Iterator[tuple[OpenCluster, bytes | None]]:
        """The open clusters as one, for one answer, and their `state`."""
        taken: list[tuple[KeptCluster, HeldCluster]] = []
        try:
            self.open()
            taken.extend((one, one.take()) for one in self._kept)
            clusters = [held.reader for _, held in taken]
            yield watched(clusters, watch), self._state(map(_version_of, clusters))
        finally:
            for one, held in taken:
                one.give_back(held)

    def open(self) -> None:
        """Open what is not open yet."""
        if self._is_open:
            return
        with self._lock:
            for source in self.sources[len(self._kept) :]:
                self._kept.append(KeptCluster(source.cluster, memory=self._memory))

    @property
    def is_near(self) -> bool:
        """Whether its files are open on this machine. To open a file of lines that are not sorted takes long."""
        return self.is_local and self._is_open and not any(one.has_to_open for one in self._kept)

    @property
    def _is_open(self) -> bool:
        return len(self._kept) == len(self.sources)

    @property
    def has_report(self) -> bool:
        """Whether a report of it may be made and shown."""
        return self.access is None and self.is_local and not any(one.has_lines for one in self.sources)

    def without_paths(self, text: str) -> str:
        """A message with the name of the collection in place of paths on this machine."""
        for source in self.sources:
            text = text.replace(source.cluster, self.name)
        return text

    def close(self) -> None:
        """Close the files."""
        for one in self._kept:
            one.close()

    def state(self) -> bytes | None:
        """What is another one if an answer may be another one; None if that is not known, or it is not open yet.

        The clusters are looked at every hundredth of a second at most: that takes as long as a tenth of a kept answer.
        """
        now = time.monotonic()
        if self._seen is None or now >= self._look_again:
            self._seen = self._state(one.version() for one in self._kept) if self.is_near else None
            self._look_again = now + _FRESH_SECONDS
        return self._seen

    @property
    def _has_state(self) -> bool:
        return self.is_local and (self.access is None or self.access.is_fixed)

    def _state(self, found: Iterable[object | None]) -> bytes | None:
        if not self._has_state or None in (versions := list(found)):
            return None
        last, state = self._last_state
        if last != versions:
            state = b"%r" % (versions,)
            self._last_state = versions, state
        return state


def _version_of(cluster: BlockSource) -> object | None:
    return cluster.version if isinstance(cluster, ClusterReader) else None
