"""The request and metadata records beside a response, in bytes that were fetched around it.

Common Crawl's crawler writes them in the order request, response, metadata; others write the request last. No index
line tells where they are. So records before the response are found by the start of a member or a header, and count
only if they end where the next one begins.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.capture import Record
from cdxmill.stages.records.fetch_record import Archive, FetchedRecord, NoRecord
from cdxmill.stages.window import ReadAt

AROUND = 32 << 10
"""Bytes before and after a response that are searched. Requests and crawl notes are much smaller."""
_TYPES = (b"request", b"metadata")
_START = re.compile(rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|WARC/1\.[01]\r\n")
_MOST = 8
"""Records on one side of a response."""
_END = 4
"""Bytes of the line ends between two records of an uncompressed file."""


class Placed(NamedTuple):
    """A record, and its offset in the archive."""

    offset: int
    fetched: FetchedRecord

    @property
    def next_start(self) -> int:
        """Where the next record begins."""
        return self.offset + self.fetched.record.length + (_END if self.fetched.is_plain else 0)


def records_before(archive: Archive, read_at: ReadAt, response: Placed, low: int) -> list[Placed]:
    """The related records that end where the response begins, in their order. `low` is the first byte to search."""
    found: list[Placed] = []
    end = response.offset
    low = max(low, end - AROUND)
    starts = [low + match.start() for match in _START.finditer(read_at(low, end - low))]
    for start in reversed(starts):
        one = _record_between(archive, start, end)
        if one is None:
            continue
        if not _is_related(one.fetched.record, response) or len(found) == _MOST:
            break
        found.insert(0, one)
        end = start
    return found


def records_after(archive: Archive, response: Placed, high: int) -> list[Placed]:
    """The related records that begin where the response ends, in their order. `high` is where the search ends."""
    found: list[Placed] = []
    start = response.next_start
    high = min(high, start + AROUND)
    while start < high and len(found) < _MOST:
        try:
            one = Placed(start, archive.record(start, None))
        except NoRecord:
            break
        if one.next_start > high or not _is_related(one.fetched.record, response):
            break
        found.append(one)
        start = one.next_start
    return found


def _record_between(archive: Archive, start: int, end: int) -> Placed | None:
    for length in (end - start, end - start - _END):
        try:
            return Placed(start, archive.record(start, length)) if length > 0 else None
        except NoRecord:
            continue
    return None


def _is_related(record: Record, response: Placed) -> bool:
    """Whether a request or metadata record and the response name each other."""
    a, b = record.headers, response.fetched.record.headers
    if a.get(b"warc-type") not in _TYPES:
        return False
    pairs = ((a, b), (b, a))
    names = [(one.get(b"warc-concurrent-to"), other.get(b"warc-record-id")) for one, other in pairs]
    return any(named is not None and named == own for named, own in names)
