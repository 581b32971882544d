"""Questions to a cluster: `lookup`, `lookup_many`, `get`, and `Cluster`, which answers many of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from types import TracebackType
from typing import NamedTuple, TypedDict, Unpack

from cdxmill.api.archives import capture_fields
from cdxmill.api.arguments import Path, check_names, optional_path, text_list
from cdxmill.api.results import CapturedRecord
from cdxmill.capture import Record
from cdxmill.cluster.archive_index import archives_of
from cdxmill.commands.get import (
    RecordRange,
    capture_with_payload,
    errors_reported,
    fetch_capture,
    find_capture,
)
from cdxmill.commands.lookup import lookup_many as lookup_many_lines
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.search.field_names import BlockSource
from cdxmill.search.open import open_searched
from cdxmill.search.query import PAGE_SIZE, AnswerPage, OpenCluster, PreparedQuery, Query
from cdxmill.stages.captures.select_records import timestamp_of
from cdxmill.stages.records.decode_payload import decode_payload
from cdxmill.stages.records.fetch_record import FetchedRecord
from cdxmill.stages.records.record_parts import record_parts

Capture = dict[str, str]


class Filters(TypedDict, total=False):
    """What a question may say besides the URL. docs/lookup.md describes each as an option of the command."""

    match_type: str
    from_ts: str
    to: str
    filter: str | Iterable[str]
    collapse: str
    resolve_revisits: bool
    sort: str
    closest: str
    limit: int
    page: int
    page_size: int


def lookup(cluster: Path, url: str, **filters: Unpack[Filters]) -> Iterator[Capture]:
    """Yield the captures of `url` in `cluster` as dictionaries with the field names of pywb's CDX server.

    `cluster` is the directory or URL of a ZipNum cluster, or of its index file. `url` is a URL, a prefix
    (`example.com/*`) or a domain (`*.example.com`). All values are text. Raises UsageError if the question is
    invalid or there is no cluster, InputError if the cluster cannot be read or is corrupt.
    """
    query = _query(filters)
    keys = query.keys(url)
    return _lookup(os.fspath(cluster), query, keys)


def _lookup(cluster: str, query: PreparedQuery, keys: KeyRange) -> Iterator[Capture]:
    with Cluster(cluster) as opened:
        for lines in opened._answer(query, keys):
            yield from _captures_of(cluster, lines)


def _captures_of(cluster: str, lines: list[bytes]) -> Iterator[Capture]:
    """The fields of lines. Raises InputError at a line that cannot be parsed."""
    for line in lines:
        try:
            yield capture_fields(line)
        except (ValueError, RecursionError) as error:
            raise InputError(cluster, str(error)) from None


def lookup_many(
    cluster: Path, urls: Iterable[str], **filters: Unpack[Filters]
) -> Iterator[tuple[str, list[Capture]]]:
    """Yield (URL, its captures) for each of `urls`, in their order.

    If all URLs are exact, each block is read once. Raises as `lookup` does, also for the first URL that is invalid.
    """
    if isinstance(urls, str):
        raise UsageError("lookup_many takes several URLs; use lookup for one")
    return _lookup_many(os.fspath(cluster), urls, _query(filters).query)


def _lookup_many(cluster: str, urls: Iterable[str], query: Query) -> Iterator[tuple[str, list[Capture]]]:
    for answer in lookup_many_lines(cluster, urls, query):
        if answer.error is not None:
            raise answer.error
        yield answer.url, [capture for lines in answer.lists for capture in _captures_of(cluster, lines)]


class Cluster:
    """A ZipNum cluster that is opened once and asked many questions. Use it in a `with` statement.

    Raises UsageError if there is no cluster, InputError if it cannot be read or is corrupt.
    """

    def __init__(self, cluster: Path, shard_index_loc: tuple[str, str] | None = None) -> None:
        self._path = os.fspath(cluster)
        self._files = ExitStack()
        self._reader: BlockSource | None = self._files.enter_context(
            open_searched(self._path, shard_index_loc)
        ).reader

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of the cluster. Its iterators give no more captures."""
        self._reader = None
        self._files.close()

    def lookup(self, url: str, **filters: Unpack[Filters]) -> Iterator[Capture]:
        """Yield the captures of `url`, as the function `lookup` does."""
        lists = self.lines(url, **filters)
        return (capture for lines in lists for capture in _captures_of(self._path, lines))

    def lines(self, url: str, **filters: Unpack[Filters]) -> Iterator[list[bytes]]:
        """Yield the CDX lines of `url` as they are in the cluster, in lists, without line ends.

        This is the fast way: lines are neither parsed nor decoded.
        """
        query = _query(filters)
        return self._answer(query, query.keys(url))

    def count(self, url: str, **filters: Unpack[Filters]) -> int:
        """Return the number of captures of `url`."""
        query = _query(filters)
        return query.count(self._open(), query.keys(url))

    def _answer(self, query: PreparedQuery, keys: KeyRange) -> Iterator[list[bytes]]:
        for lines in query.answer(self._open(), keys):
            yield lines
            self._open()

    def _open(self) -> OpenCluster:
        """The cluster for one answer: a block that is being read is not shared with other threads."""
        if self._reader is None:
            raise UsageError(f"{self._path}: the cluster was closed")
        return OpenCluster.of(self._reader)


def get(
    source: Path,
    url: str | None = None,
    timestamp: str | None = None,
    *,
    offset: int | None = None,
    length: int | None = None,
    archives: Path | None = None,
    decode: bool = True,
) -> CapturedRecord:
    """Return the capture of `url` nearest to `timestamp` (without one: the newest), or the record at `offset`.

    `source` is a ZipNum cluster, or with `offset` an archive. `archives` is the directory, URL prefix or path index
    of the archives that the cluster names; by default, the archives.tsv beside the cluster is used. With `decode` the payload is freed of chunks and of gzip, deflate,
    br or zstd. The payload of a revisit is that of the record it refers to. The record is held in memory.
    Raises InputError if there is no such capture or its record cannot be read, UsageError for invalid arguments.
    """
    if (url is None) == (offset is None):
        raise UsageError("give either a URL or an offset")
    if length is not None and offset is None:
        raise UsageError("length needs an offset")
    path, place = os.fspath(source), optional_path(archives)
    if url is None:
        with closing(ArchiveStore(place)) as store:
            wanted = RecordRange(path, offset or 0, length)
            fetched = store.fetch_named(*wanted)
            return _record(wanted, fetched, fetched, _names(fetched.record), decode)
    location = find_capture(path, url, timestamp)
    with closing(archives_of(path, place).open()) as store:
        found = fetch_capture(location, store)
        payload = capture_with_payload(path, found, store)
        names = RecordNames(found.location.url, found.location.timestamp)
        return _record(found.wanted, found.fetched, payload.fetched, names, decode)


class RecordNames(NamedTuple):
    """The URL and the timestamp (14 digits) of a record; "" if it has none."""

    url: str
    timestamp: str


def _names(record: Record) -> RecordNames:
    url = record.headers.get(b"warc-target-uri", b"").decode("utf-8", "replace")
    return RecordNames(url, (timestamp_of(record) or b"").decode())


def _record(
    wanted: RecordRange, fetched: FetchedRecord, payload: FetchedRecord, names: RecordNames, decode: bool
) -> CapturedRecord:
    """The record `fetched` with the payload of another one, which is the same unless it is a revisit."""
    with errors_reported(wanted):
        http_head = record_parts(fetched.record, fetched.content()).http_head
        parts = record_parts(payload.record, payload.content())
        pieces = decode_payload(parts.http_head, parts.payload) if decode else parts.payload
        return CapturedRecord(
            url=names.url,
            timestamp=names.timestamp,
            filename=wanted.filename,
            offset=wanted.offset,
            headers={
                name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
                for name, value in fetched.record.headers.items()
            },
            http_head=http_head,
            payload=b"".join(pieces),
        )


def _query(filters: Filters) -> PreparedQuery:
    check_names(filters, Filters)
    page, size = filters.get("page"), filters.get("page_size", PAGE_SIZE)
    query = Query(
        match_type=filters.get("match_type"),
        first=filters.get("from_ts"),
        last=filters.get("to"),
        filters=text_list(filters.get("filter", ())),
        collapse=filters.get("collapse"),
        resolve_revisits=filters.get("resolve_revisits", False),
        sort=filters.get("sort", "default"),
        closest=filters.get("closest"),
        limit=filters.get("limit"),
        page=None if page is None else AnswerPage(page, size),
    )
    return PreparedQuery(query)
