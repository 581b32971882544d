"""The collections of a server: a name, and a cluster that stays open and follows its changes."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice

from cdxmill.cluster.reader import ClusterReader
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum import BLOCK_LINES
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.kept import KeptCluster
from cdxmill.search.query import OpenCluster, Pages, PreparedQuery, count_pages, no_page
from cdxmill.search.sources import Source
from cdxmill.server.access import Access
from cdxmill.server.answers import RequestError, bad_request
from cdxmill.server.patterns import compile_safely
from cdxmill.server.watch import Watch, watched


class Inquiry:
    """A question to a collection that was checked: it can be answered now, or in another thread. Raises RequestError."""

    def __init__(self, collection: Collection, url: str | KeyRange, query: Query, watch: Watch) -> None:
        self.collection, self.query, self.watch = collection, query, watch
        self._page = query.page
        access = collection.access
        try:
            prepared = PreparedQuery(query, None, None, compile_safely)
            self.keys = prepared.keys(url) if isinstance(url, str) else url
            self._is_guarded = access is not None and access.touches(self.keys)
            if access is not None and self._is_guarded:
                query = query if self._page is None else _whole(query)
                prepared = PreparedQuery(query, None, access.visible(), compile_safely)
        except UsageError as error:
            raise bad_request(str(error)) from None
        self._prepared = prepared

    @property
    def is_quick(self) -> bool:
        """Whether each piece of the answer takes a block or two of a local cluster."""
        query = self.query
        is_sorted = query.sort in ("reverse", "newest") or (query.closest is not None and query.limit is None)
        return self.collection.is_local and not is_sorted and self._page is None

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
        with self.collection.opened(self.watch) as cluster:
            try:
                yield from self._of_page(cluster)
            except UsageError as error:
                raise bad_request(str(error)) from None

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

    def count(self) -> int:
        """The number of lines."""
        with self.collection.opened(self.watch) as cluster:
            return self._prepared.count(cluster, self.keys)

    def pages(self) -> Pages:
        """The number of pages."""
        with self.collection.opened(self.watch) as cluster:
            size = self.query.page_size
            if not self._is_guarded:
                return count_pages(cluster, self.keys, size)
            lines, most = self._prepared.count(cluster, self.keys), _lines_of_page(cluster, size)
            return Pages(-(-lines // most), size, -(-lines * size // most))


def _whole(query: Query) -> Query:
    from dataclasses import replace

    return replace(query, page=None)


def _lines_of_page(cluster: OpenCluster, size: int) -> int:
    return size * (cluster.reader.block_lines() or BLOCK_LINES)


class Collection:
    """A cluster under a name. It is opened by the first question."""

    def __init__(self, name: str, source: Source, access: Access | None, title: str = "") -> None:
        self.name, self.title, self.source, self.access = name, title or name, source, access
        self.is_local = not source.crawl and "://" not in source.name
        self._lock = threading.Lock()
        self._kept: KeptCluster | None = None

    def kept(self) -> KeptCluster:
        """The open cluster."""
        with self._lock:
            if self._kept is None:
                self._kept = KeptCluster(self.source.cluster)
            return self._kept

    def opened(self, watch: Watch) -> _Opened:
        """The cluster, for one answer."""
        return _Opened(self.kept(), watch)

    def close(self) -> None:
        """Close the files."""
        if self._kept is not None:
            self._kept.close()

    def tag(self, question: bytes) -> bytes | None:
        """What changes if the answer to a question may have changed; None if that is not known."""
        if not self.is_local or (self.access is not None and not self.access.is_fixed):
            return None
        with self.kept().opened() as cluster:
            reader = cluster.reader
            if not isinstance(reader, ClusterReader) or reader.state is None:
                return None
            state = repr(reader.state).encode("utf-8", "surrogateescape")
        return b'W/"%08x%08x"' % (zlib.crc32(state), zlib.crc32(question))


class _Opened:
    """The `with` statement of a cluster that is read for one answer."""

    def __init__(self, kept: KeptCluster, watch: Watch) -> None:
        self._opened, self._watch = kept.opened(), watch

    def __enter__(self) -> OpenCluster:
        return watched(self._opened.__enter__(), self._watch)

    def __exit__(self, *error: object) -> None:
        self._opened.__exit__(*error)  # type: ignore[arg-type]


def named(collections: Mapping[str, Collection], name: str) -> Collection:
    """The collection of a name. Raises RequestError."""
    if name not in collections:
        raise RequestError(404, f"there is no collection {name!r}; see /collinfo.json")
    return collections[name]
