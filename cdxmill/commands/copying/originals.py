"""The records that revisits refer to: found in the same source by URL, digest and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cdxmill.commands.copying.output import Finished
from cdxmill.commands.copying.plan import row_of
from cdxmill.commands.copying.unit import refers_to
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.record_location import record_location
from cdxmill.formats.lines.timestamp import warc_timestamp_of
from cdxmill.inputs.joined_ranges import OpenRanges
from cdxmill.search.query import PreparedQuery, Query
from cdxmill.search.sources import Searched, Source, open_source
from cdxmill.stages.records.fetch_record import NoRecord

REVISIT = "warc/revisit"
"""The MIME type of revisits in index lines."""


def copied_revisits(finished: Finished, wanted: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    """What `find_originals` takes, for revisits that earlier runs have copied; their headers are read in the copy.

    `wanted` has for each its file name, offset and timestamp, and what `revisit_of` returns.
    """
    found = {(filename, offset, timestamp): rest for filename, offset, timestamp, *rest in wanted}
    archives = OpenRanges(lambda: None)
    for identity, place in finished.places(found) if found else ():
        archive = archives.opened(place.path).archive
        try:
            record = archive.record(place.offset, place.length).record
        except NoRecord as error:
            raise InputError(
                place.path, f"{error} at {place.offset}", "move this file and its index away"
            ) from None
        yield [*found[identity], *refers_to(record)]


def find_originals(sources: Sequence[Source], revisits: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """The rows of the originals, in no order. A revisit whose original no line names is skipped.

    A revisit is its source, URL, timestamp and digest, and the URL and the date that its header refers to.
    """
    by_source: dict[int, list[Sequence[Any]]] = {}
    for one in revisits:
        by_source.setdefault(one[0], []).append(one)
    for number, found in by_source.items():
        with open_source(sources[number]) as searched:
            for _, url, timestamp, digest, refers_url, refers_date in found:
                date = warc_timestamp_of(refers_date.encode("utf-8", "replace")) or timestamp.encode()
                line = _original(searched, refers_url or url, date, digest)
                row = line and row_of(line, 0, number, sources[number], lambda error: None)
                if row:
                    yield row


def _original(searched: Searched, url: str, date: bytes, digest: str) -> bytes | None:
    """The line with this digest that is nearest to the date."""
    query = Query(match_type="exact", sort="closest", closest=date[:14].decode("latin-1"))
    try:
        prepared = PreparedQuery(query, lambda error: None)
    except UsageError:  # the revisit has no date
        return None
    for answer in searched.answers(prepared, [url]):
        for line in (line for lines in answer.lists for line in lines):
            try:
                found = record_location(line)
            except ValueError:
                continue
            if found.mime != REVISIT and found.digest == digest:
                return line
    return None
