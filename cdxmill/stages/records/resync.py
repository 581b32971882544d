"""The search for the next record after damage, in a time that does not grow with the square of the file's size."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import NamedTuple

from cdxmill.stages.records.parse_header import starts_record
from cdxmill.stages.window import MemberError, Window

_MIN_COST = 1 << 8
"""Bytes that a failed probe counts at least."""
_FREE = 16 << 20
_SHARE = 3


class Probe(NamedTuple):
    """Whether a record starts at an offset; if not, how many bytes were looked at."""

    is_start: bool
    cost: int


RECORD_START = Probe(True, 0)


def probe_content(first_bytes: Callable[[int], bytes]) -> Probe:
    """Whether decompressed content starts with a record header; `first_bytes(size)` returns its start."""
    cost = 0

    def read(size: int) -> bytes:
        nonlocal cost
        cost = size
        return first_bytes(size)

    return RECORD_START if starts_record(read, is_certain=False) else Probe(False, cost)


class Resync:
    """The search for the next record in a file, at each match of `pattern`.

    A file can have a match at every byte, each followed by long data. Therefore the costs of failed probes are summed
    up. Once they are several times the bytes searched, the search skips what a failed probe has looked at.
    """

    def __init__(self, window: Window, pattern: re.Pattern[bytes], probe: Callable[[int], Probe]) -> None:
        self._window, self._pattern, self._probe = window, pattern, probe
        self._spent = 0

    def after(self, pos: int, cost: int) -> int:
        """The offset of the first record after the damage at `pos`, found in `cost` bytes, or the file's size."""
        return self.first(self._step(pos, cost))

    def inside(self, pos: int, end: int, end_of_member: Callable[[int], int]) -> int:
        """The offset of the first of the whole members that end at `end`; `end` if there are none.

        For damage that seems to reach from `pos` to `end`: a truncated member and a whole copy of it inflate together,
        up to the end of the copy. Records that are the payload of another record do not lead up to `end`.
        `end_of_member(offset)` returns the end of the valid member there, or raises MemberError.
        """
        cost = 0
        while (pos := self.after(pos, cost)) < end:
            reached = pos
            with contextlib.suppress(MemberError):
                while reached < end:
                    reached = end_of_member(reached)
            if reached == end:
                return pos
            cost = reached - pos
        return end

    def first(self, pos: int) -> int:
        """The offset of the first record from `pos` on, or the file's size."""
        while (found := self._window.search(self._pattern, pos)) >= 0:
            probe = self._probe(found)
            if probe.is_start:
                return found
            pos = self._step(found, probe.cost)
        return self._window.end()

    def _step(self, pos: int, cost: int) -> int:
        cost = max(cost, _MIN_COST)
        self._spent += cost
        return pos + (1 if self._spent <= _FREE + _SHARE * (pos + cost) else cost)
