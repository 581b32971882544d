"""Counts of items: in memory, in runs of lines, and their sums.

A line of a run is `<item> TAB <count> TAB <name of the run>`. So the lines of different runs differ, and the merge of
runs, which removes equal lines, keeps them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from cdxmill.regex import regex
from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.sort_lines import Create, Run, write_run
from cdxmill.stages.pages.html_tags import start_tags

if TYPE_CHECKING:
    from cdxmill.stages import _native

MAX_ITEM = 1000
"""Bytes of the longest item. Longer ones are cut, and counted by what is left."""
_OVERHEAD = 160
"""Bytes that Python adds to an item and its count."""
_SPACE = regex(
    rb"(?:[\t-\r\x1c- ]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80)+"
)
"""What `str.split()` takes for white space, in UTF-8."""
_BREAKS = bytes.maketrans(b"\t\n\r", b"   ")
Tally: TypeAlias = "DictTally | _native.Tally"
"""Both give the same lines."""
_LIST = 1 << 12
"""Lines per list."""


class DictTally:
    """Counts of items, which are bytes without TAB, CR and LF, without compiled code."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes of memory, as a guess."""
        return self._bytes + _OVERHEAD * len(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, item: bytes, count: int, /) -> None:
        """Count an item that `clean_item` has returned."""
        if item in self._counts:
            self._counts[item] += count
        else:
            self._counts[item] = count
            self._bytes += len(item)

    def absorb(self, other: Any, /) -> None:
        """Add the counts of another tally of the same kind, which is empty then."""
        for item, count in other._counts.items():
            self.add(item, count)
        other._counts, other._bytes = {}, 0

    def add_words(self, text: bytes | bytearray | memoryview, /) -> None:
        """Count the words of a text in UTF-8: all that white space separates. Invalid bytes belong to words."""
        for word in _SPACE.split(bytes(text)):
            if word:
                self.add(cut_item(word), 1)

    def add_tags(self, html: bytes | bytearray | memoryview, /) -> None:
        """Count the tags of a page."""
        for tag in start_tags(bytes(html)):
            self.add(tag, 1)

    def take(self, end: bytes, /) -> bytes:
        """Return the lines `<item> TAB <count>`, each with `end` behind it, sorted as bytes. Empties the tally."""
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


def spill(tally: Tally, create: Create, name: str) -> Run:
    """Write the counts of a tally as the run `name`. The tally is empty then."""
    lines = len(tally)
    text = tally.take(b"\t%b\n" % name.encode())
    with create(name) as file:
        return write_run(file, name, [TextBlock(lines, text)] if lines else [])


def sum_lines(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The sorted lines of runs -> lines `<item> TAB <count>`, one per item, in lists.

    >>> list(sum_lines([[b"a\\t1\\t0", b"a\\t2\\t1"], [b"b\\t1\\t0"]]))
    [[b'a\\t3', b'b\\t1']]
    """
    return sum_counts([line.rpartition(b"\t")[0] for line in lines] for lines in lists)


def sum_counts(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Sorted lines `<item> TAB <count>` -> such lines, one per item, in lists."""
    last, total = b"", 0
    lines: list[bytes] = []
    for given in lists:
        for line in given:
            item, _, count = line.partition(b"\t")
            if item == last:
                total += int(count)
                continue
            if last:
                lines.append(b"%b\t%d" % (last, total))
            last, total = item, int(count)
        if len(lines) >= _LIST:
            yield lines
            lines = []
    if last:
        yield [*lines, b"%b\t%d" % (last, total)]
