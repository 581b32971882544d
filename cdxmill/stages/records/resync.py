"""Where reading goes on behind damage, in a time that does not grow with the file's square."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

from cdxmill.stages.inflate import MemberError
from cdxmill.stages.window import Window

_LEAST = 1 << 8
"""What a look costs at least, in bytes."""
_FREE = 16 << 20
_SHARE = 3


class Resync:
    """The search for the next record in a file, at every place that looks like a start.

    `in_vain(offset)` is 0 where a record starts at a match of `pattern`, else the bytes
    that were looked at to tell. A file can be made, or happen, to look like a start
    everywhere, each with long data behind. So bytes looked at in vain are summed up; once
    they are several times what lies behind, the search goes on behind what was looked at,
    not at the next byte, and none is looked at often.
    """

    def __init__(self, window: Window, pattern: re.Pattern[bytes], in_vain: Callable[[int], int]) -> None:
        self._window, self._pattern, self._in_vain = window, pattern, in_vain
        self._spent = 0

    def behind(self, pos: int, looked: int) -> int:
        """Where the next record starts behind the damage at `pos`, or the file's end.

        `looked` bytes were read at `pos` in vain.
        """
        return self.first(self._step(pos, looked))

    def inside(self, pos: int, end: int, behind_member: Callable[[int], int]) -> int:
        """Where whole members begin that lead up to `end`; `end` where there are none.

        For damage at `pos` that seems to reach to `end`: a member that broke off, and the
        same once more, inflate together up to the end of the second. Records that are the
        payload of another do not lead up to its end. `behind_member(offset)` is the offset
        behind the sound member there; it raises MemberError.
        """
        looked = 0
        while (pos := self.behind(pos, looked)) < end:
            reached = pos
            with contextlib.suppress(MemberError):
                while reached < end:
                    reached = behind_member(reached)
            if reached == end:
                return pos
            looked = reached - pos
        return end

    def first(self, pos: int) -> int:
        """Where the first record starts from `pos` on, or the file's end."""
        while (found := self._window.search(self._pattern, pos)) >= 0:
            looked = self._in_vain(found)
            if not looked:
                return found
            pos = self._step(found, looked)
        return self._window.end()

    def _step(self, pos: int, looked: int) -> int:
        looked = max(looked, _LEAST)
        self._spent += looked
        return pos + (1 if self._spent <= _FREE + _SHARE * (pos + looked) else looked)
