"""Sorted CDX lines with 6 fields -> sorted CDXJ lines, in one pass.

Both begin with key and timestamp, so the order changes only among lines with the same key and timestamp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from cdxmill.formats.clusters.zipnum import key_of
from cdxmill.formats.lines.cdx_lines import convert_line
from cdxmill.stages.lines.line_lists import distinct


def convert_sorted(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The lines of sorted lists, converted, sorted, without duplicates. Raises ValueError.

    >>> list(convert_sorted([[b"a)/ 1 u 2 0 f", b"a)/ 2 u 10 0 f"], [b"a)/ 2 u 9 0 f"]]))[1][0][:30]
    b'a)/ 2 {"url": "u", "length": "'
    """
    held: list[bytes] = []
    for lines in lists:
        held += map(convert_line, lines)
        held.sort()
        start = bisect_left(held, key_of(held[-1]) + b" ") if held else 0
        if start:
            yield distinct(held[:start])
            held = held[start:]
    if held:
        yield distinct(held)
