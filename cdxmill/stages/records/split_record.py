"""A record in several members or frames. Content-Length decides where it ends, not what the next unit looks like.

header | HTTP head and payload, closing line ends              as IIPC's WARC-Zstd 1.0 allows
header | WARC/1.0 ... the payload is an archive ... | closing   no unit but the first starts a record of this file
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from cdxmill.capture import Record
from cdxmill.stages.records.parse_header import RecordError
from cdxmill.stages.records.record_parts import record_parts
from cdxmill.stages.records.take_record import check_rest, take_block
from cdxmill.stages.window import MemberError, Pieces

_CLOSING = b"\r\n\r\n"


class UnitContents(Protocol):
    """The members or frames of a file."""

    def content(self, pos: int) -> Pieces:
        """The content of the unit at `pos`. Iterating raises MemberError."""

    def first_bytes(self, pos: int, size: int) -> bytes:
        """The first `size` bytes of the content at `pos`, unchecked; b"" if no unit starts there."""

    def continues(self, pos: int, /) -> bool:
        """Whether the unit at `pos` continues the record before."""


class RecordContent:
    """The content of the unit at `pos` and of those that continue its record. `end` is that of the last read whole.

    `across`: all units that follow continue it, those that look like a record, too.
    """

    def __init__(self, units: UnitContents, pos: int, across: bool = False) -> None:
        self.end = pos
        self._units, self._unit, self._across = units, units.content(pos), across

    def __iter__(self) -> Iterator[bytes]:
        yield from self.rest_of_unit()
        while self._continues():
            self._unit = self._units.content(self.end)
            yield from self.rest_of_unit()

    def _continues(self) -> bool:
        if self._across:
            return bool(self._units.first_bytes(self.end, 1))
        return self._units.continues(self.end)

    def rest_of_unit(self) -> Iterator[bytes]:
        """The pieces of the current unit that were not read yet."""
        yield from self._unit
        self.end = self._unit.end


class _Ending:
    """Passes pieces on. `last` has the last bytes of them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self.last = pieces, b""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.last = (self.last + piece)[-2 * len(_CLOSING) :]
            yield piece


def take_across(units: UnitContents, pos: int) -> tuple[Record | None, int]:
    """The record at `pos` if it and its closing line ends fill several units; and how far the file was read.

    Requires: the record does not end in its first unit. A wrong Content-Length hardly ever leads to the end of a unit.
    If it does, the digest of the block tells, as in a plain file.
    """
    content = RecordContent(units, pos, across=True)
    ending = _Ending(iter(content))
    pieces = iter(ending)
    try:
        record, tail = take_block(pos, pieces)
        check_rest(tail, content.rest_of_unit(), record.is_arc)
    except (RecordError, MemberError):
        return None, content.end
    record = record._replace(length=content.end - pos)
    if not tail and units.first_bytes(content.end, len(_CLOSING) + 1) != _CLOSING:
        return None, content.end
    is_archive = (ending.last if not tail else ending.last.removesuffix(_CLOSING)).endswith(_CLOSING)
    if not is_archive and _is_refuted(units, record):
        return None, content.end
    return record, content.end


def _is_refuted(units: UnitContents, record: Record) -> bool:
    """Whether a digest in the header is that of other bytes."""
    from cdxmill.stages.records.swallowed import is_refuted

    content = iter(RecordContent(units, record.offset, across=True))
    parts = record_parts(record, content)
    return is_refuted(record.headers, parts.http_head, parts.payload)
