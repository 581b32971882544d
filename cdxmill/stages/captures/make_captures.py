"""Records -> captures, each with what related records add to it."""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Note, Record
from cdxmill.formats.archives.arc_header import odd_field
from cdxmill.formats.lines.cdxj import with_notes
from cdxmill.stages.captures.capture_of import capture_of
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.select_records import Dated, select
from cdxmill.stages.records.join_records import Asked, Notes, asked_by, belongs_to, crawl_notes

_NO_NOTES: Notes = (None, None)


def make_captures(
    found: Iterator[Record | CommonLine | CrawlNotes | Damage | Note],
    filename: bytes,
    options: CaptureOptions,
) -> Iterator[Capture | bytes | Damage | Note]:
    """A capture for each record that gets a line, a whole line for a CommonLine. Damage and Note pass through.

    A crawler's metadata record that follows its response adds charset and languages. With
    `post_append`, a request beside its response adds the query at the end of the key.
    `filename` is a field of each line. The order is that of the records.
    """
    latest = _Latest(filename, options)
    for item in found:
        if isinstance(item, CrawlNotes):
            latest.add_notes(item)
            continue
        if isinstance(item, CommonLine):
            finished = latest.replace_by(item, item.record_id)
        elif isinstance(item, Record):
            latest.add_related(item)
            selected = select(item, options)
            if not isinstance(selected, Dated):
                if selected is not None:
                    yield selected
                continue
            if selected.timestamp == b"-":
                yield Note(item.offset, "missing or invalid date; the timestamp is -")
            elif item.is_arc and (odd := odd_field(item.headers)):
                yield Note(item.offset, odd)
            finished = latest.replace_by(selected, item.headers.get(b"warc-record-id"))
        else:
            yield item
            continue
        if finished is not None:
            yield finished
    if (finished := latest.finished()) is not None:
        yield finished


def _only_key(asked: Asked | None) -> Asked | None:
    """The key without method and body, which belong to the line of the response."""
    return asked and (asked[0], None, None)


class _Latest:
    """The latest record that gets a line, and what related records add to it."""

    def __init__(self, filename: bytes, options: CaptureOptions) -> None:
        self._filename, self._options = filename, options
        self._made: CommonLine | Dated | None = None
        self._record_id: bytes | None = None
        self._notes = _NO_NOTES
        self._request: Record | None = None
        self._asked: Asked | None = None

    def finished(self) -> Capture | bytes | None:
        """The capture or the line of the record; None if there is no record yet."""
        made = self._made
        if made is None:
            return None
        if isinstance(made, CommonLine):
            return with_notes(made.start, *self._notes, made.end)
        return capture_of(made, self._notes, self._asked, self._filename, self._options)

    def replace_by(self, made: CommonLine | Dated, record_id: bytes | None) -> Capture | bytes | None:
        """Make this the latest record; returns `finished` of the one before."""
        asked = (
            self._asked_by_request(made) if self._request is not None and isinstance(made, Dated) else None
        )
        finished = self.finished()
        self._made, self._record_id, self._notes, self._asked = made, record_id, _NO_NOTES, asked
        return finished

    def _asked_by_request(self, made: Dated) -> Asked | None:
        """What the latest request adds to the record `made`. A request and its response get the same key."""
        request, before = self._request, self._made
        assert request is not None
        if made.record is request:
            is_answered = isinstance(before, Dated) and belongs_to(request, before.record)
            return _only_key(self._asked) if is_answered else None
        if not belongs_to(request, made.record):
            return None
        asked = asked_by(request, made.url, self._options.urlkey)
        if isinstance(before, Dated) and before.record is request:
            self._asked = _only_key(asked)
        return asked

    def add_notes(self, notes: CrawlNotes) -> None:
        """Add notes about the latest record. Empty notes do not replace earlier ones."""
        found = (notes.charset, notes.languages)
        if notes.concurrent_to == self._record_id and found != _NO_NOTES:
            self._notes = found

    def add_related(self, record: Record) -> None:
        """Add what a request or a metadata record says about the latest record."""
        kind, made = record.headers.get(b"warc-type"), self._made
        about = record.headers.get(b"warc-concurrent-to")
        if kind == b"metadata" and about is not None:
            self.add_notes(CrawlNotes(about, *crawl_notes(record.block)))
        elif kind == b"request" and self._options.post_append:
            self._request = record
            if isinstance(made, Dated) and belongs_to(record, made.record):
                self._asked = asked_by(record, made.url, self._options.urlkey) or self._asked
