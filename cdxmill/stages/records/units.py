"""What gzip members and Zstandard frames have in common: units that are decompressed alone, with one record each.

A unit is read in one of two ways. The quick way takes a unit that is small, in the window and valid as a whole. If
that fails for any reason, the careful way decompresses it piece by piece, in bounded memory, and reports what is wrong.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from cdxmill.capture import Damage, Note, Record
from cdxmill.stages.records.parse_header import FETCH_AGAIN, RecordError, SeveralRecords, TooLong
from cdxmill.stages.records.resync import RECORD_START, Probe, Resync, probe_content
from cdxmill.stages.records.split_record import RecordContent, take_across
from cdxmill.stages.records.take_record import check_rest, take_block
from cdxmill.stages.window import MemberError, Pieces, Window

AHEAD = 1 << 17
"""Bytes from the start of a unit that are in the window. Nearly all units are shorter."""
_FREE, _SHARE = 16 << 20, 3
"""The limit of bytes that failed searches for records in several units read; see Resync."""


class Found(NamedTuple):
    """What the units of a record contain (None if nothing), and the offset of the next."""

    item: Record | Damage | Note | None
    next: int


class Units(ABC):
    """The members or frames of a file. `start` finds where one may start. `name` is what one is called."""

    start: re.Pattern[bytes]
    whole_start: re.Pattern[bytes] | None = None
    """As `start`, of units without a record, too."""
    name: str
    to_repair: str
    """What the user can do if units do not have one record each."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._spent = 0

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

    def passed_over(self) -> Note | None:
        """What to note about units that were passed because they have no content."""
        return None

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
        return Resync(self.window, self.whole_start or self.start, self._probe_whole)

    def _probe_whole(self, pos: int) -> Probe:
        size = 0
        try:
            for piece in self.content(pos):
                size += len(piece)
        except MemberError as error:
            return Probe(False, max(error.reached - pos, size))
        return RECORD_START

    def take(self, pos: int) -> Found:
        """The record, or the damage, that starts at `pos`, of any size."""
        content, found = RecordContent(self, pos), None
        pieces = iter(content)
        try:
            try:
                record, tail = take_block(pos, pieces)
                check_rest(tail, content.rest_of_unit(), record.is_arc)
            except RecordError as error:
                found = error
                for _ in pieces:
                    pass
                return self._across(pos, content.end, error) or self.refused(pos, content.end, error)
        except MemberError as error:
            return self.corrupt(pos, error, found is not None and self._has_several(pos, found))
        return Found(record._replace(length=content.end - pos), content.end)

    def _across(self, pos: int, end: int, error: RecordError) -> Found | None:
        """The record at `pos` if it reaches over `end`, although its next unit looks like a record of its own.

        The payload of a record can be an archive. Content-Length tells.
        """
        if not isinstance(error, TooLong) or self._spent > _FREE + _SHARE * pos:
            return None
        record, reached = take_across(self, pos)
        if record is not None:
            return self.split(pos, record)
        self._spent += reached - pos
        return None

    def split(self, _pos: int, record: Record) -> Found:
        """What is reported of a record that has several units."""
        return Found(record, record.offset + record.length)

    def several(self, pos: int, end: int) -> Damage | None:
        """The damage of the units from `pos` to `end` if they contain several records; else None."""
        from cdxmill.stages.records.several_records import look_inside

        try:
            inside = look_inside(self.contents(pos, end))
        except MemberError:  # a file that changes while it is read
            return None
        if inside is None:
            return None
        reason = f"the {self.name} contains more than one record: {inside}; {end - pos} bytes skipped"
        return Damage(pos, reason, self.to_repair, is_miscut=True)

    def _has_several(self, pos: int, error: RecordError) -> bool:
        """Whether the unit at `pos`, which is corrupt, contains several records. `error`: why it is not one record."""
        from cdxmill.stages.records.several_records import look_inside

        return isinstance(error, SeveralRecords) or look_inside(_until_error(self.content(pos))) is not None

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


def _until_error(pieces: Pieces) -> Iterator[bytes]:
    with suppress(MemberError):
        yield from pieces
