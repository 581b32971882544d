"""What is in a member or frame that is not exactly one record: the records that a plain file of its content would have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cdxmill.capture import Damage
from cdxmill.stages.records.read_plain import read_plain
from cdxmill.stages.window import LOCAL_CHUNK, Window

_LOOKED_AT = 16 << 20
"""Bytes of the content in which records are counted."""


class Inside(NamedTuple):
    """The number of records in a content, and of its damaged ones; the first of these; `is_all` of the content."""

    records: int
    damaged: int
    first: Damage | None
    is_all: bool

    def __str__(self) -> str:
        """Return the numbers, and the reason of the first damage."""
        where = "" if self.is_all else f" in the first {_LOOKED_AT >> 20} MiB of its content"
        if self.first is None:
            return f"{self.records}{where}"
        reason = self.first.reason.rpartition("; ")[0]
        damaged = f"{self.damaged} damaged ({reason}, at byte {self.first.offset})"
        return f"{self.records}, and {damaged}{where}"


def look_inside(pieces: Iterator[bytes]) -> Inside | None:
    """What the content in `pieces` contains; None if that is less than two records."""
    content, is_all = _start_of(pieces)
    records, damage, end = 0, list[Damage](), 0
    for item in read_plain(Window(lambda offset, size: content[offset : offset + size], LOCAL_CHUNK)):
        if isinstance(item, Damage):
            damage.append(item)
        else:
            records += 1
            end = item.offset + item.length
    if not is_all and damage and damage[-1].offset >= end:
        damage.pop()  # the record that reaches over the end of what was looked at
    if is_all and records + len(damage) < 2:
        return None
    return Inside(records, len(damage), next(iter(damage), None), is_all)


def _start_of(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """The first bytes of a content, and whether they are all of it. Reads it to its end."""
    held, is_all = bytearray(), True
    for piece in pieces:
        if len(held) < _LOOKED_AT:
            held += piece
        else:
            is_all = False
    return bytes(held), is_all
