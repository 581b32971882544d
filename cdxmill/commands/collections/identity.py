"""Whether an archive to add is in the cluster already: under its name, or under another one.

Some lines from all parts of its index are looked up. If the cluster has all of these records under another name, all lines
are looked up, so that an archive is refused only if the cluster has every record of it. A record is the same if its key,
timestamp, offset, length and digest are.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from itertools import chain
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum import key_of
from cdxmill.formats.lines.capture_fields import field_reader, place_in
from cdxmill.inputs.cdx_files import CdxSource, read_pieces
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.drop_lines import LineRange, outside
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines

_READ = 1 << 16
"""Bytes of lines in each list."""
_FIRST, _LATER = 64, 4
"""Lines that are chosen from the first list, and from each later one: small files have one."""
_LOOKED_UP = 8
"""Lines of each archive that are looked up."""
_NAMES = 64
"""Archives of one file whose lines are looked up."""


class Known(Enum):
    """What the cluster has of an archive."""

    NOTHING = "none of its lines"
    SOME = "some of its lines, or all"
    OTHER_NAME = "its records, under another name"
    SOME_OTHER_NAME = "some of its records, under another name"


class KnownArchive(NamedTuple):
    """An archive, as its lines name it, and what the cluster has of it; `other` is that other name."""

    name: str
    known: Known
    other: str = ""


class LinesToKnow(NamedTuple):
    """The lines of a CDX file or cluster, in lists: `some` from all parts of it, and `everything`."""

    some: Iterable[list[bytes]]
    everything: Callable[[], Iterator[list[bytes]]]


def lines_in(source: CdxSource, excluded: Sequence[LineRange] = ()) -> LinesToKnow:
    """The lines of a CDX file. Those in `excluded` say nothing."""

    def everything() -> Iterator[list[bytes]]:
        for lines in split_lines(read_pieces(source.location), _READ):
            found = list(filter(is_capture_line, lines))
            yield outside(found, excluded) if excluded else found

    return LinesToKnow(everything(), everything)


def find_known(new: LinesToKnow, cluster: OpenCluster) -> list[KnownArchive]:
    """What a cluster has of the archives whose lines are in a CDX file or another cluster."""
    lines = defaultdict[bytes, list[bytes]](list)
    with suppress(InputError):  # reported when the file is sorted
        for line in _some_lines(new.some):
            with suppress(ValueError):
                lines[place_in(line)[0].filename].append(line)
    names = list(lines)[:: max(1, len(lines) // _NAMES)]
    return [_known(name, lines[name], new, cluster) for name in names]


def joined(files: Iterable[Sequence[KnownArchive]]) -> list[KnownArchive]:
    """What a cluster has of the archives of several files that are added together, or none of them."""
    found = defaultdict[str, list[KnownArchive]](list)
    for one in chain.from_iterable(files):
        found[one.name].append(one)
    return list(map(_joined, found.values()))


def _joined(parts: Sequence[KnownArchive]) -> KnownArchive:
    kinds = {one.known for one in parts}
    if len(kinds) == 1:
        return parts[0]
    if Known.SOME in kinds:
        return KnownArchive(parts[0].name, Known.SOME)
    return KnownArchive(parts[0].name, Known.SOME_OTHER_NAME, max(one.other for one in parts))


def _some_lines(lists: Iterable[list[bytes]]) -> Iterator[bytes]:
    wanted = _FIRST
    for lines in lists:
        yield from lines[:: max(1, len(lines) // wanted)]
        wanted = _LATER


def _known(name: bytes, lines: list[bytes], new: LinesToKnow, cluster: OpenCluster) -> KnownArchive:
    own = os.fsdecode(name)
    some = sorted(lines)[:: -(-len(lines) // _LOOKED_UP)]
    names = [_names_of(line, cluster) for line in some]
    if any(own in found for found in names):
        return KnownArchive(own, Known.SOME)
    others = set.intersection(*names)
    for other in sorted(others):
        if _is_copy(name, other, new, cluster):
            return KnownArchive(own, Known.OTHER_NAME, other)
    if others:
        return KnownArchive(own, Known.SOME_OTHER_NAME, min(others))
    return KnownArchive(own, Known.NOTHING)


def _is_copy(name: bytes, other: str, new: LinesToKnow, cluster: OpenCluster) -> bool:
    """Whether the cluster has all records of an archive under another name."""
    for lines in _until_damage(new.everything()):
        for line in lines or ():
            with suppress(ValueError):
                if place_in(line)[0].filename == name and other not in _names_of(line, cluster):
                    return False
        if lines is None:
            return False
    return True


def _until_damage(lists: Iterable[list[bytes]]) -> Iterator[list[bytes] | None]:
    """The lists, and None where they end too early. That is reported when the file is sorted."""
    try:
        yield from lists
    except InputError:
        yield None


_digest_of = field_reader("digest")


def _names_of(line: bytes, cluster: OpenCluster) -> set[str]:
    """The archives in which the cluster has the record of a line, as far as the fields of the line tell."""
    key = key_of(line)
    low, high = key + b" ", key + b"!"
    wanted = _record_of(line)
    found = set()
    for lines in cluster.lines(low, high):
        for other in lines:
            with suppress(ValueError):
                if _record_of(other) == wanted:
                    found.add(os.fsdecode(place_in(other)[0].filename))
    return found


def _record_of(line: bytes) -> tuple[int, int | None, str]:
    (_, offset, length), _ = place_in(line)
    return offset, length, _digest_of(line)
