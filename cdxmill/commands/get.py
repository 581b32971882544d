"""get: a URL in a cluster, or an offset in an archive -> the record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.cluster.archive_index import ArchivePlaces, archives_of
from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.formats.lines.capture_fields import ABSENT, RecordLocation, record_location, timestamp_of_line
from cdxmill.formats.lines.timestamp import timestamp_of
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.inputs.dictionaries import use_dictionary
from cdxmill.messages import say
from cdxmill.options.option import optional_path
from cdxmill.options.queries import Query
from cdxmill.options.records import Getting
from cdxmill.search.lookup import is_one_cluster, lookup
from cdxmill.search.originals import first_original, query_for, reference_in
from cdxmill.search.several import open_several, source_of
from cdxmill.search.sources import Source, find_sources
from cdxmill.stages.records.decode_payload import PayloadError, decode_payload
from cdxmill.stages.records.fetch_record import FetchedRecord, NoRecord
from cdxmill.stages.records.record_parts import record_parts
from cdxmill.storage.location import locate

Search = Callable[[str, Query], Iterator[bytes]]
"""Looks up a URL: yields the lines of the answer."""


class RecordRange(NamedTuple):
    """A byte range of an archive. `length` None means the record that begins at `offset`."""

    filename: str
    offset: int
    length: int | None

    def __str__(self) -> str:
        return f"{self.filename}@{self.offset}"


class FoundCapture(NamedTuple):
    """A capture: what its index line says, and its record."""

    location: RecordLocation
    fetched: FetchedRecord

    @property
    def wanted(self) -> RecordRange:
        """The byte range of the record."""
        return RecordRange(self.location.filename, self.location.offset, self.location.length)


def wanted_of(asked: Getting) -> RecordRange | None:
    """The record at an offset that is asked for; None if it is that of a URL. Raises UsageError."""
    if (asked.url is None) == (asked.offset is None):
        raise UsageError("give either a URL or an offset: a cluster and a URL, or an archive and --offset N")
    return None if asked.offset is None else RecordRange(os.fspath(asked.source), asked.offset, asked.length)


def get_record(asked: Getting) -> Iterator[bytes]:
    """The record at an offset of an archive, or of a capture of a URL, in pieces. `form` says which part of it.

    Of a URL, it is the capture nearest to `timestamp`, or the newest one. A revisit has no payload of its own; its payload
    is that of the capture it refers to. Raises InputError if there is no such capture or record, or if it is corrupt or does
    not match its index line. Raises UsageError as `lookup`.
    """
    wanted = wanted_of(asked)
    use_dictionary(asked.dictionary)
    return _of_capture(asked) if wanted is None else _at_offset(wanted, asked)


def _at_offset(wanted: RecordRange, asked: Getting) -> Iterator[bytes]:
    with closing(ArchiveStore(optional_path(asked.archives))) as archives:
        fetched = archives.fetch_named(*wanted)
        if asked.form == "payload" and (reason := _why_no_payload(fetched.record.headers)):
            raise InputError(str(wanted), reason, "get it by its URL from a cluster that contains it")
        yield from _contents(wanted, fetched, asked)


def _of_capture(asked: Getting) -> Iterator[bytes]:
    with ExitStack() as files:
        found, payload = capture_and_payload(asked, files, say, with_payload=asked.form == "payload")
        wanted = found if payload is None else payload
        yield from _contents(wanted.wanted, wanted.fetched, asked)


def capture_and_payload(
    asked: Getting, files: ExitStack, say: Callable[[str], None], *, with_payload: bool = True
) -> tuple[FoundCapture, FoundCapture | None]:
    """The capture of a URL and the one with its payload, which is another one for a revisit; None if that is not wanted.

    They can be read until `files` are closed. `say` gets what the user should know. Raises UsageError, InputError.
    """
    sources = _sources(asked)
    location, cluster, places = _found(asked, sources, say)
    archives = files.enter_context(closing(places.open()))
    found = fetch_capture(location, archives)
    if not with_payload:
        return found, None
    if sources:
        return found, _payload_in(sources, found, files, say)
    return found, capture_with_payload(cluster, found, archives)


def _sources(asked: Getting) -> Sequence[Source]:
    """Several sources, or crawls; none if one cluster or file was named. Raises UsageError."""
    named = os.fspath(asked.source)
    if is_one_cluster(named) and asked.newest_crawls is None:
        return []
    sources = find_sources(named, optional_path(asked.archives), asked.newest_crawls)
    if any(source.is_pipe or source.is_tree for source in sources):
        raise UsageError(f"{named}: get needs clusters, crawls or CDX files; use copy for other index lines")
    return sources


def _found(
    asked: Getting, sources: Sequence[Source], say: Callable[[str], None]
) -> tuple[RecordLocation, str, ArchivePlaces]:
    """The index line of a capture, the cluster that has it, and the places of its archives."""
    cluster, url, timestamp = os.fspath(asked.source), asked.url or "", asked.timestamp
    if not sources:
        places = archives_of(locate(cluster), optional_path(asked.archives))
        return find_capture(cluster, url, timestamp), cluster, places
    with open_several(sources, _query(timestamp), partial(_note, say), with_crawl=False) as several:
        line = _chosen(chain.from_iterable(several.lists(url)), timestamp)
        present = several.sources
    if line is None:
        raise InputError(cluster, f"has no capture of {url}")
    source = present[source_of(line)]
    location = _location(source.cluster, line)
    if source.crawl:
        say(f"{source.crawl}: {location.url} {location.timestamp}")
    return location, source.cluster, source.places


def _note(say: Callable[[str], None], error: InputError) -> None:
    """Say that a crawl has no index. Any other error is raised."""
    if not isinstance(error, AbsentError):
        raise error
    say(f"note: {error}")


def find_capture(
    cluster: str, url: str, timestamp: str | None, search: Search | None = None
) -> RecordLocation:
    """The index line of the capture nearest to `timestamp`, or of the newest one. Raises InputError if there is none.

    `search` looks up URLs in the cluster, if it is open already. A capture whose timestamp is not a date is found only if there is no other, or if `timestamp` is `-`.
    """
    search = search or partial(lookup, cluster)
    line = _chosen(search(url, _query(timestamp)), timestamp)
    if line is None:
        raise InputError(cluster, f"has no capture of {url}")
    return _location(cluster, line)


def _query(timestamp: str | None) -> Query:
    """The query whose answer has the wanted capture first, or its lines in any order if it has no date."""
    if timestamp is None or timestamp == ABSENT:
        return Query(match_type="exact", sort="newest")
    return Query(match_type="exact", sort="closest", closest=timestamp, limit=1)


def _chosen(lines: Iterator[bytes], timestamp: str | None) -> bytes | None:
    """The wanted one of the lines of `_query`."""
    if timestamp == ABSENT:
        return next((line for line in lines if timestamp_of_line(line) == ABSENT.encode()), None)
    return _newest(lines) if timestamp is None else next(lines, None)


def _newest(latest_first: Iterator[bytes]) -> bytes | None:
    """The first line with a date; without any, the first line."""
    first = next(latest_first, None)
    if first is None or timestamp_of(timestamp_of_line(first)[:14]):
        return first
    return next((line for line in latest_first if timestamp_of(timestamp_of_line(line)[:14])), first)


def fetch_capture(location: RecordLocation, archives: ArchiveStore) -> FoundCapture:
    """The record of an index line. Raises InputError if it cannot be read or does not match the line."""
    fetched, reason = archives.fetch_line(location)
    found = FoundCapture(location, fetched)
    if reason is not None:
        raise InputError(
            str(found.wanted), reason, "index the archive again, or use --archives with the indexed archives"
        )
    return found


def capture_with_payload(
    cluster: str, found: FoundCapture, archives: ArchiveStore, search: Search | None = None
) -> FoundCapture:
    """The capture itself or, for a revisit, the capture it refers to. Raises InputError if that one is missing."""
    if _why_no_payload(found.fetched.record.headers) is None:
        return found
    url, query = _reference(found)
    search = search or partial(lookup, cluster)
    original = first_original(search(url, query), found.location.digest)
    if original is None:
        raise _without_original(found, cluster)
    return fetch_capture(original.location, archives)


def _payload_in(
    sources: Sequence[Source], found: FoundCapture, files: ExitStack, say: Callable[[str], None]
) -> FoundCapture:
    """The same in several sources. The archives of the capture stay open until `files` are closed."""
    if _why_no_payload(found.fetched.record.headers) is None:
        return found
    url, query = _reference(found)
    with open_several(sources, query, partial(_note, say), with_crawl=False) as several:
        original = first_original(chain.from_iterable(several.lists(url)), found.location.digest)
        present = several.sources
    if original is None:
        raise _without_original(found, ", ".join(source.name for source in sources))
    archives = files.enter_context(closing(present[source_of(original.line)].places.open()))
    return fetch_capture(original.location, archives)


def _reference(revisit: FoundCapture) -> tuple[str, Query]:
    """The URL of the original of a revisit, and the query that finds it."""
    reference = reference_in(revisit.fetched.record.headers)
    return reference.url or revisit.location.url, query_for(reference, revisit.location.timestamp)


def _without_original(revisit: FoundCapture, searched: str) -> InputError:
    reason = _why_no_payload(revisit.fetched.record.headers)
    return InputError(str(revisit.wanted), f"{reason}; {searched} does not contain that record")


def _location(cluster: str, line: bytes) -> RecordLocation:
    try:
        return record_location(line)
    except ValueError as error:
        raise InputError(cluster, str(error)) from None


def _why_no_payload(headers: Headers) -> str | None:
    """The reason why a record has no payload of its own. None if it has one."""
    if headers.get(b"warc-type", b"") != b"revisit":
        return None
    original = " ".join(filter(None, reference_in(headers)))
    return f"is a revisit; its payload is in another record{original and f' ({original})'}"


def _contents(wanted: RecordRange, fetched: FetchedRecord, asked: Getting) -> Iterator[bytes]:
    """The part of the record that `asked.form` names."""
    with errors_reported(wanted):
        if asked.form == "record":
            yield from fetched.content()
            return
        parts = record_parts(fetched.record, fetched.content())
        if asked.form == "headers":
            yield parts.header
            yield parts.http_head
        elif asked.decode:
            yield from decode_payload(parts.http_head, parts.payload)
        else:
            yield from parts.payload


@contextmanager
def errors_reported(wanted: RecordRange) -> Iterator[None]:
    """Turn the errors of reading and decoding a record into InputError."""
    try:
        yield
    except (NoRecord, PayloadError) as error:
        raise InputError(str(wanted), str(error)) from None
