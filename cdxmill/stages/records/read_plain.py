"""Records of an uncompressed archive. A record ends where its Content-Length says.

As in pywb and cdxj-indexer, the closing line ends are not part of a record's range.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.capture import Damage, Headers, Record
from cdxmill.formats.archives.arc_header import KNOWN_SCHEME, MAX_LINE, is_usual
from cdxmill.formats.archives.arc_header import SEARCH as ARC_SEARCH
from cdxmill.messages import count
from cdxmill.regex import regex
from cdxmill.stages.records.archive_inside import ArchiveInside
from cdxmill.stages.records.parse_header import (
    FETCH_AGAIN,
    FETCH_IF_MISSING,
    NOT_AN_ARCHIVE,
    BrokenHeader,
    NotARecord,
    RecordError,
    content_length,
    read_header,
    starts_record,
)
from cdxmill.stages.records.record_parts import BLOCK_HEAD, RecordBlockReader, wants_digest
from cdxmill.stages.records.resync import RECORD_START, Probe, Resync
from cdxmill.stages.records.swallowed import swallows_records
from cdxmill.stages.window import Window

_LOOSE = 8
_LOOSE_ARC = 2
"""Line ends, in bytes, after a record: those of two."""
_BLANK = 1 << 10
_LIKE_ARC = regex(rb"[^\n]* \d{14} (?:[^ \n]* )?(?P<length>\d{1,15}) *\r?\n")
"""The end of a header line of ARC."""
_LINE_ENDS = b"\r\n \t"
PLAIN_START = regex(
    rb"WARC/(?:1\.[01]|0\.1[78])[ \t\r]{0,8}\n(?=[A-Za-z])|" + ARC_SEARCH.pattern, ARC_SEARCH.flags
)


def read_plain(window: Window) -> Iterator[Record | Damage]:
    """Every record of the file in `window`. What cannot be read as a record is reported as Damage."""
    resync = Resync(window, PLAIN_START, lambda pos: probe_header(window, pos))
    inside = ArchiveInside(window, resync)
    pos, is_loose = _skip_blank(window, 0), False
    while window.get(pos, 1):
        try:
            record = _record_at(window, pos, resync)
        except RecordError as error:
            if isinstance(error, BrokenHeader):
                end = pos + error.next
            elif isinstance(error, NotARecord) and (length := _unreadable_arc(window, pos)):
                end = pos + length
            else:
                end = resync.after(pos, probe_header(window, pos).cost)
            end, number = inside.end_of(pos, end, is_loose)
            yield _damage(pos, end, error, number)
            pos = end
        else:
            yield record
            end = pos + record.length
            pos = _skip_blank(window, end)
            is_loose = pos - end >= (_LOOSE_ARC if record.is_arc else _LOOSE)


def probe_header(window: Window, pos: int) -> Probe:
    """Whether a complete record header starts at `pos`."""
    cost = 0

    def read(size: int) -> bytes:
        nonlocal cost
        data = window.get(pos, size)
        cost = len(data)
        return data

    try:
        headers, _, is_arc = read_header(read)
    except RecordError:
        return Probe(False, cost)
    return RECORD_START if not is_arc or is_usual(headers) else Probe(False, cost)


def _skip_blank(window: Window, pos: int) -> int:
    while head := window.get(pos, _BLANK):
        rest = head.lstrip(_LINE_ENDS)
        pos += len(head) - len(rest)
        if rest:
            break
    return pos


def _record_at(window: Window, pos: int, resync: Resync) -> Record:
    headers, start, is_arc = read_header(lambda size: window.get(pos, size))
    size = content_length(headers)
    end = pos + start + size
    if not window.peek(end - 1, 1):
        raise _truncated(size, window.end() - pos - start)
    if not _is_followed(window, end, is_arc) and not (is_arc and _unreadable_arc(window, end + 1)):
        # Either garbage follows, or Content-Length is wrong. If the block is closed by line ends and no record
        # starts inside it, the length is right. ARC's single line end proves nothing: every line of a text has one.
        is_closed = not is_arc and window.peek(end, 4) == b"\r\n\r\n"
        if not is_closed or resync.first(pos + start) < end:
            raise RecordError("wrong Content-Length (no record follows the block)")
    block = window.get(pos + start, min(size, BLOCK_HEAD))
    if len(block) < min(size, BLOCK_HEAD):  # the file was truncated since the end of the block was read
        raise _truncated(size, len(block))
    if not is_arc and swallows_records(window, pos + start, size, headers, block):
        raise RecordError("the record breaks off and another one starts inside its block")
    digest = _digest(window, pos + start, headers, block, size) if wants_digest(headers) else None
    return Record(
        offset=pos,
        length=start + size,
        headers=headers,
        block=block,
        size=size,
        payload_digest=digest,
        is_arc=is_arc,
    )


def _digest(window: Window, pos: int, headers: Headers, block: bytes, size: int) -> bytes | None:
    body = RecordBlockReader(headers, block, size)
    for piece in window.pieces(pos, size):
        body.feed(piece)
    if body.missing:
        raise _truncated(size, size - body.missing)
    return body.digest()


def _truncated(size: int, have: int) -> RecordError:
    reason = f"truncated file or wrong Content-Length: {size} bytes expected, {have} found"
    return RecordError(reason, FETCH_AGAIN)


def _is_followed(window: Window, end: int, is_arc: bool) -> bool:
    """Whether another record, or the end of the file, follows a block that ends at `end`."""
    head = window.peek(end, _BLANK)
    rest = head.lstrip(_LINE_ENDS)
    following, is_all = end + len(head) - len(rest), len(head) < _BLANK
    if is_all and not rest:
        return True
    if is_arc:
        is_url = KNOWN_SCHEME.match(rest) is not None
        if not is_url and window.peek(following - 1, 1) != b"\n":
            return False  # inside a line: the rest of a header line looks like a header line, too
        if is_url and is_all and b"\n" not in rest:
            return True  # the file is truncated inside a header line
    return starts_record(lambda size: window.peek(following, size))


def _unreadable_arc(window: Window, pos: int) -> int:
    """The bytes of an ARC record whose header line cannot be read, but has its date and length: there, a record follows.

    0 if there is none. Only a line can start it.
    """
    if pos and window.peek(pos - 1, 1) != b"\n":
        return 0
    line = _LIKE_ARC.match(window.peek(pos, MAX_LINE))
    if line is None:
        return 0
    length = line.end() + int(line["length"])
    is_whole = window.peek(pos + length, 1) == b"\n" and _is_followed(window, pos + length, is_arc=True)
    return length + 1 if is_whole else 0


def _damage(pos: int, end: int, error: RecordError, inside: int) -> Damage:
    """The damage of a record with `inside` records in its payload."""
    hint, payload = error.hint, f"; its payload is an archive of {count(inside, 'record')}" if inside else ""
    if isinstance(error, NotARecord):
        hint = FETCH_IF_MISSING if pos else NOT_AN_ARCHIVE
    return Damage(pos, f"{error.reason}{payload}; {end - pos} bytes skipped", hint)
