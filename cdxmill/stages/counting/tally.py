"""Counts of items in memory: in C, or in a dictionary if nothing was compiled. Both give the same lines."""

from __future__ import annotations

import re
from typing import Any, Protocol

from cdxmill.stages import native
from cdxmill.stages.counting.tags import start_tags

MAX_ITEM = 1000
"""Bytes of the longest item. Longer ones are cut, and counted by what is left."""

_OVERHEAD = 160
"""Bytes that Python adds to an item and its count."""
_SPACE = re.compile(
    rb"(?:[\t-\r\x1c- ]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80)+"
)
"""What `str.split()` takes for white space, in UTF-8."""
_BREAKS = bytes.maketrans(b"\t\n\r", b"   ")


class Tally(Protocol):
    """Counts of items, which are bytes without TAB, CR and LF."""

    @property
    def size(self) -> int:
        """Bytes of memory, as a guess."""

    def __len__(self) -> int:
        """Return the number of different items."""

    def add(self, item: bytes, count: int, /) -> None:
        """Count an item that `clean_item` has returned."""

    def absorb(self, other: Any, /) -> None:
        """Add the counts of another tally of the same kind, which is empty then."""

    def add_words(self, text: bytes | bytearray | memoryview, /) -> None:
        """Count the words of a text in UTF-8: all that white space separates. Invalid bytes belong to words."""

    def add_tags(self, html: bytes | bytearray | memoryview, /) -> None:
        """Count the tags of a page (see tags.py)."""

    def take(self, end: bytes, /) -> bytes:
        """Return the lines `<item> TAB <count>`, each with `end` behind it, sorted as bytes. Empties the tally."""


class DictTally:
    """A tally without compiled code."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return self._bytes + _OVERHEAD * len(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, item: bytes, count: int, /) -> None:
        """Count an item."""
        if item in self._counts:
            self._counts[item] += count
        else:
            self._counts[item] = count
            self._bytes += len(item)

    def absorb(self, other: DictTally, /) -> None:
        """Add the counts of another tally."""
        for item, count in other._counts.items():
            self.add(item, count)
        other._counts, other._bytes = {}, 0

    def add_words(self, text: bytes | bytearray | memoryview, /) -> None:
        """Count the words of a text."""
        for word in _SPACE.split(bytes(text)):
            if word:
                self.add(cut_item(word), 1)

    def add_tags(self, html: bytes | bytearray | memoryview, /) -> None:
        """Count the tags of a page."""
        for tag in start_tags(bytes(html)):
            self.add(tag, 1)

    def take(self, end: bytes, /) -> bytes:
        """Return the lines, and empty the tally."""
        lines = sorted([b"%b\t%d%b" % (item, count, end) for item, count in self._counts.items()])
        self._counts, self._bytes = {}, 0
        return b"".join(lines)


def new_tally() -> Tally:
    """An empty tally."""
    return DictTally() if native.Tally is None else native.Tally()


def clean_item(item: bytes) -> bytes:
    """An item as a line can hold it: TAB, CR and LF become spaces, white space at the ends is removed, MAX_ITEM bytes.

    >>> clean_item(b" a\\tb\\r\\n")
    b'a b'
    """
    return cut_item(item.translate(_BREAKS).strip()).rstrip()


def cut_item(item: bytes) -> bytes:
    """The item, cut to MAX_ITEM bytes between two characters."""
    if len(item) <= MAX_ITEM:
        return item
    end = MAX_ITEM
    for _ in range(3):
        end -= item[end] & 0xC0 == 0x80
    return item[:end]
