"""A damaged record of an uncompressed archive whose payload is an archive: the records in it are no captures.

    WARC/1.0 ... no Content-Length | WARC/1.0 ... inner | closing | WARC/1.0 ... inner | closing | closing | WARC/1.0 ...

The search for the next record finds the first inner one. Where the damaged record ends is known

1. from its Content-Length, if that leads to another record, or to the end of the file or of the inner records;
2. from the closing line ends of the last inner record, which are followed by those of the damaged record;
   In an ARC file, each has one line end;
3. if the file is truncated: where it ends. Then the first inner record is where the payload has to start.
"""

from __future__ import annotations

from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.formats.archives.warc_header import parse_fields
from cdxmill.regex import regex
from cdxmill.stages.records.parse_header import RecordError, content_length, read_header, starts_record
from cdxmill.stages.records.record_parts import BLOCK_HEAD
from cdxmill.stages.records.resync import Resync
from cdxmill.stages.window import Window

_WARC, _CLOSING = b"WARC/", b"\r\n\r\n"
_HEAD = 1 << 16
"""Bytes of the longest damaged header that is looked at."""
_SHORTEST = 32
"""Bytes. No header is shorter, unless it breaks off."""
_HEAD_END = regex(rb"\r?\n\r?\n")
_DAMAGED_START = regex(rb"[^\n]{0,32}\nWARC-[A-Z]")
"""The start of a record with a damaged version."""
_ARC_LINE = regex(rb"[a-z]{1,16}:[^\s]+ [^\n]*\n")
_GAP = 64
_FREE, _SHARE = 16 << 20, 3
"""The limit of bytes that were passed for damaged records with an unknown end; see Resync."""
_MIN_COST = 1 << 12
"""Bytes that each of them counts at least: to pass one takes as long as to read these."""


class _Header(NamedTuple):
    """What can be read of a damaged header, where its block starts, and where it ends if Content-Length is right."""

    fields: Headers
    start: int
    end: int | None


class _Stretch(NamedTuple):
    """The records from an offset on: their number, their end, and whether the closing of another record follows."""

    number: int
    end: int
    is_closed: bool


class ArchiveInside:
    """Finds the end of damaged records in the file in `window`. `resync` searches for its records."""

    def __init__(self, window: Window, resync: Resync) -> None:
        self._window, self._resync = window, resync
        self._spent = 0

    def end_of(self, pos: int, found: int, is_loose: bool) -> tuple[int, int]:
        """Where the damaged record at `pos` ends, and the number of records in its payload.

        `found` is the offset of the first record after `pos`. `is_loose`: the records of the file are followed by more
        line ends than usual.
        """
        window = self._window
        if not window.peek(found, 1) or self._is_garbage(pos, found):
            return found, 0
        header = self._header(pos, found)
        if header is not None and header.end is not None and header.end > found and self._is_right(header):
            return self._next(header.end), self._number(found, header.end)
        is_payload = header is not None and self._starts_payload(header, found)
        if is_loose and header is not None and not header.fields:
            is_payload = False  # the second line end of an ARC record may be usual there
        stop = -1 if header is None or header.end is None else header.end
        walk = self._walk(found, stop, is_payload)
        if walk.is_closed and (is_payload or self._is_closing(walk, is_loose)):
            return self._resync.first(walk.end), walk.number
        if header is None or header.end is None:
            return found, 0
        following = self._resync.first(walk.end)
        if walk.number and walk.end == header.end < following:  # its own closing is damaged
            return following, walk.number
        if is_payload and not window.peek(header.end, 1) and not window.peek(walk.end, 1):
            return window.end(), walk.number
        return found, 0

    def _is_garbage(self, pos: int, found: int) -> bool:
        """Whether too few bytes come before a record for a header with that record in its payload."""
        return found - pos < _SHORTEST and self._window.peek(pos, len(_WARC)) != _WARC

    def _header(self, pos: int, found: int) -> _Header | None:
        """The header at `pos`. It ends before `found`, even if its blank line is missing."""
        data = self._window.get(pos, min(_HEAD, found - pos))
        if _ARC_LINE.match(data):
            return _Header({}, pos + data.index(b"\n") + 1, None)
        blank = _HEAD_END.search(data)
        if blank is None and len(data) < found - pos:
            return None
        size = len(data) if blank is None else blank.end()
        fields, start = parse_fields(data[:size] + b"\n", 0)[0], pos + size
        try:
            return _Header(fields, start, start + content_length(fields))
        except RecordError:
            return _Header(fields, start, None)

    def _is_right(self, header: _Header) -> bool:
        """Whether another record, or the end of the file, follows the block, and no digest is that of another block."""
        from cdxmill.stages.records.swallowed import swallows_records

        window, (fields, start, end) = self._window, header
        assert end is not None
        if window.peek(end, len(_CLOSING)) != _CLOSING:
            return False
        following = self._next(end)
        if window.peek(following, 1) and not starts_record(lambda size: window.peek(following, size)):
            return False
        block = window.get(start, min(end - start, BLOCK_HEAD))
        return not swallows_records(window, start, end - start, fields, block)

    def _starts_payload(self, header: _Header, found: int) -> bool:
        """Whether the payload of the damaged record starts with a record: the one at `found`, or a damaged one."""
        if found - header.start > _HEAD:
            return False
        data = self._window.get(header.start, found - header.start)
        payload = data.partition(_CLOSING)[2] if data.startswith(b"HTTP/") else data
        return (not payload and (not data or data.endswith(_CLOSING))) or bool(_DAMAGED_START.match(payload))

    def _next(self, pos: int) -> int:
        """The offset after the line ends at `pos`."""
        while gap := self._window.get(pos, _GAP):
            rest = gap.lstrip(b"\r\n")
            pos += len(gap) - len(rest)
            if rest:
                break
        return pos

    def _number(self, pos: int, end: int) -> int:
        """The number of records that start between two offsets."""
        number = 0
        while pos < end:
            ends = self._ends_at(pos)
            number += ends is not None
            pos = self._resync.first(pos + 1) if ends is None else ends[0]
        return number

    def _walk(self, pos: int, stop: int, is_payload: bool) -> _Stretch:
        """The records from `pos` on, or up to `stop`. If they are a payload, damaged ones between them are passed."""
        number, is_closed = 0, False
        while not is_closed and pos != stop:
            ends = self._ends_at(pos)
            if ends is not None:
                number, (pos, is_closed) = number + 1, ends
            elif is_payload and self._window.peek(pos, 1) and self._spent <= _FREE + _SHARE * pos:
                after = self._resync.first(pos + 1)
                if number and after - pos <= len(_CLOSING):  # a damaged closing
                    return _Stretch(number, pos, True)
                self._spent += max(after - pos, _MIN_COST)
                pos = after
            else:
                break
        return _Stretch(number, pos, is_closed)

    def _ends_at(self, pos: int) -> tuple[int, bool] | None:
        """The end of the record at `pos`, and whether the closing of another record follows; None if it is damaged."""
        window = self._window
        try:
            headers, start, is_arc = read_header(lambda size: window.peek(pos, size))
            end = pos + start + content_length(headers)
        except RecordError:
            return None
        gap = window.peek(end, _GAP)
        line_ends = gap[: len(gap) - len(gap.lstrip(b"\r\n"))]
        if not line_ends:
            return None
        is_closed, size = _closes(line_ends, is_arc, gap[len(line_ends) :])
        return end + size, is_closed

    def _is_closing(self, walk: _Stretch, is_loose: bool) -> bool:
        """Whether the line ends after some records are really those of a record around them.

        Some files have more line ends than usual at their end, or after each record.
        """
        start = self._next(walk.end)
        if not self._window.peek(start, 1):
            return False
        if walk.number > 1:
            return True
        following = self._ends_at(start)
        return not is_loose and (following is None or not following[1])


def _closes(line_ends: bytes, is_arc: bool, rest: bytes) -> tuple[bool, int]:
    """Whether line ends after a block are those of this record and of one around it; the number of its own."""
    is_before_arc = bool(rest) and not rest.startswith(_WARC)
    if is_arc and line_ends == b"\n\n" and (is_before_arc or not rest):
        return True, 1
    if is_arc:
        return line_ends.endswith(_CLOSING), len(line_ends) - len(_CLOSING) * line_ends.endswith(_CLOSING)
    own = len(_CLOSING) if line_ends.startswith(_CLOSING) else len(line_ends)
    around = line_ends[own:]
    return around.startswith(_CLOSING) or (around == b"\n" and is_before_arc), own
