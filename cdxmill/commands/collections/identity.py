"""Whether an archive to add is in the cluster already: under its name, or under another one.

Some lines of its index are looked up. An archive is the same if all of them are in the cluster, with the same offset, length,
timestamp and digest.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum import key_of
from cdxmill.formats.lines.capture_fields import field_reader, place_in
from cdxmill.inputs.cdx_files import CdxSource, read_pieces
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines

_READ = 1 << 16
"""Bytes of lines, from the start of each file, of which some are looked up."""
_LOOKED_UP = 8
"""Lines of each archive that are looked up."""
_NAMES = 64
"""Archives of one file whose lines are looked up."""


class Known(Enum):
    """What the cluster has of an archive."""

    NOTHING = "none of its lines"
    SOME = "some of its lines"
    ALL = "its lines"
    OTHER_NAME = "its records, under another name"


class KnownArchive(NamedTuple):
    """An archive, as its lines name it, and what the cluster has of it; `other` is that other name."""

    name: str
    known: Known
    other: str = ""


def find_known(source: CdxSource, cluster: OpenCluster) -> list[KnownArchive]:
    """What a cluster has of the archives whose lines are at the start of a CDX file."""
    lines = defaultdict[bytes, list[bytes]](list)
    with suppress(InputError):  # reported when the file is sorted
        for line in _first_lines(source):
            with suppress(ValueError):
                lines[place_in(line)[0].filename].append(line)
    return [_known(os.fsdecode(name), found, cluster) for name, found in islice(lines.items(), _NAMES)]


def _first_lines(source: CdxSource) -> Iterator[bytes]:
    for lines in split_lines(read_pieces(source.location), _READ):
        yield from filter(is_capture_line, lines)
        return


def _known(name: str, lines: list[bytes], cluster: OpenCluster) -> KnownArchive:
    some = sorted(lines)[:: -(-len(lines) // _LOOKED_UP)]
    names = [_names_of(line, cluster) for line in some]
    if any(name in found for found in names):
        return KnownArchive(name, Known.ALL if all(name in found for found in names) else Known.SOME)
    others = set.intersection(*names)
    return KnownArchive(name, Known.OTHER_NAME, min(others)) if others else KnownArchive(name, Known.NOTHING)


_digest_of = field_reader("digest")


def _names_of(line: bytes, cluster: OpenCluster) -> set[str]:
    """The archives in which the cluster has the record of a line, as far as offset, length and digest tell."""
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
