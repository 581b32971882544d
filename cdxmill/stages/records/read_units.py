"""Records of a gzip archive, one per member (WARC 1.1, annex D), and the loop over units that `read_zst` has, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeVar

from cdxmill.capture import CrawlNotes, Damage, Note, Outcome, Record
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.formats.archives.small_member import inflate_members
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.regex import regex
from cdxmill.stages.records.parse_header import (
    NOT_AN_ARCHIVE,
    RECOMPRESS_MEMBERS,
    BlankContent,
    NotARecord,
    RecordError,
    TooLong,
)
from cdxmill.stages.records.take_record import ReadCommon, take_whole
from cdxmill.stages.records.units import AHEAD, Found, Units
from cdxmill.stages.window import Pieces, inflate, inflate_start

Common = TypeVar("Common")

QUICK_UNIT = 1 << 20
"""Compressed bytes of the largest unit that the quick way is tried on a second time. Larger ones are streamed."""
QUICK_CONTENT = 16 << 20
GZIP_START = regex(re.escape(GZIP_MAGIC) + rb"[\x00-\x1f]")


class Members(Units):
    """The gzip members of a file. The quick way assumes that a member ends at the next gzip magic, and proves it."""

    start = GZIP_START
    name, to_repair = "gzip member", RECOMPRESS_MEMBERS

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
        if (isinstance(error, TooLong) or error.unfinished) and self._goes_on(end):
            return self._split(pos, end)
        if (several := self.several(pos, end)) is not None:
            return Found(several, end)
        reason, hint = error.reason, error.hint
        if not isinstance(error, NotARecord):
            return Found(Damage(pos, reason, hint), end)
        end = self.first(end)
        return Found(
            Damage(pos, f"{reason}; {end - pos} bytes skipped", hint if pos else NOT_AN_ARCHIVE), end
        )

    def split(self, pos: int, record: Record) -> Found:
        """See Units. A record has to have one member."""
        return self._split(pos, pos + record.length)

    def _split(self, pos: int, end: int) -> Found:
        end = self.first(end)
        reason = f"the record continues in the next gzip member; {end - pos} bytes skipped"
        return Found(Damage(pos, reason, RECOMPRESS_MEMBERS, is_miscut=True), end)

    def reread(self, pos: int, end: int, error: RecordError) -> Found:
        """See Units. The next member may continue the record."""
        return self.take(pos) if isinstance(error, TooLong) else self.refused(pos, end, error)

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
    ahead: int = AHEAD,
) -> Iterator[Record | Common | CrawlNotes | Damage | Note]:
    """Every record from `pos` on; `ahead` bytes of the first are read at once. What cannot be read as a record is reported as Damage.

    Records whose type is in `lineless` are checked, but may be returned as CrawlNotes or skipped.
    Content is first given to `read_common`, and what that returns is passed on.
    """
    window = units.window
    no_line: Final = Outcome.NO_LINE
    not_common: Final = Outcome.NOT_COMMON
    found: Record | Common | CrawlNotes | Damage | Note | Outcome | None
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
                ahead = QUICK_UNIT if ahead >= AHEAD else AHEAD
                continue
            ahead = AHEAD
            if index > start:
                continue
            found, pos = units.take(pos)
        if found is not None:
            yield found
