"""One archive -> the items of its records, in a tally, and what could not be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cdxmill.capture import CrawlNotes, Damage, Outcome, Record
from cdxmill.formats.header_shape import HeaderShapes
from cdxmill.stages.captures.index_archive import Findings
from cdxmill.stages.counting.counters import MAX_CONTENT, BadRecord, Counter, NotWanted
from cdxmill.stages.counting.tally import Tally
from cdxmill.stages.records.fetch_record import Archive, NoRecord
from cdxmill.stages.records.parse_header import parse_header
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.record_errors import REPAIR, RecordError
from cdxmill.stages.records.record_parts import record_parts
from cdxmill.stages.records.take_record import take_whole
from cdxmill.stages.window import CHUNK, ReadAt


@dataclass
class Counted:
    """What was read: records, how many of them were counted, those that were skipped for a reason, and damage.

    `records` has no warcinfo records, which describe the file.
    """

    records: int = 0
    counted: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    def add(self, other: Counted) -> None:
        """Add what was read in another archive, without its damage."""
        self.records += other.records
        self.counted += other.counted
        for reason, number in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + number


def count_records(
    read_at: ReadAt, counter: Counter, tally: Tally, spill: Callable[[], None], chunk: int = CHUNK
) -> Counted:
    """Count the records of the archive that `read_at(offset, size)` reads. `spill` is called after each of them.

    What is not counted is in the result. Raises the errors of `read_at`.
    """
    counted = Counted()
    archive = Archive(read_at)
    for item in _items(read_at, counter, chunk, counted):
        if isinstance(item, Damage):
            counted.findings.add(item)
        elif isinstance(item, Record) and item.headers.get(b"warc-type") != b"warcinfo":
            counted.records += 1
            if item.headers.get(b"warc-type") not in counter.others:
                _count(item, archive, counter, tally, counted)
                spill()
        elif isinstance(item, CrawlNotes):
            counted.records += 1
    return counted


def _items(
    read_at: ReadAt, counter: Counter, chunk: int, counted: Counted
) -> Iterator[Record | CrawlNotes | Damage]:
    """The records, without most of those that have nothing to count."""
    # with shapes, only those fields are returned that indexes need
    shapes = None if counter.all_fields else HeaderShapes()

    def take(data: bytes | bytearray, offset: int, length: int) -> Record | CrawlNotes | Outcome:
        try:
            found = take_whole(offset, length, data, shapes, counter.others)
        except RecordError:
            return Outcome.NOT_COMMON
        if found is Outcome.NO_LINE:
            counted.records += 1
        return found

    return read_records(read_at, frozenset(), chunk, take)


def _count(record: Record, archive: Archive, counter: Counter, tally: Tally, counted: Counted) -> None:
    try:
        counter.add(_whole(record, archive, counted), tally)
        counted.counted += 1
    except NotWanted as reason:
        if text := str(reason):
            counted.skipped[text] = counted.skipped.get(text, 0) + 1
    except BadRecord as error:
        counted.findings.add(Damage(record.offset, str(error), REPAIR))


def _whole(record: Record, archive: Archive, counted: Counted) -> Record:
    """The record with its whole block, which readers cut. Of a very large one, the rest is reported."""
    if len(record.block) == record.size:
        return record
    try:
        content = archive.record(record.offset, record.length).content()
        parts = record_parts(record, content)
        block = bytearray(parts.http_head)
        for piece in parts.payload:
            block += piece
            if len(block) > MAX_CONTENT:
                break
    except NoRecord as error:
        raise BadRecord(str(error)) from None
    if len(block) < record.size:
        reason = f"the record has {record.size} bytes; only the first {MAX_CONTENT >> 20} MiB are counted"
        counted.findings.add(Damage(record.offset, reason))
        del block[MAX_CONTENT:]
    headers, _, _ = parse_header(parts.header)
    return record._replace(headers=headers, block=block)
