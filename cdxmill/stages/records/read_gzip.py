"""Records of a gzip archive with one member per record (WARC 1.1, annex D; ARC likewise).

Two ways lead through a member. The quick one guesses that it ends where the next gzip
magic stands, and has libdeflate prove it. Where that fails for whatever reason, the
careful one inflates it piece by piece, in bounded memory, and can tell what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from cdxmill.capture import CommonLine, CrawlNotes, Damage, Record
from cdxmill.formats.gzip_member import MAGIC, inflate_members
from cdxmill.formats.header_shape import HeaderShapes
from cdxmill.stages.inflate import MemberError, inflate, inflate_start
from cdxmill.stages.records.resync import Resync
from cdxmill.stages.records.take_record import (
    NO_ARCHIVE,
    RECOMPRESS,
    BlankContent,
    NotARecord,
    ReadCommon,
    RecordError,
    TooLong,
    starts_record,
    take_stream,
    take_whole,
)
from cdxmill.stages.window import Window

AHEAD = 1 << 17
"""So many bytes from a member on are in the window: nearly all members are shorter."""
QUICK_MEMBER = 1 << 20
"""Members of so many compressed bytes are whole in the window if need be; larger ones may be streamed."""
QUICK_CONTENT = 16 << 20
GZIP_START = re.compile(re.escape(MAGIC) + rb"[\x00-\x1f]")

REFETCH = "fetch the file again if you can"
CUT = "the file is cut: fetch it again"

Found = tuple[Record | Damage | None, int]
"""What stands in a place (None for nothing), and where to go on."""


def read_gzip(
    window: Window, lineless: frozenset[bytes] = frozenset(), read_common: ReadCommon | None = None
) -> Iterator[Record | CommonLine | CrawlNotes | Damage]:
    """Every record of the file in `window`; what gets no record is told as Damage.

    Records of the types `lineless` are checked, but may come as CrawlNotes or not at all.
    What `read_common` can read comes as it reads it.
    """
    careful = _CarefulReader(window)
    shapes = HeaderShapes()
    pos, ahead = 0, AHEAD
    found: Record | CommonLine | CrawlNotes | Damage | Literal[False] | None
    while True:
        buffer, index = window.at(pos, ahead)
        if index == len(buffer):
            return
        start = index
        for data, end in inflate_members(buffer, index, QUICK_CONTENT):
            found = read_common(data, pos, end - index) if read_common is not None else False
            if found is False:
                try:
                    found = take_whole(pos, end - index, data, shapes, lineless)
                except RecordError as error:
                    found, pos = careful.refused(pos, pos + end - index, error)
                    break
            if found is not None:
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


def looked_at_member(window: Window, pos: int) -> int:
    """0 where a member starts at `pos` whose content starts with a record header; else bytes looked at."""
    looked = 0

    def read(size: int) -> bytes:
        nonlocal looked
        looked = size
        return inflate_start(window, pos, size)

    return 0 if starts_record(read) else looked


class _CarefulReader:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._resync = Resync(window, GZIP_START, lambda pos: looked_at_member(window, pos))

    def read(self, pos: int) -> Found:
        """What stands at `pos`: a member of any size, sound or not."""
        member = inflate(self._window, pos)
        try:
            try:
                record = take_stream(pos, member)
            except RecordError as error:
                for _ in member:
                    pass
                return self.refused(pos, member.end, error)
        except MemberError as error:
            return self._damaged(pos, error)
        return record._replace(length=member.end - pos), member.end

    def refused(self, pos: int, end: int, error: RecordError) -> Found:
        """A sound member, but not exactly one record."""
        if isinstance(error, BlankContent):
            return None, end
        reason, hint = error.reason, error.hint
        if isinstance(error, TooLong) and self._goes_on(end):
            reason, hint = "the record goes on in the next member", RECOMPRESS
        elif not isinstance(error, NotARecord):
            return Damage(pos, reason, hint), end
        elif not pos:
            hint = NO_ARCHIVE
        end = self._resync.first(end)
        return Damage(pos, f"{reason}; {end - pos} bytes skipped", hint), end

    def _goes_on(self, pos: int) -> bool:
        """Whether a member stands at `pos` that starts no record but has content."""
        content = inflate_start(self._window, pos, len(MAGIC))
        return bool(content.strip(b"\r\n")) and looked_at_member(self._window, pos) > 0

    def _damaged(self, pos: int, error: MemberError) -> Found:
        end = error.reached
        if error.ended and not (self._window.get(end, 1) and looked_at_member(self._window, end)):
            end = self._resync.inside(pos, end, self._behind_member)
        else:
            end = self._resync.behind(pos, end - pos)
        if error.cut and not self._window.get(end, 1):
            return Damage(pos, str(error), CUT), end
        return Damage(pos, f"{error}; {end - pos} bytes skipped", REFETCH), end

    def _behind_member(self, pos: int) -> int:
        member = inflate(self._window, pos)
        for _ in member:
            pass
        return member.end
