"""One archive -> the items of its records, in a tally, and what could not be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from cdxmill.capture import CrawlNotes, Damage, Note, Outcome, Record
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages import native
from cdxmill.stages.captures.index_archive import Findings
from cdxmill.stages.counting.counters import MAX_CONTENT, BadRecord, Counter, NotWanted
from cdxmill.stages.counting.own_counter import OwnCounter
from cdxmill.stages.counting.tally import Tally
from cdxmill.stages.pages.full_record import CUT_RECORD, full_records
from cdxmill.stages.records.fetch_record import Archive, NoRecord
from cdxmill.stages.records.parse_header import RecordError, content_length, parse_header
from cdxmill.stages.records.read_contents import Content, ScratchFiles, read_contents
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.record_parts import first_bytes, record_parts
from cdxmill.stages.records.take_record import ReadCommon, take_whole
from cdxmill.stages.records.unexpected import HINT, SKIPPED, blame_record
from cdxmill.stages.window import CHUNK, ReadAt


@dataclass
class Counted:
    """What was read: records (but no warcinfo), how many were counted, those skipped for a reason, damage and notes."""

    records: int = 0
    counted: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    def add(self, other: Counted) -> None:
        """Add what was counted and skipped in another archive."""
        self.counted += other.counted
        for reason, number in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + number


def count_records(
    read_at: ReadAt,
    counter: Counter,
    tally: Tally,
    spill: Callable[[], None],
    chunk: int = CHUNK,
    begin: Callable[[int], str] = lambda number: "",
    scratch: ScratchFiles | None = None,
) -> Counted:
    """Count the records of the archive that `read_at(offset, size)` reads. `spill` is called after each of them.

    `begin` is called before a record that compiled code does not count, with its number. It returns a reason to skip it.
    Members and frames of several records are taken apart in `scratch` files; without, they are reported.
    """
    counted = Counted()
    archive: Archive | None = Archive(read_at)
    take = _reader(counter, tally, spill, counted)
    items = iter(read_records(read_at, frozenset(), chunk, take))
    while (item := next(items, None)) is not None:
        if isinstance(item, Damage) and item.is_miscut and scratch is not None:
            items, archive = _apart(read_contents(read_at, scratch, chunk), item.offset), None
        elif isinstance(item, Damage | Note):
            counted.findings.add(item)
        elif isinstance(item, Record) and item.headers.get(b"warc-type") != b"warcinfo":
            counted.records += 1
            if item.headers.get(b"warc-type") in counter.others:
                continue
            if reason := begin(counted.records):
                counted.findings.add(Damage(item.offset, reason, SKIPPED))
                continue
            _count(item, archive, counter, tally, counted)
            spill()
        elif isinstance(item, CrawlNotes):
            counted.records += 1
    return counted


def _apart(contents: Iterator[Content | Damage | Note], offset: int) -> Iterator[Record | Damage]:
    """The records from `offset` on, each with the first MAX_CONTENT bytes of its block."""
    for one in contents:
        if one.offset < offset or isinstance(one, Note):
            continue
        if isinstance(one, Damage):
            yield one._replace(is_miscut=False)
        elif one.records:
            data = one.data
            if data is None:
                data = first_bytes(one.pieces(), MAX_CONTENT)
            headers, start, is_arc = parse_header(data)
            size = content_length(headers)
            yield Record(one.offset, one.length, headers, data[start : start + size], size, None, is_arc)


def count_own_records(
    read_at: ReadAt,
    scratch: ScratchFiles,
    counter: OwnCounter,
    tally: Tally,
    spill: Callable[[], None],
    chunk: int = CHUNK,
    begin: Callable[[int], str] = lambda number: "",
) -> Counted:
    """The same with a user's own counter. It gets every record but warcinfo. `begin` is called before each."""
    counted = Counted()
    for record in full_records(read_at, scratch, chunk, counted.findings.add):
        if isinstance(record, Damage):
            counted.findings.add(record)
            continue
        if record.kind == b"warcinfo":
            continue
        counted.records += 1
        if reason := begin(counted.records):
            counted.findings.add(Damage(record.offset, reason, SKIPPED))
            continue
        try:
            for item, number in counter.pairs(record):
                tally.add(item, number)
            counted.counted += 1
        except BadRecord as error:
            counted.findings.add(Damage(record.offset, str(error), error.hint))
        if record.is_cut:
            counted.findings.add(Note(record.offset, CUT_RECORD))
        spill()
    return counted


def _reader(
    counter: Counter, tally: Tally, spill: Callable[[], None], counted: Counted
) -> ReadCommon[Record | CrawlNotes]:
    """A function that counts most records by itself, and returns the others that may have something to count."""
    general = _general_reader(counter, counted)
    if native.count is None or native.Tally is None or not counter.compiled:
        return general
    if not isinstance(tally, native.Tally):
        return general
    count = partial(native.count, tally, counter.compiled)  # None for a record that is not of the common kind

    def take(data: bytes | bytearray, offset: int, length: int) -> Record | CrawlNotes | Outcome:
        found = count(data)
        if found is None:
            return general(data, offset, length)
        counted.records += 1
        if found:
            counted.counted += 1
            spill()
        return Outcome.NO_LINE

    return take


def _general_reader(counter: Counter, counted: Counted) -> ReadCommon[Record | CrawlNotes]:
    """A function that returns the record, if its type is not one of those without anything to count."""
    shapes = HeaderShapes()  # with them, only those fields are returned that indexes need
    others = counter.others - {b"warcinfo"}

    def take(data: bytes | bytearray, offset: int, length: int) -> Record | CrawlNotes | Outcome:
        try:
            found = take_whole(offset, length, data, shapes, others)
        except RecordError:
            return Outcome.NOT_COMMON
        if found is Outcome.NO_LINE:
            counted.records += 1
        return found

    return take


def _count(record: Record, archive: Archive | None, counter: Counter, tally: Tally, counted: Counted) -> None:
    try:
        whole = _whole(record, archive)
        notes = counter.add(whole, tally)
        counted.counted += 1
        if counter.needs_all and len(whole.block) < record.size:
            reason = f"the record has {record.size} bytes; only the first {MAX_CONTENT >> 20} MiB are counted"
            counted.findings.add(Damage(record.offset, reason))
        for text in notes or ():
            counted.findings.add(Note(record.offset, text))
    except NotWanted as reason:
        if text := str(reason):
            counted.skipped[text] = counted.skipped.get(text, 0) + 1
    except BadRecord as error:
        counted.findings.add(Damage(record.offset, str(error), error.hint))
    except Exception as error:  # whatever a strange record leads to
        counted.findings.add(Damage(record.offset, blame_record(error), HINT))


def _whole(record: Record, archive: Archive | None) -> Record:
    """The record with its whole block, which readers cut; the first MAX_CONTENT of a very large one.

    Without an archive, it has these.
    """
    if len(record.block) == record.size or archive is None:
        return record
    try:
        content = archive.record(record.offset, record.length).content()
        parts = record_parts(record, content)
        pieces = filter(None, chain([parts.http_head], parts.payload))
        block = first_bytes(pieces, MAX_CONTENT)[:MAX_CONTENT]
    except NoRecord as error:
        raise BadRecord(str(error)) from None
    headers, _, _ = parse_header(parts.header)
    return record._replace(headers=headers, block=block)
