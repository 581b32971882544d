"""Reads an archive in process and checks that every byte of it is accounted for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Note, Record
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.common_line import common_reader
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.take_record import ReadCommon

Found = Record | CommonLine | CrawlNotes | Damage | Note

_SKIPPED = re.compile(r"; (\d+) bytes skipped$")
_EMPTY_MEMBERS = re.compile(rb"(?:\x1f\x8b\x08.{7}(?:\x03\0|\x01\0\0\xff\xff)\0{8})*", re.S)


class Findings(NamedTuple):
    """What an archive led to: lines as (offset, length), and the damage that was named."""

    lines: list[tuple[int, int]]
    damage: list[Damage]
    notes: list[Note]


def findings(data: bytes) -> Findings:
    """Index `data` as the command does. Raises AssertionError where bytes are not accounted for."""
    items: list[Record | Damage | Note] = []
    found = _indexed(_noted(data, items))
    _check_accounts(data, items)
    options = CaptureOptions()
    assert found == _indexed(_read(data, options.lineless)), "a look at a glance saw something else"
    common = common_reader(b"x", options)
    assert found == _indexed(_read(data, options.lineless, common)), "the quick way saw something else"
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


def _read(data: bytes, lineless: frozenset[bytes], common: ReadCommon | None = None) -> Iterator[Found]:
    return read_records(lambda offset, size: data[offset : offset + size], lineless, read_common=common)


def _noted(data: bytes, items: list[Record | Damage | Note]) -> Iterator[Record | Damage | Note]:
    """All items, every record with its place in the file, noted as they come."""
    for item in _read(data, frozenset()):
        assert not isinstance(item, CrawlNotes | CommonLine)
        items.append(item)
        yield item


def _check_accounts(data: bytes, items: list[Record | Damage | Note]) -> None:
    """Records and damage follow each other; between them is nothing that could be a record."""
    pos = 0
    is_open = False
    for item in items:
        assert item.offset >= pos, f"{item} lies before {pos}"
        assert is_open or _is_innocent(data[pos : item.offset]), (
            f"{pos}-{item.offset} is passed over silently"
        )
        pos, is_open = item.offset, False
        if isinstance(item, Record):
            pos += item.length
        elif isinstance(item, Damage):
            skipped = _SKIPPED.search(item.reason)
            pos += int(skipped[1]) if skipped else 1
            is_open = skipped is None
    assert pos <= len(data) or is_open, "more is accounted for than is there"
    assert is_open or _is_innocent(data[pos:]), f"{pos}-{len(data)} is passed over silently"


def _is_innocent(data: bytes) -> bool:
    """Line ends, empty gzip members and frames without content hold no record."""
    return not data.strip(b"\r\n \t") or _EMPTY_MEMBERS.fullmatch(data) is not None or _is_skippable(data)


def _is_skippable(data: bytes) -> bool:
    while data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50:
        data = data[8 + int.from_bytes(data[4:8], "little") :]
    return not data
