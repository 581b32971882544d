"""Records of a gzip archive with one member per record (WARC 1.1, annex D; ARC likewise).

Two ways lead through a member. The quick one guesses that it ends where the next gzip
magic stands, and has libdeflate prove it. Where that fails for whatever reason, the
careful one inflates it piece by piece, in bounded memory, and can tell what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdxmill.capture import Damage, Record
from cdxmill.formats.gzip_member import MAGIC, inflate_whole
from cdxmill.stages.inflate import MemberError, inflate
from cdxmill.stages.take_record import (
    BlankContent,
    NotARecord,
    RecordError,
    is_unwanted,
    parse_header,
    take_stream,
    take_whole,
)
from cdxmill.stages.window import Window

QUICK_MEMBER = 1 << 20
"""Compressed bytes of a member up to which the quick way is tried; larger ones are streamed."""
QUICK_CONTENT = 16 << 20
_MAGIC = re.compile(re.escape(MAGIC))


def read_gzip(window: Window, unwanted: frozenset[bytes] = frozenset()) -> Iterator[Record | Damage]:
    """Every record of the file in `window`; what gets no record is told as Damage.

    Records of `unwanted` types are checked, but may be left out.
    """
    pos = 0
    while True:
        buffer, index = window.at(pos, QUICK_MEMBER)
        if index == len(buffer):
            return
        end = _guess_end(buffer, index, len(buffer) - index < QUICK_MEMBER)
        data = inflate_whole(memoryview(buffer)[index:end], QUICK_CONTENT) if end > index else None
        if data is None:
            found, pos = _read_carefully(window, pos)
        elif unwanted and is_unwanted(data, unwanted):
            found, pos = None, pos + end - index
        else:
            found, pos = _take(window, pos, end - index, data)
        if found is not None:
            yield found


def _guess_end(buffer: bytes, index: int, at_end: bool) -> int:
    if buffer[index : index + 3] != MAGIC:
        return -1
    end = buffer.find(MAGIC, index + 18)
    return len(buffer) if end < 0 and at_end else end


def _take(window: Window, pos: int, length: int, data: bytearray) -> tuple[Record | Damage | None, int]:
    try:
        return take_whole(pos, length, data), pos + length
    except RecordError as error:
        return _refused(window, pos, pos + length, error)


def _read_carefully(window: Window, pos: int) -> tuple[Record | Damage | None, int]:
    """What stands at `pos` (None for an empty member), and where to go on."""
    member = inflate(window, pos)
    try:
        try:
            record = take_stream(pos, member)
        except RecordError as error:
            for _ in member:
                pass
            return _refused(window, pos, member.end, error)
    except MemberError as error:
        return _damaged(window, pos, error)
    return record._replace(length=member.end - pos), member.end


def _refused(window: Window, pos: int, end: int, error: RecordError) -> tuple[Damage | None, int]:
    if isinstance(error, BlankContent):
        return None, end
    if isinstance(error, NotARecord):
        end, _ = next_member(window, end)
    return Damage(pos, error.reason, error.hint), end


def _damaged(window: Window, pos: int, error: MemberError) -> tuple[Damage, int]:
    end, more = next_member(window, pos + 1)
    if error.cut and not more:
        return Damage(pos, str(error), "the file is cut: fetch it again"), end
    return Damage(pos, f"{error}; {end - pos} bytes skipped", "fetch the file again if you can"), end


def next_member(window: Window, pos: int) -> tuple[int, bool]:
    """The next offset from `pos` where a member starts that holds a record's start.

    The file's end and False where there is none.
    """
    while (found := window.search(_MAGIC, pos)) >= 0:
        if _starts_record(window, found):
            return found, True
        pos = found + 1
    return window.end(pos), False


def _starts_record(window: Window, pos: int) -> bool:
    try:
        parse_header(next(inflate(window, pos), b""))
    except NotARecord:
        return False
    except RecordError:
        return True
    except MemberError:
        return False
    return True
