"""Records of a gzip archive, one per member (WARC 1.1, annex D), and the base that `read_zst` has, too: one record per unit.

A unit is read in one of two ways. The quick way takes a unit that is small, in the window and valid as a whole. If
that fails for any reason, the careful way decompresses it piece by piece, in bounded memory, and reports what is wrong.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

from cdxmill.capture import CrawlNotes, Damage, Outcome, Record
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.formats.archives.small_member import inflate_members
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.records.parse_header import (
    FETCH_AGAIN,
    NOT_AN_ARCHIVE,
    RECOMPRESS_MEMBERS,
    BlankContent,
    NotARecord,
    RecordError,
    SeveralRecords,
    TooLong,
)
from cdxmill.stages.records.resync import RECORD_START, Probe, Resync, probe_content
from cdxmill.stages.records.take_record import ReadCommon, check_rest, take_block, take_whole
from cdxmill.stages.window import MemberError, Pieces, Window, inflate, inflate_start

Common = TypeVar("Common")

AHEAD = 1 << 17
"""Bytes from the start of a unit that are in the window. Nearly all units are shorter."""
QUICK_UNIT = 1 << 20
"""Compressed bytes of the largest unit that the quick way is tried on a second time. Larger ones are streamed."""
QUICK_CONTENT = 16 << 20
GZIP_START = re.compile(re.escape(GZIP_MAGIC) + rb"[\x00-\x1f]")


class Found(NamedTuple):
    """What the units of a record contain (None if nothing), and the offset of the next."""

    item: Record | Damage | None
    next: int


class Units(ABC):
    """The members or frames of a file. `start` finds where one may start."""

    start: re.Pattern[bytes]

    def __init__(self, window: Window) -> None:
        self.window = window

    @abstractmethod
    def whole(self, buffer: bytes, start: int) -> Iterator[tuple[bytearray | bytes, int]]:
        """The units of `buffer` from `start` on, in the quick way: the content of each and its end."""

    @abstractmethod
    def content(self, pos: int) -> Pieces:
        """The content of the unit at `pos`. Iterating raises MemberError."""

    @abstractmethod
    def first_bytes(self, pos: int, size: int) -> bytes:
        """The first `size` bytes of the content at `pos`, unchecked; b"" if no unit starts there."""

    @abstractmethod
    def refused(self, pos: int, end: int, error: RecordError) -> Found:
        """What is reported of a valid unit from `pos` to `end` that is not exactly one record."""

    def reread(self, pos: int, end: int, error: RecordError) -> Found:
        """As `refused`, of a unit that was read in the quick way."""
        return self.refused(pos, end, error)

    def continues(self, _pos: int) -> bool:
        """Whether the unit at `pos` continues the record before."""
        return False

    def contents(self, pos: int, end: int) -> Iterator[bytes]:
        """The content of the units from `pos` to `end`, in pieces. Raises MemberError."""
        while pos < end:
            buffer, index = self.window.at(pos, AHEAD)
            start = index
            for data, stop in self.whole(buffer[: index + end - pos], index):
                yield bytes(data)
                pos, index = pos + stop - index, stop
            if index == start:
                content = self.content(pos)
                yield from content
                pos = content.end

    def probe(self, pos: int) -> Probe:
        """Whether a unit starts at `pos` whose content starts with a record header."""
        return probe_content(lambda size: self.first_bytes(pos, size))

    def first(self, pos: int) -> int:
        """The offset of the first record from `pos` on, or the file's size."""
        return self._resync.first(pos)

    def next_whole(self, pos: int) -> int:
        """The offset of the first complete unit after the damage at `pos`, or the file's size."""
        return self._whole_units.after(pos, 1)

    @cached_property
    def _resync(self) -> Resync:
        return Resync(self.window, self.start, self.probe)

    @cached_property
    def _whole_units(self) -> Resync:
        return Resync(self.window, self.start, self._probe_whole)

    def _probe_whole(self, pos: int) -> Probe:
        size = 0
        try:
            for piece in self.content(pos):
                size += len(piece)
        except MemberError as error:
            return Probe(False, max(error.reached - pos, size, 1))
        return RECORD_START

    def take(self, pos: int) -> Found:
        """The record, or the damage, that starts at `pos`, of any size."""
        content = _RecordContent(self, pos)
        pieces, is_miscut = iter(content), False
        try:
            try:
                record, tail = take_block(pos, pieces)
                check_rest(tail, content.rest_of_unit(), record.is_arc)
            except RecordError as error:
                is_miscut = isinstance(error, SeveralRecords)
                for _ in pieces:
                    pass
                return self.refused(pos, content.end, error)
        except MemberError as error:
            return self.corrupt(pos, error, is_miscut)
        return Found(record._replace(length=content.end - pos), content.end)

    def corrupt(self, pos: int, error: MemberError, is_miscut: bool = False) -> Found:
        """The damage at `pos`, and the next record."""
        end = error.reached
        if error.ended and (not self.window.get(end, 1) or self.probe(end).is_start):
            end = self._resync.inside(pos, end, self._end_of)
        else:
            end = self._resync.after(pos, end - pos)
        if error.truncated and not self.window.get(end, 1):
            return Found(Damage(pos, str(error), FETCH_AGAIN, is_miscut), end)
        hint = error.hint or FETCH_AGAIN
        return Found(Damage(pos, f"{error}; {end - pos} bytes skipped", hint, is_miscut), end)

    def _end_of(self, pos: int) -> int:
        content = self.content(pos)
        for _ in content:
            pass
        return content.end


class _RecordContent:
    """The content of the unit at `pos` and of those that continue its record. `end` is that of the last read whole."""

    def __init__(self, units: Units, pos: int) -> None:
        self.end = pos
        self._units, self._unit = units, units.content(pos)

    def __iter__(self) -> Iterator[bytes]:
        yield from self.rest_of_unit()
        while self._units.continues(self.end):
            self._unit = self._units.content(self.end)
            yield from self.rest_of_unit()

    def rest_of_unit(self) -> Iterator[bytes]:
        """The pieces of the current unit that were not read yet."""
        yield from self._unit
        self.end = self._unit.end


class Members(Units):
    """The gzip members of a file. The quick way assumes that a member ends at the next gzip magic, and proves it."""

    start = GZIP_START

    def whole(self, buffer: bytes, start: int) -> Iterator[tuple[bytearray | bytes, int]]:
        """See Units."""
        return inflate_members(buffer, start, QUICK_CONTENT)

    def content(self, pos: int) -> Pieces:
        """See Units."""
        return inflate(self.window, pos)

    def first_bytes(self, pos: int, size: int) -> bytes:
        """See Units."""
        return inflate_start(self.window, pos, size)

    def refused(self, pos: int, end: int, error: RecordError) -> Found:
        """See Units."""
        if isinstance(error, BlankContent):
            return Found(None, end)
        reason, hint, is_miscut = error.reason, error.hint, isinstance(error, SeveralRecords)
        if (isinstance(error, TooLong) or error.unfinished) and self._goes_on(end):
            reason, hint = "the record continues in the next gzip member", RECOMPRESS_MEMBERS
            is_miscut = True
        elif not isinstance(error, NotARecord):
            return Found(Damage(pos, reason, hint, is_miscut), end)
        elif not pos:
            hint = NOT_AN_ARCHIVE
        end = self.first(end)
        return Found(Damage(pos, f"{reason}; {end - pos} bytes skipped", hint, is_miscut), end)

    def _goes_on(self, pos: int) -> bool:
        """Whether the member at `pos` has content that starts no record."""
        content = self.first_bytes(pos, len(GZIP_MAGIC))
        return bool(content.strip(b"\r\n")) and not self.probe(pos).is_start


def read_units(
    units: Units,
    pos: int = 0,
    shapes: HeaderShapes | None = None,
    lineless: frozenset[bytes] = frozenset(),
    read_common: ReadCommon[Common] | None = None,
) -> Iterator[Record | Common | CrawlNotes | Damage]:
    """Every record from `pos` on. What cannot be read as a record is reported as Damage.

    Records whose type is in `lineless` are checked, but may be returned as CrawlNotes or skipped.
    Content is first given to `read_common`, and what that returns is passed on.
    """
    window, ahead = units.window, AHEAD
    no_line: Final = Outcome.NO_LINE
    not_common: Final = Outcome.NOT_COMMON
    found: Record | Common | CrawlNotes | Damage | Outcome | None
    while True:
        buffer, index = window.at(pos, ahead)
        if index == len(buffer):
            return
        start = index
        for data, end in units.whole(buffer, index):
            found = not_common if read_common is None else read_common(data, pos, end - index)
            if found is not_common:
                try:
                    found = take_whole(pos, end - index, data, shapes, lineless)
                except RecordError as error:
                    found, pos = units.reread(pos, pos + end - index, error)
                    break
            if found is not no_line:
                yield found
            pos, index = pos + end - index, end
        else:
            if index == start and ahead < QUICK_UNIT:
                ahead = QUICK_UNIT
                continue
            ahead = AHEAD
            if index > start:
                continue
            found, pos = units.take(pos)
        if found is not None:
            yield found
