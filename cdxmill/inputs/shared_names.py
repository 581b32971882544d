"""Lines that name one archive, but are of records of two: two archives with one name, or an old index of one.

The starts of files are compared: of the first ones, all of them if they are small, and of those whose first lines name the
same archive. So of files with lines of one archive each, all that have one name are compared; other lines may not be.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain, islice, pairwise
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import place_in
from cdxmill.inputs.cdx_files import CdxSource, read_pieces
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines

_COMPARED = 1 << 18
"""Bytes of lines of each file that are compared: some hundred ranges of two archives hardly ever fit beside each other."""
_FIRST, _MOST, _NAMES = 4, 64, 200
"""Large files that are compared whatever they name, at most as many small ones or files of one name, and names."""
_PACKED = 8
"""How many bytes of lines a compressed byte is taken for."""


class Range(NamedTuple):
    """The byte range of a record, its timestamp, and the number of the file that has its line."""

    start: int
    end: int
    timestamp: bytes
    file: int


def two_archives(sources: Sequence[CdxSource]) -> Iterator[str]:
    """A note for each archive of whose records the ranges overlap."""
    by_name = defaultdict[bytes, list[CdxSource]](list)
    for source in sources:
        if source.archive:
            by_name[source.archive].append(source)
    shared = islice((found[:_MOST] for found in by_name.values() if len(found) > 1), _NAMES)
    clashes = dict(chain.from_iterable(map(_clashes, (_first(sources), *shared))))
    for name, (one, other) in islice(clashes.items(), _NAMES):
        files = f"{one}: note: has" if one == other else f"{one} and {other}: note: both have"
        yield (
            f"{files} lines of {os.fsdecode(name)}, but of different records: two archives have this name, or one index is old"
        )


def _first(sources: Sequence[CdxSource]) -> list[CdxSource]:
    """The first local files, of which no more bytes are compared than of _FIRST large ones. Others would cost requests."""
    found = [source for source in sources if not source.location.is_remote][:_MOST]
    sizes = accumulate(min(source.size * _PACKED, _COMPARED) for source in found)
    return [source for source, size in zip(found, sizes, strict=True) if size <= _FIRST * _COMPARED]


def _clashes(sources: Sequence[CdxSource]) -> Iterator[tuple[bytes, tuple[str, str]]]:
    """The archives of which files have records that cannot be of one archive, with two of the files, or one twice."""
    by_name = defaultdict[bytes, list[Range]](list)
    for number, source in enumerate(sources):
        for name, found in _ranges(source, number):
            by_name[name].append(found)
    for name, ranges in by_name.items():
        for one, following in pairwise(sorted(ranges)):
            is_same = (one.start, one.timestamp) == (following.start, following.timestamp)
            if following.start < one.end and not is_same:
                yield name, (sources[one.file].path, sources[following.file].path)
                break


def _ranges(source: CdxSource, number: int) -> Iterator[tuple[bytes, Range]]:
    """The archive and the range of each of the first lines of a file. Lines without a length have none."""
    left = _COMPARED
    with suppress(InputError):  # reported when the file is sorted
        for lines in split_lines(read_pieces(source.location), _COMPARED):
            for line in filter(is_capture_line, lines):
                with suppress(ValueError):
                    (filename, offset, length), time = place_in(line)
                    if length:
                        yield filename, Range(offset, offset + length, time, number)
            left -= sum(map(len, lines))
            if left < 0:
                return
