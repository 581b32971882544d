"""What a copy consists of: the chosen index lines, in the order of their archives, without duplicates.

    row    filename NUL offset NUL timestamp NUL urlkey NUL length NUL query NUL source NUL index line

Rows are sorted as bytes, so neighbors in an archive are neighbors in the plan, and few requests fetch them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO, NamedTuple

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.cluster.find import archives_of_crawls
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import RecordLocation, record_location, usual_place
from cdxmill.formats.lines.lookup_query import EVERYTHING
from cdxmill.inputs.joined_ranges import JOINED, is_one_request
from cdxmill.options.option import optional_path, path_list
from cdxmill.options.queries import Query
from cdxmill.options.records import Copying
from cdxmill.search.originals import Reference, first_original, query_for
from cdxmill.search.query import PreparedQuery, query_of
from cdxmill.search.several import open_several, source_of
from cdxmill.search.sources import LineSource, Source, find_sources, open_listed
from cdxmill.stages.lines.merge_lines import sort_lists
from cdxmill.storage.scratch import Scratch

_REQUESTS = 48
"""Requests of a unit at most: enough that its overhead is small, few enough that little is lost by a kill."""
_SHARE = 48
"""A small copy is divided into this many units, so that every process gets some."""
_LONGEST = 1 << 20
"""Bytes that are assumed for a record whose length is unknown."""

_ROW = b"%b\0%020d\0%b\0%b\0%d\0%05d\0%05d\0%b"
_RUN = struct.Struct("<QQ")

Identity = tuple[str, int, str, bytes]
"""File name, offset, timestamp and urlkey of a record: two archives may have one name."""


class Planned(NamedTuple):
    """A capture to copy. `query` and `source` are positions in the lists that the user gave."""

    location: RecordLocation
    query: int
    source: int
    line: bytes = b""
    """The index line. Of the location, `detailed` gives what only the line has."""

    @property
    def key(self) -> bytes:
        """The key of the index line."""
        return _key_of(self.line)

    @property
    def identity(self) -> Identity:
        """What tells the record from others, in this copy and in later ones."""
        return self.location.filename, self.location.offset, self.location.timestamp, self.key

    @property
    def end(self) -> int:
        """The offset after the record."""
        return self.location.offset + (self.location.length or _LONGEST)


Run = list[Planned]
"""Neighbors in an archive that one request fetches."""


class Asked(NamedTuple):
    """What the user asked for."""

    sources: Sequence[Source]
    urls: Sequence[str]
    query: Query

    @property
    def places(self) -> list[ArchivePlaces]:
        """Where the archives of each source are and, last, those of crawls that index lines name."""
        return [*(source.places for source in self.sources), ArchivePlaces(archives_of_crawls())]

    def row_of(
        self, line: bytes, query: int, number: int, skip: Callable[[InputError], None]
    ) -> bytes | None:
        """The row of an index line of a source; None if it is invalid, and `skip` takes the error."""
        if usual := usual_place(line):
            place, time = usual
            return _row(place.filename, place.offset, time, place.length, query, number, line)
        return self._row_of_unusual(line, query, number, skip)

    def _row_of_unusual(
        self, line: bytes, query: int, number: int, skip: Callable[[InputError], None]
    ) -> bytes | None:
        source = self.sources[number]
        try:
            found = record_location(line)
        except ValueError as error:
            skip(InputError(source.name, str(error)))
            return None
        name, time = (text.encode("utf-8", "surrogateescape") for text in (found.filename, found.timestamp))
        if {0, 10} & {*_key_of(line), *name, *time}:
            reason = f"the key, the file name or the timestamp has a line end or a NUL: {line[:80]!r}"
            skip(InputError(source.name, reason))
            return None
        if source.places == ArchivePlaces(None) and _OF_CRAWL in line:
            number = len(self.sources)
        return _row(name, found.offset, time, found.length, query, number, line)


_OF_CRAWL = b', "crawl": "CC-MAIN-'
"""In a line that `lookup` has printed for a crawl. Such a line is not usual."""


class Revisit(NamedTuple):
    """A revisit that was copied: its source, its index line, and what its header refers to."""

    source: int
    url: str
    timestamp: str
    digest: str
    filename: str
    offset: int
    refers_to: str
    refers_to_date: str


def ask(asked: Copying, urls: Iterable[str]) -> Asked:
    """What is to be copied; without URLs, all lines if the sources are files with lines.

    Raises UsageError, InputError.
    """
    named = ",".join(path_list(asked.source))
    sources = find_sources(named, optional_path(asked.archives), asked.newest_crawls)
    urls = list(dict.fromkeys(urls))
    if not urls and all(source.has_lines for source in sources):
        urls = [EVERYTHING]
    if not urls:
        raise UsageError("no QUERY given; name URLs, such as '*.example.com', or '*' for all captures")
    query = query_of(asked)
    prepared = PreparedQuery(query)
    for url in urls:
        prepared.keys(url)
    return Asked(sources, urls, query)


def find_rows(asked: Asked, scratch: Scratch, skip: Callable[[InputError], None]) -> Iterator[bytes]:
    """The rows of all lines that the sources have for the queries, sorted. `skip` takes lines that are invalid."""
    for lines in sort_lists(_rows(asked, skip), "plan", scratch.create, scratch.reader):
        yield from lines


def _rows(asked: Asked, skip: Callable[[InputError], None]) -> Iterator[list[bytes]]:
    """The rows of all lines; sources whose lines are not compared are opened one after the other."""
    query, numbers = asked.query, {source: number for number, source in enumerate(asked.sources)}
    is_each = (query.collapse, query.limit) == (None, None) and not any(one.is_listed for one in numbers)
    for group in [[one] for one in numbers] if is_each else [list(numbers)]:
        with open_several(group, query, skip, with_crawl=False) as several:
            found = [numbers[one] for one in several.sources]
            for asked_as, answer in enumerate(several.answers(asked.urls)):
                if answer.error is not None:
                    raise UsageError(str(answer.error))
                for lines in answer.lists:
                    rows = [asked.row_of(line, asked_as, found[source_of(line)], skip) for line in lines]
                    yield [row for row in rows if row is not None]


def _row(
    name: bytes, offset: int, time: bytes, length: int | None, query: int, source: int, line: bytes
) -> bytes:
    return _ROW % (name, offset, time, _key_of(line), length or 0, query, source, line)


def _key_of(line: bytes) -> bytes:
    return line.partition(b" ")[0]


def read_rows(rows: Iterable[bytes]) -> Iterator[tuple[bytes, Planned]]:
    """Sorted rows and their captures, each capture once.

    The locations lack what `detailed` adds: parsing the line takes most of the time.
    """
    last: Identity | None = None
    for row in rows:
        name, offset, time, key, length, query, source, line = row.split(b"\0", 7)
        filename, timestamp = (text.decode("utf-8", "surrogateescape") for text in (name, time))
        identity = filename, int(offset), timestamp, key
        if identity != last:
            place = RecordLocation(filename, identity[1], int(length) or None, "", timestamp, "", "")
            yield row, Planned(place, int(query), int(source), line)
        last = identity


def detailed(one: Planned) -> Planned:
    """The capture with the URL and the digest of its index line."""
    return one._replace(location=record_location(one.line))


def runs_of(captures: Iterable[Planned]) -> Iterator[Run]:
    """Neighbors in the same archive, to be fetched in one request."""
    run: Run = []
    for one in captures:
        if run and not is_near(run[0], run[-1], one):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def is_near(first: Planned, last: Planned, following: Planned) -> bool:
    """Whether a capture can be fetched together with those from `first` to `last`."""
    is_same = (last.location.filename, last.source) == (following.location.filename, following.source)
    following_range = following.location.offset, following.end
    return is_same and is_one_request(first.location.offset, last.end, following_range)


class Unit(NamedTuple):
    """A unit of work: a range of the file with the rows."""

    number: int
    start: int
    size: int


class PlanSize(NamedTuple):
    """The number of captures of a plan, of their bytes as far as they are known, and of requests."""

    captures: int = 0
    bytes: int = 0
    requests: int = 0


def write_plan(rows: Iterable[tuple[bytes, Planned]], file: IO[bytes], runs: IO[bytes]) -> PlanSize:
    """Write rows to a file, each with its LF; and to `runs`, for each run, the place of its first row and its bytes."""
    captures = size = requests = position = start = in_run = 0
    run: tuple[Planned, Planned] | None = None
    for row, one in rows:
        if run is None or not is_near(*run, one):
            if run is not None:
                runs.write(_RUN.pack(start, in_run))
            requests, run, start, in_run = requests + 1, (one, one), position, 0
        run = run[0], one
        in_run = max(in_run, one.end - run[0].location.offset)
        file.write(row + b"\n")
        position += len(row) + 1
        captures, size = captures + 1, size + (one.location.length or 0)
    if run is not None:
        runs.write(_RUN.pack(start, in_run))
    return PlanSize(captures, size, requests)


def units_of(runs: IO[bytes], end: int, plan: PlanSize, number: int) -> Iterator[Unit]:
    """The units of a plan whose rows have `end` bytes. They depend on the plan only, not on the number of processes.

    The number of the first is `number`.
    """
    most = max(1, min(_REQUESTS, plan.requests // _SHARE))
    start = requests = size = 0
    while found := runs.read(_RUN.size):
        position, length = _RUN.unpack(found)
        if requests and (requests >= most or size + length > JOINED):
            yield Unit(number, start, position - start)
            number, start, requests, size = number + 1, position, 0, 0
        requests, size = requests + 1, size + length
    if requests:
        yield Unit(number, start, end - start)


def find_originals(
    asked: Asked, revisits: Iterable[Revisit], missing: Callable[[Revisit], None]
) -> Iterator[bytes]:
    """The rows of the records that revisits refer to, in no order: found by URL, digest and time.

    The source of a revisit is searched first, then the others. `missing` takes those whose original no source has.
    """
    opened: dict[int, LineSource | None] = {}
    with ExitStack() as files:
        for one in revisits:
            for number in sorted(range(len(asked.sources)), key=lambda number: number != one.source):
                if number not in opened:  # a crawl without an index was reported by the plan
                    opened[number] = open_listed(asked.sources[number], files, lambda error: None)
                if row := _original_row(asked, number, opened[number], one):
                    yield row
                    break
            else:
                missing(one)


def _original_row(asked: Asked, number: int, searched: LineSource | None, one: Revisit) -> bytes | None:
    reference = Reference(one.refers_to, one.refers_to_date)
    query, url = query_for(reference, one.timestamp), reference.url or one.url
    found = None if searched is None else first_original(_answers(searched, query, url), one.digest)
    if found is None:
        return None
    return asked.row_of(found.line, 0, number, lambda error: None)


def _answers(searched: LineSource, query: Query, url: str) -> Iterator[bytes]:
    try:
        prepared = PreparedQuery(query, lambda error: None)
    except UsageError:  # the revisit has no date
        return
    for answer in searched.answers(prepared, [url]):
        for lines in answer.lists:
            yield from lines
