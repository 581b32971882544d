"""Records of a gzip archive with one member per record (WARC 1.1, annex D; ARC likewise).

A member is read in one of two ways. The quick way assumes that the member ends at the next
gzip magic and lets libdeflate prove it. If that fails for any reason, the careful way inflates
the member piece by piece, in bounded memory, and reports what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeVar

from cdxmill.capture import CrawlNotes, Damage, Outcome, Record
from cdxmill.formats.archives.gzip_member import MAGIC
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
from cdxmill.stages.records.resync import Probe, Resync, probe_content
from cdxmill.stages.records.take_record import Found, ReadCommon, take_stream, take_whole
from cdxmill.stages.window import MemberError, Window, inflate, inflate_start

Common = TypeVar("Common")

AHEAD = 1 << 17
"""Bytes from the start of a member that are in the window. Nearly all members are shorter."""
QUICK_MEMBER = 1 << 20
"""Compressed bytes of the largest member that the quick way is tried on a second time. Larger ones are streamed."""
QUICK_CONTENT = 16 << 20
GZIP_START = re.compile(re.escape(MAGIC) + rb"[\x00-\x1f]")


def read_gzip(
    window: Window, lineless: frozenset[bytes] = frozenset(), read_common: ReadCommon[Common] | None = None
) -> Iterator[Record | Common | CrawlNotes | Damage]:
    """Every record of the file in `window`. What cannot be read as a record is reported as Damage.

    Records whose type is in `lineless` are checked, but may be returned as CrawlNotes or skipped.
    Content is first given to `read_common`, and what that returns is passed on.
    """
    careful = _CarefulReader(window)
    shapes = HeaderShapes()
    pos, ahead = 0, AHEAD
    no_line: Final = Outcome.NO_LINE
    not_common: Final = Outcome.NOT_COMMON
    found: Record | Common | CrawlNotes | Damage | Outcome | None
    while True:
        buffer, index = window.at(pos, ahead)
        if index == len(buffer):
            return
        start = index
        for data, end in inflate_members(buffer, index, QUICK_CONTENT):
            found = not_common if read_common is None else read_common(data, pos, end - index)
            if found is not_common:
                try:
                    found = take_whole(pos, end - index, data, shapes, lineless)
                except RecordError as error:
                    found, pos = careful.refused(pos, pos + end - index, error)
                    break
            if found is not no_line:
                yield found
            pos, index = pos + end - index, end
        else:
            if index == start and ahead < QUICK_MEMBER:
                ahead = QUICK_MEMBER
                continue
            ahead = AHEAD
            if index > start:
                continue
            found, pos = careful.read(pos)
        if found is not None:
            yield found


def probe_member(window: Window, pos: int) -> Probe:
    """Whether a member starts at `pos` whose content starts with a record header."""
    return probe_content(lambda size: inflate_start(window, pos, size))


class _CarefulReader:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._resync = Resync(window, GZIP_START, lambda pos: probe_member(window, pos))

    def read(self, pos: int) -> Found:
        """The member at `pos`, of any size, valid or not."""
        member = inflate(self._window, pos)
        is_miscut = False
        try:
            try:
                record = take_stream(pos, member)
            except RecordError as error:
                is_miscut = isinstance(error, SeveralRecords)
                for _ in member:
                    pass
                return self.refused(pos, member.end, error)
        except MemberError as error:
            return self._corrupt(pos, error, is_miscut)
        return Found(record._replace(length=member.end - pos), member.end)

    def refused(self, pos: int, end: int, error: RecordError) -> Found:
        """A valid member that is not exactly one record."""
        if isinstance(error, BlankContent):
            return Found(None, end)
        reason, hint, is_miscut = error.reason, error.hint, isinstance(error, SeveralRecords)
        if (isinstance(error, TooLong) or error.unfinished) and self._continues(end):
            reason, hint = "the record continues in the next gzip member", RECOMPRESS_MEMBERS
            is_miscut = True
        elif not isinstance(error, NotARecord):
            return Found(Damage(pos, reason, hint, is_miscut), end)
        elif not pos:
            hint = NOT_AN_ARCHIVE
        end = self._resync.first(end)
        return Found(Damage(pos, f"{reason}; {end - pos} bytes skipped", hint, is_miscut), end)

    def _continues(self, pos: int) -> bool:
        """Whether the member at `pos` has content that starts no record."""
        content = inflate_start(self._window, pos, len(MAGIC))
        return bool(content.strip(b"\r\n")) and not probe_member(self._window, pos).is_start

    def _corrupt(self, pos: int, error: MemberError, is_miscut: bool) -> Found:
        end = error.reached
        if error.ended and self._ends_well(end):
            end = self._resync.inside(pos, end, self._end_of_member)
        else:
            end = self._resync.after(pos, end - pos)
        if error.truncated and not self._window.get(end, 1):
            return Found(Damage(pos, str(error), FETCH_AGAIN, is_miscut), end)
        return Found(Damage(pos, f"{error}; {end - pos} bytes skipped", FETCH_AGAIN, is_miscut), end)

    def _ends_well(self, end: int) -> bool:
        """Whether a record, or the end of the file, follows at `end`."""
        return not self._window.get(end, 1) or probe_member(self._window, end).is_start

    def _end_of_member(self, pos: int) -> int:
        member = inflate(self._window, pos)
        for _ in member:
            pass
        return member.end
