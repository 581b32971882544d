"""The byte range of a record in an archive -> the record, checked like in `index`, and those that belong to it.

No other bytes are read, except the dictionary of a zst file. So a range with more or less than one record is detected.

Common Crawl's crawler writes records in the order request, response, metadata; others write the request last. No index
line tells where they are. So records before the response are found by the start of a member or a header, and count
only if they end where the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.capture import CommonLine, CrawlNotes, Damage, Note, Record
from cdxmill.formats.archives.framing import GZIP_MAGIC, ZSTD_MAGIC
from cdxmill.regex import regex
from cdxmill.stages.records.parse_header import starts_record
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.read_units import Members, read_units
from cdxmill.stages.records.units import AHEAD, Units
from cdxmill.stages.window import CHUNK, MemberError, ReadAt, Window

if TYPE_CHECKING:
    from cdxmill.formats.archives.zstd_dictionary import Inflater

_HELD = 16 << 20
"""Maximum bytes of a range that is kept in memory, because it is read twice."""
_FIRST_READ = 16 << 10
"""Bytes that are read first of a record of unknown length. Half of the records of a crawl are shorter."""
_DICTIONARY_READ = 1 << 17
"""Bytes per read of a dictionary. zstd trains dictionaries of 110 KiB."""
_RANGE_PIECE = 1 << 18
AROUND = 32 << 10
"""Bytes before and after a response that are searched. Requests and crawl notes are much smaller."""
_TYPES = (b"request", b"metadata")
_START = regex(rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|WARC/1\.[01]\r\n")
_MOST = 8
"""Records on one side of a response."""
_END = 4
"""Bytes of the line ends between two records of an uncompressed file."""


class NoRecord(ValueError):
    """The range is not exactly one record. The text is the reason."""


class Archive:
    """An archive, read by `read_at(offset, size)`, from which single records are fetched.

    `open_start` opens the same file to read its dictionary. Without it, `read_at` reads that, too.
    """

    def __init__(
        self, read_at: ReadAt, open_start: Callable[[], AbstractContextManager[ReadAt]] | None = None
    ) -> None:
        self._read_at = read_at
        self._open_start = open_start or (lambda: nullcontext(read_at))
        self._whole: Archive | None = None

    def record(self, offset: int, length: int | None) -> FetchedRecord:
        """The record at `offset`, exactly `length` bytes long. Without a length, the record that begins there.

        Raises NoRecord, and the errors of `read_at`.
        """
        part = _Range(self._read_at, offset, length)
        first = CHUNK if length is not None else _FIRST_READ
        window = Window(part.read_at, first, CHUNK)
        start = window.get(0, 4)
        if not start:
            raise NoRecord("the file ends before this offset")
        units: Units | None = None
        if start == ZSTD_MAGIC:
            from cdxmill.stages.records.read_zst import Frames  # the library is slow to import

            units = Frames(window, self._inflater)
        elif start.startswith(GZIP_MAGIC):
            units = Members(window)
        if units is not None:
            items = read_units(units, ahead=min(AHEAD, first))
        elif starts_record(lambda size: window.get(0, size)):  # with a header that is odd, perhaps
            from cdxmill.stages.records.read_plain import read_plain

            items = read_plain(window)
        else:
            items = read_records(part.read_at)
        record = _only_record(items, length is None)
        part.limit(record.length)
        return FetchedRecord(record, part, units)

    def within(self, read_at: ReadAt) -> Archive:
        """The same archive, of which `read_at` reads only a part. The dictionary is that of the whole archive."""
        part = Archive(read_at)
        part._whole = self
        return part

    @cached_property
    def _inflater(self) -> Inflater:
        """With the dictionary at the start of the file, if there is one."""
        if self._whole is not None:
            return self._whole._inflater
        from cdxmill.stages.records.read_zst import Frames

        with self._open_start() as read_at:
            frames = Frames(Window(read_at, _DICTIONARY_READ))
            try:
                frames.read_dictionary()
            except MemberError as error:
                raise NoRecord(f"cannot read the zstd dictionary ({error})") from None
        return frames.inflater


class FetchedRecord:
    """One whole record. `record` is its parsed form, `content()` all of its bytes, decompressed."""

    def __init__(self, record: Record, part: _Range, units: Units | None) -> None:
        self.record = record
        self._part, self._units = part, units

    @property
    def is_gzip(self) -> bool:
        """Whether the stored bytes are a gzip member."""
        return isinstance(self._units, Members)

    @property
    def is_plain(self) -> bool:
        """Whether the stored bytes are not compressed."""
        return self._units is None

    def stored(self) -> Iterator[bytes]:
        """The bytes of the record as they are in the archive, in pieces."""
        return self._part.pieces()

    def content(self) -> Iterator[bytes]:
        """The bytes of the record, including the closing line ends, in pieces. Raises NoRecord."""
        if self._units is None:  # in a plain file, the range ends before the closing line ends
            yield from self._part.pieces()
            yield b"\n" if self.record.is_arc else b"\r\n\r\n"
            return
        try:
            yield from self._units.contents(0, self.record.length)
        except MemberError as error:
            raise NoRecord(str(error)) from None


class _Range:
    """A range of a file, read like a file of its own."""

    def __init__(self, read_at: ReadAt, start: int, length: int | None) -> None:
        self._read_at, self._start, self._length = read_at, start, length
        self.held: bytes | None = None
        if length is not None and length <= _HELD:
            self.held = read_at(start, length)

    def limit(self, length: int) -> None:
        """Cut the range to `length` bytes."""
        self._length = length
        if self.held is not None:
            self.held = self.held[:length]

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, fewer only at the end."""
        if self.held is not None:
            return self.held[offset : offset + size]
        if self._length is not None:
            size = max(0, min(size, self._length - offset))
        return self._read_at(self._start + offset, size) if size else b""

    def pieces(self) -> Iterator[bytes]:
        """All bytes of the range."""
        pos = 0
        while piece := self.read_at(pos, _RANGE_PIECE):
            yield piece
            pos += len(piece)


def _only_record(
    items: Iterator[Record | CommonLine | CrawlNotes | Damage | Note], may_be_followed: bool
) -> Record:
    """The record at the start of a range. Nothing may follow it, unless it `may_be_followed` by other records."""
    first = next(items, None)
    if not isinstance(first, Record):
        reason = first.reason if isinstance(first, Damage | Note) else "no record found"
        raise NoRecord(reason)
    if first.offset:
        raise NoRecord("no record starts at this offset")
    if not may_be_followed and (more := next(items, None)) is not None:
        reason = more.reason if isinstance(more, Damage) else "another record follows"
        raise NoRecord(f"the range has more than one record ({reason})")
    return first


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
        one = _record_between(archive, start, end, response.fetched.is_plain)
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


def _record_between(archive: Archive, start: int, end: int, is_plain: bool) -> Placed | None:
    """The record that fills the bytes from `start` to `end`. It is compressed, unless it `is_plain`.

    The bytes of a record can be in those of another one as they are: in its payload, or in a frame that saves nothing.
    """
    try:
        one = Placed(start, archive.record(start, end - start))
    except NoRecord:
        return None
    return one if one.next_start == end and one.fetched.is_plain == is_plain else None


def _is_related(record: Record, response: Placed) -> bool:
    """Whether a request or metadata record and the response name each other."""
    a, b = record.headers, response.fetched.record.headers
    if a.get(b"warc-type") not in _TYPES:
        return False
    pairs = ((a, b), (b, a))
    names = [(one.get(b"warc-concurrent-to"), other.get(b"warc-record-id")) for one, other in pairs]
    return any(named is not None and named == own for named, own in names)
