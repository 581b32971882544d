"""The records that revisits refer to: found in the same source by URL, digest and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cdxmill.commands.copying.output import Finished
from cdxmill.commands.copying.plan import row_of
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.joined_ranges import OpenRanges
from cdxmill.options.queries import Query
from cdxmill.search.originals import Reference, first_original, query_for, reference_in
from cdxmill.search.query import PreparedQuery
from cdxmill.search.sources import LineSource, Source, open_source
from cdxmill.stages.records.fetch_record import NoRecord
from cdxmill.storage.location import locate


def copied_revisits(finished: Finished, wanted: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    """What `find_originals` takes, for revisits that earlier runs have copied; their headers are read in the copy.

    `wanted` has for each its file name, offset and timestamp, and what `revisit_of` returns.
    """
    found = {(filename, offset, timestamp): rest for filename, offset, timestamp, *rest in wanted}
    archives = OpenRanges(lambda: None)
    for identity, place in finished.places(found) if found else ():
        archive = archives.opened(locate(place.path)).archive
        try:
            record = archive.record(place.offset, place.length).record
        except NoRecord as error:
            raise InputError(
                place.path, f"{error} at {place.offset}", "move this file and its index away"
            ) from None
        yield [*found[identity], *reference_in(record.headers)]


def find_originals(sources: Sequence[Source], revisits: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """The rows of the originals, in no order. A revisit whose original no line names is skipped.

    A revisit is its source, URL, timestamp and digest, and the URL and the date that its header refers to.
    """
    by_source: dict[int, list[Sequence[Any]]] = {}
    for one in revisits:
        by_source.setdefault(one[0], []).append(one)
    for number, found in by_source.items():
        with open_source(sources[number]) as searched:
            for _, url, timestamp, digest, *refers in found:
                reference = Reference(*refers)
                lines = _answers(searched, query_for(reference, timestamp), reference.url or url)
                original = first_original(lines, digest)
                row = original and row_of(original.line, 0, number, sources[number], lambda error: None)
                if row:
                    yield row


def _answers(searched: LineSource, query: Query, url: str) -> Iterator[bytes]:
    try:
        prepared = PreparedQuery(query, lambda error: None)
    except UsageError:  # the revisit has no date
        return
    for answer in searched.answers(prepared, [url]):
        for lines in answer.lists:
            yield from lines
