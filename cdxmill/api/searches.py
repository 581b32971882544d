"""Questions to a cluster: `lookup`, `lookup_many`, `get`, `copy`, and `Cluster`, which answers many of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import field
from typing import Any, Literal

from cdxmill.api.archives import capture_fields
from cdxmill.api.calls import method_takes, takes
from cdxmill.api.results import CapturedRecord, CopyResult, result_of
from cdxmill.capture import Record
from cdxmill.cluster.archive_index import archives_of
from cdxmill.commands.get import (
    FoundCapture,
    RecordRange,
    capture_and_payload,
    capture_with_payload,
    errors_reported,
    fetch_capture,
    find_capture,
    wanted_of,
)
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.options.option import AnyPath, Options, optional_path, text_list
from cdxmill.options.queries import Query, Question
from cdxmill.options.records import Copying, Getting
from cdxmill.running.failures import Failures
from cdxmill.search.kept import KeptCluster
from cdxmill.search.lookup import is_one_cluster
from cdxmill.search.many import Answer
from cdxmill.search.query import PreparedQuery, query_of
from cdxmill.search.servers import with_servers
from cdxmill.stages.records.decode_payload import decode_payload
from cdxmill.stages.records.fetch_record import FetchedRecord
from cdxmill.stages.records.record_parts import record_parts, record_timestamp
from cdxmill.storage.location import locate

Capture = dict[str, str]


class UrlCall(Question):
    """The parameters of a question about one URL."""

    url: str = field(kw_only=False)


class TableCall(Question):
    """The parameters of a question whose answer is a table."""

    url: str = field(default="*", kw_only=False)


class LookupCall(Question):
    """The parameters of `lookup`."""

    cluster: AnyPath = field(kw_only=False)
    url: str = field(kw_only=False)


class LookupManyCall(Question):
    """The parameters of `lookup_many`."""

    cluster: AnyPath = field(kw_only=False)
    urls: Iterable[str] = field(kw_only=False)


class GetCall(Getting):
    """The parameters of `get`."""

    form: Literal["record", "headers", "payload"] = field(default="record", init=False)
    decode: bool = field(default=True)


class ClusterGetCall(Options):
    """The parameters of `Cluster.get`."""

    url: str = field(kw_only=False)
    timestamp: str | None = field(default=None, kw_only=False)
    decode: bool = field(default=True)


class CopyCall(Copying):
    """The parameters of `copy`."""

    output: AnyPath = field()


@takes(LookupCall)
def lookup(asked: LookupCall) -> Iterator[Capture]:
    """Yield the captures of `url` in `cluster` as dictionaries with the field names of pywb's CDX server.

    `cluster` is what the command takes: the directory or URL of a ZipNum cluster, a CDX file, a crawl by name, a CDX
    server, or several with commas between them. `url` is a URL, a prefix (`example.com/*`) or a domain (`*.example.com`). All values are text. Raises UsageError if the question is
    invalid or there is no cluster, InputError if the cluster cannot be read or is corrupt.
    """
    query = PreparedQuery(query_of(asked))
    keys = query.keys(asked.url)
    return _lookup(os.fspath(asked.cluster), query, keys, asked.url)


def _lookup(cluster: str, query: PreparedQuery, keys: KeyRange, url: str) -> Iterator[Capture]:
    cluster = with_servers(cluster)
    if is_one_cluster(cluster):
        with Cluster(cluster) as opened:
            for lines in opened._answer(query, keys):
                yield from _captures_of(cluster, lines)
        return
    for answer in _answers(cluster, [url], query.query):
        for lines in answer.lists:
            yield from _captures_of(cluster, lines)


def _captures_of(cluster: str, lines: list[bytes]) -> Iterator[Capture]:
    """The fields of lines. Raises InputError at a line that cannot be parsed."""
    for line in lines:
        try:
            yield capture_fields(line)
        except (ValueError, RecursionError) as error:
            raise InputError(cluster, str(error)) from None


@takes(LookupManyCall)
def lookup_many(asked: LookupManyCall) -> Iterator[tuple[str, list[Capture]]]:
    """Yield (URL, its captures) for each of `urls`, in their order.

    If all URLs are exact, each block is read once. Raises as `lookup` does, also for the first URL that is invalid.
    """
    if isinstance(asked.urls, str):
        raise UsageError("lookup_many takes several URLs; use lookup for one")
    query = query_of(asked)
    PreparedQuery(query)  # raises now
    return _lookup_many(os.fspath(asked.cluster), asked.urls, query)


def _lookup_many(cluster: str, urls: Iterable[str], query: Query) -> Iterator[tuple[str, list[Capture]]]:
    for answer in _answers(cluster, urls, query):
        yield answer.url, [capture for lines in answer.lists for capture in _captures_of(cluster, lines)]


def _answers(cluster: str, urls: Iterable[str], query: Query) -> Iterator[Answer]:
    """The answers for `urls`. Raises UsageError for the first URL that is invalid."""
    from cdxmill.search.several import lookup_named  # slow to import

    for answer in lookup_named(with_servers(cluster), urls, query):
        if answer.error is not None:
            raise answer.error
        yield answer


class Cluster:
    """A ZipNum cluster or CDX file that is opened once and asked many questions. Use it in a `with` statement.

    `archives` is where `get` finds the archives that the cluster names: see the function `get`. Raises UsageError if there
    is no cluster, InputError if it cannot be read or is corrupt.
    """

    def __init__(
        self,
        cluster: AnyPath,
        shard_index_loc: tuple[str, str] | None = None,
        archives: AnyPath | None = None,
    ) -> None:
        self._path, self._archives = os.fspath(cluster), optional_path(archives)
        self._kept, self._files = KeptCluster(self._path, shard_index_loc), ExitStack()
        self._own = threading.local()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of the cluster. Its iterators give no more captures."""
        self._kept.close()
        self._files.close()

    @method_takes(UrlCall)
    def lookup(self, asked: UrlCall) -> Iterator[Capture]:
        """Yield the captures of `url`, as the function `lookup` does."""
        lists = self._lines(asked)
        return (capture for lines in lists for capture in _captures_of(self._path, lines))

    @method_takes(UrlCall)
    def lines(self, asked: UrlCall) -> Iterator[list[bytes]]:
        """Yield the CDX lines of `url` as they are in the cluster, in lists, without line ends.

        This is the fast way: lines are neither parsed nor decoded.
        """
        return self._lines(asked)

    @method_takes(UrlCall)
    def count(self, asked: UrlCall) -> int:
        """Return the number of captures of `url`."""
        query = PreparedQuery(query_of(asked))
        with self._kept.opened() as cluster:
            return query.count(cluster, query.keys(asked.url))

    @method_takes(ClusterGetCall)
    def get(self, asked: ClusterGetCall) -> CapturedRecord:
        """Return the capture of `url` nearest to `timestamp` (without one: the newest), as the function `get` does.

        Archives stay open, too, so this is the fast way to get many records.
        """
        store = self._store()
        found = fetch_capture(find_capture(self._path, asked.url, asked.timestamp, self._search), store)
        return _captured(found, capture_with_payload(self._path, found, store, self._search), asked.decode)

    @method_takes(TableCall)
    def to_arrow(self, asked: TableCall) -> Any:
        """Return a pyarrow.RecordBatchReader of the captures of `url`, by default all.

        The columns are those of `export`. A batch has up to 65,536 captures, so memory is bounded. Values that a table cannot
        have are None, and the column cdx_line has the line.
        """
        return self._table(asked)

    @method_takes(TableCall)
    def to_pandas(self, asked: TableCall) -> Any:
        """Return the table of `to_arrow` as a pandas DataFrame, which is held in memory."""
        return self._table(asked).read_pandas()

    @method_takes(TableCall)
    def to_polars(self, asked: TableCall) -> Any:
        """Return the table of `to_arrow` as a polars DataFrame, which is held in memory."""
        import polars  # only this needs it

        return polars.from_arrow(self._table(asked).read_all())

    def _table(self, asked: TableCall) -> Any:
        from cdxmill.commands.exporting.arrow import BATCH, BATCH_BYTES, ArrowTable  # slow to import
        from cdxmill.commands.exporting.lines import in_batches

        table = ArrowTable()
        query = PreparedQuery(query_of(asked))
        lists = self._answer(query, query.keys(asked.url))
        return table.reader(in_batches(lists, BATCH, BATCH_BYTES))

    def _store(self) -> ArchiveStore:
        """The archives, which threads do not share."""
        self._kept.check_open()
        store: ArchiveStore | None = getattr(self._own, "store", None)
        if store is None:
            store = self._own.store = archives_of(locate(self._path), self._archives).open()
            self._files.callback(store.close)
        return store

    def _search(self, url: str, query: Query) -> Iterator[bytes]:
        prepared = PreparedQuery(query)
        for lines in self._answer(prepared, prepared.keys(url)):
            yield from lines

    def _lines(self, asked: UrlCall) -> Iterator[list[bytes]]:
        query = PreparedQuery(query_of(asked))
        return self._answer(query, query.keys(asked.url))

    def _answer(self, query: PreparedQuery, keys: KeyRange) -> Iterator[list[bytes]]:
        with self._kept.opened() as cluster:
            for lines in query.answer(cluster, keys):
                yield lines
                self._kept.check_open()


@takes(GetCall)
def get(asked: GetCall) -> CapturedRecord:
    """Return the capture of `url` nearest to `timestamp` (without one: the newest), or the record at `offset`.

    `source` is a ZipNum cluster, or with `offset` an archive. `archives` is the directory, URL prefix or path index
    of the archives that the cluster names; by default, the archives.tsv beside the cluster is used. With `decode` the payload is freed of chunks and of gzip, deflate,
    br or zstd. The payload of a revisit is that of the record it refers to. The record is held in memory.
    Raises InputError if there is no such capture or its record cannot be read, UsageError for invalid arguments.
    """
    wanted, decode = wanted_of(asked), asked.decode
    with ExitStack() as files:
        if wanted is None:
            found, payload = capture_and_payload(asked, files, lambda text: None)
            return _captured(found, payload or found, decode)
        store = files.enter_context(closing(ArchiveStore(optional_path(asked.archives))))
        fetched = store.fetch_named(*wanted)
        return _record(wanted, fetched, fetched, _names(fetched.record), decode)


@takes(CopyCall)
def copy(asked: CopyCall) -> CopyResult:
    """Copy the captures of one query or several to new archives in the directory `output`, also an s3 or hdfs URL.

    `source` is one or several of: a cluster, a crawl by name, a prefix B-tree, a file with CDX lines. Without queries,
    all lines of files are copied. `size` is in bytes. Captures that `output` has already are not copied again; those that
    could not be copied are in the failures of the result, and in `output`/copy-failures.tsv. Raises UsageError for invalid
    arguments, InputError if a source cannot be read, StoppedError if `output` cannot be written.
    """
    from cdxmill.commands.copying.copy import copy as copy_captures  # slow to import
    from cdxmill.commands.copying.plan import ask

    failures = Failures(printed=False)
    done = copy_captures(ask(asked, text_list(asked.queries)), os.fspath(asked.output), asked, failures)
    return result_of(CopyResult, done, failures)


def _names(record: Record) -> tuple[str, str]:
    """The URL and the timestamp (14 digits) of a record; "" if it has none."""
    url = record.headers.get(b"warc-target-uri", b"").decode("utf-8", "replace")
    return url, (record_timestamp(record.headers, record.is_arc) or b"").decode()


def _captured(found: FoundCapture, payload: FoundCapture, decode: bool) -> CapturedRecord:
    names = found.location.url, found.location.timestamp
    return _record(found.wanted, found.fetched, payload.fetched, names, decode)


def _record(
    wanted: RecordRange, fetched: FetchedRecord, payload: FetchedRecord, names: tuple[str, str], decode: bool
) -> CapturedRecord:
    """The record `fetched` with the payload of another one, which is the same unless it is a revisit."""
    with errors_reported(wanted):
        http_head = record_parts(fetched.record, fetched.content()).http_head
        parts = record_parts(payload.record, payload.content())
        pieces = decode_payload(parts.http_head, parts.payload) if decode else parts.payload
        return CapturedRecord(
            url=names[0],
            timestamp=names[1],
            filename=wanted.filename,
            offset=wanted.offset,
            headers={
                name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
                for name, value in fetched.record.headers.items()
            },
            http_head=http_head,
            payload=b"".join(pieces),
        )
