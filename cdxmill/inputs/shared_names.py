"""CDX files that name one archive, but have records of two: two archives with one name, or an old index of one.

Only files whose first lines name the same archive are compared, by the start of each. So it costs nothing otherwise.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import place_in
from cdxmill.inputs.cdx_files import CdxSource, read_pieces
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines

_COMPARED = 1 << 18
"""Bytes of lines of each file that are compared: some hundred ranges of two archives hardly ever fit beside each other."""
_MOST, _NAMES = 64, 200
"""Files of one name, and names, that are compared."""


class Range(NamedTuple):
    """The byte range of a record, its timestamp, and the number of the file that has its line."""

    start: int
    end: int
    timestamp: bytes
    file: int


def two_archives(sources: Iterable[CdxSource]) -> Iterator[str]:
    """A note for each archive of whose records the ranges overlap."""
    by_name = defaultdict[bytes, list[CdxSource]](list)
    for source in sources:
        if source.archive:
            by_name[source.archive].append(source)
    shared = ((name, found) for name, found in by_name.items() if len(found) > 1)
    for name, found in islice(shared, _NAMES):
        if (pair := _clash(name, found[:_MOST])) is not None:
            yield (
                f"{pair[0]} and {pair[1]}: note: both have lines of {os.fsdecode(name)}, but of different records: two archives"
                " have this name, or one index is old"
            )


def _clash(name: bytes, sources: Sequence[CdxSource]) -> tuple[str, str] | None:
    """Two of the files that have records of different archives."""
    ranges = sorted(one for number, source in enumerate(sources) for one in _ranges(name, source, number))
    for one, following in pairwise(ranges):
        is_same = (one.start, one.timestamp) == (following.start, following.timestamp)
        if one.file != following.file and following.start < one.end and not is_same:
            return sources[one.file].path, sources[following.file].path
    return None


def _ranges(name: bytes, source: CdxSource, number: int) -> Iterator[Range]:
    """The ranges of the first lines of a file that name an archive. Lines without a length have none."""
    left = _COMPARED
    with suppress(InputError):  # reported when the file is sorted
        for lines in split_lines(read_pieces(source.location), _COMPARED):
            for line in filter(is_capture_line, lines):
                with suppress(ValueError):
                    (filename, offset, length), time = place_in(line)
                    if filename == name and length:
                        yield Range(offset, offset + length, time, number)
            left -= sum(map(len, lines))
            if left < 0:
                return
