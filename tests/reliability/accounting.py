"""Reads an archive in process and checks that every byte of it is accounted for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Note, Record
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import common_reader
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.take_record import ReadCommon

Found = Record | CommonLine | CrawlNotes | Damage | Note

_SKIPPED = re.compile(r"; (\d+) bytes skipped$")
_EMPTY_MEMBERS = re.compile(rb"(?:\x1f\x8b\x08.{7}(?:\x03\0|\x01\0\0\xff\xff)\0{8})*", re.S)


class Findings(NamedTuple):
    """The result for an archive: lines as (offset, length), the reported damage, the notes."""

    lines: list[tuple[int, int]]
    damage: list[Damage]
    notes: list[Note]


def findings(data: bytes) -> Findings:
    """Index `data` as the command does. Raises AssertionError if bytes are not accounted for."""
    items: list[Record | Damage | Note] = []
    found = _indexed(_noted(data, items))
    _check_accounts(data, items)
    options = CaptureOptions()
    assert found == _indexed(_read(data, options.lineless)), "lineless records change the result"
    common = common_reader(b"x", options)
    assert found == _indexed(_read(data, options.lineless, common)), (
        "the compiled reader gives another result"
    )
    return found


def _indexed(read: Iterator[Found]) -> Findings:
    found = Findings([], [], [])
    for item in make_captures(read, b"x", CaptureOptions()):
        if isinstance(item, Capture):
            found.lines.append((item.offset, item.length))
        elif isinstance(item, bytes):
            values = json.loads(item.split(b" ", 2)[2])
            found.lines.append((int(values["offset"]), int(values["length"])))
        elif isinstance(item, Damage):
            found.damage.append(item)
        else:
            found.notes.append(item)
    return found


def _read(
    data: bytes, lineless: frozenset[bytes], common: ReadCommon[CommonLine] | None = None
) -> Iterator[Found]:
    return read_records(lambda offset, size: data[offset : offset + size], lineless, read_common=common)


def _noted(data: bytes, items: list[Record | Damage | Note]) -> Iterator[Record | Damage | Note]:
    """All items of an archive, also appended to `items`."""
    for item in _read(data, frozenset()):
        assert not isinstance(item, CrawlNotes | CommonLine)
        items.append(item)
        yield item


def _check_accounts(data: bytes, items: list[Record | Damage | Note]) -> None:
    """Check that records and damage follow each other, and that nothing between them could be a record."""
    pos = 0
    is_open = False
    for item in items:
        assert item.offset >= pos, f"{item} is before {pos}"
        assert is_open or _is_innocent(data[pos : item.offset]), f"{pos}-{item.offset} is skipped silently"
        pos, is_open = item.offset, False
        if isinstance(item, Record):
            pos += item.length
        elif isinstance(item, Damage):
            skipped = _SKIPPED.search(item.reason)
            pos += int(skipped[1]) if skipped else 1
            is_open = skipped is None
    assert pos <= len(data) or is_open, "more bytes are accounted for than the file has"
    assert is_open or _is_innocent(data[pos:]), f"{pos}-{len(data)} is skipped silently"


def _is_innocent(data: bytes) -> bool:
    """Whether `data` consists of line ends, empty gzip members or frames without content."""
    return not data.strip(b"\r\n \t") or _EMPTY_MEMBERS.fullmatch(data) is not None or _is_skippable(data)


def _is_skippable(data: bytes) -> bool:
    while data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50:
        data = data[8 + int.from_bytes(data[4:8], "little") :]
    return not data
