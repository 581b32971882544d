"""The text of a CDX file: read from gzip or plain bytes, and checked line by line.

CDXJ   <key> <timestamp> {...}
CDX    <key> <timestamp> and further fields, the same number in all lines of the file

A timestamp is digits, `-` or empty. Empty lines and ` CDX` headers may be anywhere. This module needs nothing
but Python, so that it runs on any node of a Hadoop cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import eq

from cdxmill.errors import InputError
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.regex import regex
from cdxmill.stages.lines.line_lists import Piece, is_capture_line
from cdxmill.stages.native import odd_line as _native_odd_line
from cdxmill.stages.window import MemberError, Window, inflate

MAX_LINE = 16 << 20
"""Bytes of the longest line. `index` writes up to about 10 MiB: a header has up to 1 MiB, and a byte of it takes up to
3 bytes in a key and 6 in JSON."""

CDXJ = 0
"""The number of fields of CDXJ lines, as `fields_of` returns it."""

REBUILD = "rebuild this index"
"""What the user can do about a corrupt CDX file."""
_ARCHIVE = "it is an archive, not an index; index it first with cdxmill index"
_ARCHIVE_STARTS = (b"WARC/", b"filedesc://")


_LEAST_FIELDS = 3
_TIMESTAMP = regex(rb"\d*|-")
_SHOWN = 80


class LineError(ValueError):
    """A line is not a CDX line. `number` is its number from 1, `reason` starts with a verb, `line` is its start."""

    def __init__(self, number: int, reason: str, line: bytes = b"") -> None:
        self.number, self.reason, self.line = number, reason, line
        super().__init__(f"line {number} {reason}")


def name_of(fields: int) -> str:
    """The name of a format: CDXJ, or CDX with a number of fields."""
    return f"CDX with {fields} fields" if fields else "CDXJ"


def fields_of(line: bytes) -> int | None:
    """The number of fields of a valid line, `CDXJ` for a CDXJ line; None if the line is neither CDXJ nor CDX.

    >>> fields_of(b'com,a)/ 2020 {"url": "x"}'), fields_of(b"com,a)/ 2020 http://a.com/ - 200"), fields_of(b"<html>")
    (0, 5, None)
    """
    line = line[:-1] if line.endswith(b"\r") else line
    parts = line.split(b" ", 2)
    if len(parts) < _LEAST_FIELDS or not parts[0] or not _TIMESTAMP.fullmatch(parts[1]):
        return None
    if parts[2].startswith(b"{"):
        return CDXJ if parts[2].rstrip().endswith(b"}") else None
    return 3 + parts[2].count(b" ")


def checked(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces of a file, each as soon as it is checked. Raises LineError at the first line that is invalid."""
    check = LineCheck()
    for piece in pieces:
        check.take(piece)
        yield piece
    check.end()


class LineCheck:
    """Checks the lines of a text, which comes in pieces. Memory: the line that has begun, at most MAX_LINE."""

    def __init__(self) -> None:
        self._fields: int | None = None
        """Those of the first capture line, None before it."""
        self._lines = 0
        self._begun: list[bytes | bytearray] = []
        self._size = 0

    def take(self, piece: bytes | bytearray) -> None:
        """Check the lines that end in the next piece. Raises LineError."""
        first, start = piece.find(b"\n"), 0
        if first >= 0:
            if self._begun:
                start = first + 1
                line = b"".join((*self._begun, piece[:start]))
                self._limit(len(line) - 1)
                self._whole_lines(line, 0, len(line))
            stop = piece.rfind(b"\n") + 1
            self._whole_lines(piece, start, stop)
            self._begun, self._size, start = [], 0, stop
        if start < len(piece):
            self._begin(piece[start:])

    def end(self) -> None:
        """Check the last line if it has no LF: other tools write files so. Raises LineError."""
        line = b"".join(self._begun)
        if self._fields is not None and is_capture_line(line) and not self._is_whole(line):
            raise LineError(self._lines + 1, f"is truncated, the file ends in it: {line[-_SHOWN:]!r}")
        self._line(line)

    def _is_whole(self, line: bytes) -> bool:
        return fields_of(line) == self._fields and (self._fields != CDXJ or _has_json(line))

    def _begin(self, piece: bytes | bytearray) -> None:
        """Keep a part of a line that ends in a later piece. It is checked now: it may be endless."""
        self._begun.append(piece)
        self._size += len(piece)
        self._limit(self._size)
        if b"\0" in piece:
            self._line(b"".join(self._begun))

    def _whole_lines(self, text: bytes | bytearray, start: int, stop: int) -> None:
        while start < stop:
            if self._fields is not None:
                start, passed = odd_line(text, start, stop, self._fields)
                self._lines += passed
            if start < stop:
                end = text.index(b"\n", start)
                self._line(bytes(text[start:end]))
                start = end + 1

    def _limit(self, size: int) -> None:
        if size > MAX_LINE:
            raise LineError(self._lines + 1, f"is longer than {MAX_LINE >> 20} MiB")

    def _line(self, line: bytes) -> None:
        self._limit(len(line))
        if b"\0" in line:
            raise LineError(self._lines + 1, "has NUL bytes", line[: min(line.index(b"\0"), _SHOWN)])
        if is_capture_line(line):
            fields = fields_of(line)
            if fields is None:
                name = "CDX or CDXJ" if self._fields is None else name_of(self._fields)
                raise LineError(self._lines + 1, f"is not a {name} line: {line[:_SHOWN]!r}", line[:_SHOWN])
            if self._fields is None:
                self._fields = fields
            elif fields != self._fields:
                reason = f"is {name_of(fields)}, but the lines before are {name_of(self._fields)}"
                raise LineError(self._lines + 1, f"{reason}: {line[:_SHOWN]!r}")
        self._lines += 1


def _has_json(line: bytes) -> bool:
    import json  # slow to import, and most files end with an LF

    try:
        json.loads(line.split(b" ", 2)[2].decode("utf-8", "surrogateescape"), strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def odd_line(text: bytes | bytearray, start: int, end: int, fields: int) -> tuple[int, int]:
    """The offset of the first line of `text[start:end]` that may be invalid, `end` if there is none; the lines before it.

    Requires: the range ends with an LF. A line in front of the offset is certainly valid.
    """
    if _native_odd_line is not None:
        return _native_odd_line(text, start, end, fields)
    found = _valid_lines(fields).match(text, start, end)
    offset = found.end() if found is not None else start
    return offset, text.count(b"\n", start, offset)


@lru_cache(maxsize=64)
def _valid_lines(fields: int) -> re.Pattern[bytes]:
    rest = rb"(?!\{)[^ \n\0]*(?: [^ \n\0]*){%d}" % (fields - 3) if fields else rb"\{[^\n\0]*\}"
    return re.compile(rb"(?:[^ \n\0]+ [0-9]+ %b\n)*" % rest)


_PLAIN_PIECE = 1 << 18
_QUICK_MEMBER = 1 << 20
_QUICK_CONTENT = 4 << 20


def read_cdx(path: str, window: Window, content: Callable[[Window], Iterator[Piece]]) -> Iterator[Piece]:
    """The text of the CDX file in `window`, each piece checked before it is passed on; `content` reads its bytes.

    Raises InputError if the file at `path` is empty or corrupt, or has a line that is no CDX line.
    """
    if not window.get(0, 1):
        raise InputError(path, "the file is empty", REBUILD)
    try:
        yield from checked(content(window))
    except LineError as error:
        is_archive = error.number == 1 and error.line.startswith(_ARCHIVE_STARTS)
        raise InputError(path, str(error), _ARCHIVE if is_archive else REBUILD) from None
    except MemberError as error:
        raise InputError(path, str(error), REBUILD) from None


def read_content(window: Window) -> Iterator[bytes]:
    """The content of the file in `window`, in non-empty pieces of at most 256 KiB.

    Raises MemberError if gzip data are corrupt or truncated.
    """
    return _gzip(window) if _is_gzip(window.get(0, len(GZIP_MAGIC))) else _plain(window)


def read_large_pieces(window: Window) -> Iterator[bytes | bytearray]:
    """As `read_content`, but a gzip member of up to 1 MiB, with up to 4 MiB of content, is one piece.

    It takes a tenth less time. The window should have a chunk of 1 MiB.
    """
    return _gzip_quickly(window) if window.get(0, len(GZIP_MAGIC)) == GZIP_MAGIC else read_content(window)


def _is_gzip(start: bytes) -> bool:
    """Also true if the file is truncated after one or two bytes, or one of the first three bytes is corrupt."""
    fits: int = sum(map(eq, start, GZIP_MAGIC))
    return fits >= min(len(start), 2) > 0


def _plain(window: Window) -> Iterator[bytes]:
    pos = 0
    while piece := window.get(pos, _PLAIN_PIECE):
        yield piece
        pos += len(piece)


def _gzip(window: Window) -> Iterator[bytes]:
    pos = 0
    while window.get(pos, 1):
        member = inflate(window, pos)
        yield from member
        pos = member.end


def _gzip_quickly(window: Window) -> Iterator[bytes | bytearray]:
    from cdxmill.formats.archives.small_member import inflate_members  # Hadoop's nodes lack its libraries

    pos = 0
    while window.get(pos, 1):
        buffer, index = window.at(pos, _QUICK_MEMBER)
        start = index
        for content, end in inflate_members(buffer, index, _QUICK_CONTENT):
            yield content
            pos, index = pos + end - index, end
        if index == start:
            member = inflate(window, pos)
            yield from member
            pos = member.end
