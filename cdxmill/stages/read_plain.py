"""Records of an uncompressed archive: each ends where its Content-Length says.

The closing line ends are not part of a record's range, as in pywb and cdxj-indexer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdxmill.capture import Damage, Headers, Record
from cdxmill.formats.arc_header import SEARCH as ARC_SEARCH
from cdxmill.formats.warc_header import MAX_HEADER
from cdxmill.stages.take_record import (
    BLOCK_HEAD,
    BlankContent,
    BlockReader,
    NotARecord,
    RecordError,
    content_length,
    parse_header,
    wants_digest,
)
from cdxmill.stages.window import Window

_PIECE = 1 << 20
_BLANK = 1 << 10
_RECORD_START = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])[^\n]*\n(?=[A-Za-z])|" + ARC_SEARCH.pattern)


def read_plain(window: Window) -> Iterator[Record | Damage]:
    """Every record of the file in `window`; what gets no record is told as Damage."""
    pos = 0
    while True:
        pos = _skip_blank(window, pos)
        if not window.get(pos, 1):
            return
        try:
            record = _record_at(window, pos)
        except RecordError as error:
            damage, pos = _damaged(window, pos, error)
            yield damage
        else:
            yield record
            pos += record.length


def _skip_blank(window: Window, pos: int) -> int:
    while head := window.get(pos, _BLANK):
        rest = head.lstrip(b"\r\n \t")
        pos += len(head) - len(rest)
        if rest:
            break
    return pos


def _record_at(window: Window, pos: int) -> Record:
    headers, start, is_arc = _header_at(window, pos)
    size = content_length(headers)
    block = window.get(pos + start, min(size, BLOCK_HEAD))
    is_large = size > BLOCK_HEAD
    digest = _digest(window, pos + start, headers, block, size) if is_large and wants_digest(headers) else None
    end = pos + start + size
    if size and not window.get(end - 1, 1):
        have = window.end(pos) - pos - start
        raise RecordError(f"Content-Length is {size}, but the file ends {have} bytes into the block")
    _check_what_follows(window, end, is_arc)
    return Record(pos, start + size, headers, block, size, digest, is_arc)


def _header_at(window: Window, pos: int) -> tuple[Headers, int, bool]:
    try:
        return parse_header(window.get(pos, BLOCK_HEAD))
    except NotARecord:
        raise
    except RecordError:
        return parse_header(window.get(pos, 2 * MAX_HEADER))


def _digest(window: Window, pos: int, headers: Headers, block: bytes, size: int) -> bytes | None:
    body = BlockReader(headers, block, size)
    while body.missing and (piece := window.get(pos, min(_PIECE, body.missing))):
        body.feed(piece)
        pos += len(piece)
    return body.digest()


def _check_what_follows(window: Window, end: int, is_arc: bool) -> None:
    """A record, the file's end, or at least the line ends that close this one."""
    following = _skip_blank(window, end)
    try:
        parse_header(window.get(following, BLOCK_HEAD))
    except NotARecord:
        closing = b"\n" if is_arc else b"\r\n\r\n"
        if window.get(end, len(closing)) != closing:
            raise RecordError(
                "Content-Length is wrong: no record and no line end follows the block"
            ) from None
    except (BlankContent, RecordError):
        pass


def _damaged(window: Window, pos: int, error: RecordError) -> tuple[Damage, int]:
    following = window.search(_RECORD_START, pos + 1)
    end = following if following >= 0 else window.end(pos)
    return Damage(pos, f"{error.reason}; {end - pos} bytes skipped", error.hint), end
