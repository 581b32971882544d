"""The tables of offsets that `recompress --offsets` writes beside new archives: where they are, and how they are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.formats.offset_table import HEADER, OffsetTable, names_of
from cdxmill.formats.own_records import OFFSETS
from cdxmill.inputs.named import Search, Wanted
from cdxmill.regex import regex
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.cdx_text import read_content
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.stages.lines.move_lines import Names, TableNames
from cdxmill.stages.window import MemberError, Window, chunk_of
from cdxmill.storage.location import Location, ask_all, locate
from cdxmill.storage.reading import open_unchanged

_AGAIN = "write it again with cdxmill recompress --offsets"
_START = 1 << 16
"""Bytes of a table that are read for its first row."""
_TABLES = Wanted(
    f"tables of offsets (*{OFFSETS})",
    regex(re.escape(OFFSETS) + "$"),
    "write them with cdxmill recompress --offsets",
    is_alone=False,
)


def table_beside(archive: Location) -> Location:
    """The table of a new archive.

    >>> str(table_beside(Location("zst/a.warc.zst")))
    'zst/a.warc.zst.offsets.gz'
    """
    return archive.with_name(archive.name + OFFSETS)


def find_tables(named: Sequence[str], failures: Failures) -> dict[str, Names]:
    """The tables that the user named: files, directories, globs and URLs; each with the names in it, if it has any.

    Raises UsageError if there is none, or if two are of the same archive, InputError if one cannot be read.
    """
    search = Search(_TABLES, failures)
    for name in named:
        search.add(name)
    places = list(dict.fromkeys(found.location for found in search.finish(named)))
    found = zip(places, ask_all(first_names, places), strict=True)
    tables = {place.text: names for place, names in found if names}
    try:
        TableNames(tables)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return tables


def first_names(table: Location) -> Names | None:
    """The names in the first row of a table. None if it has no row. Raises InputError."""
    lines = next(_read(table, _START), [])
    try:
        if lines[:1] != [HEADER[:-1]]:
            raise ValueError("is not a table of offsets")
        return next((Names(*names_of(row)) for row in islice(lines, 1, 2)), None)
    except ValueError as error:
        raise InputError(table.text, str(error), _AGAIN) from None


def is_table_of(table: Location, old: str, new: str) -> bool:
    """Whether a file is a table of archives with these names in index lines, or has no row. Raises OutageError."""
    try:
        names = first_names(table)
    except OutageError:
        raise
    except InputError:
        return False
    return names in (None, Names(os.fsencode(old), os.fsencode(new)))


def read_table(path: str) -> OffsetTable:
    """The table at a path or URL. Raises InputError if it cannot be read, or is corrupt or truncated."""
    try:
        place = locate(path)
        return OffsetTable(_read(place, chunk_of(place.is_remote)))
    except ValueError as error:
        raise InputError(path, str(error), _AGAIN) from None


def _read(table: Location, chunk: int) -> Iterator[list[bytes]]:
    with open_unchanged(table) as read_at:
        try:
            yield from split_lines(read_content(Window(read_at, chunk)))
        except MemberError as error:
            raise InputError(table.text, str(error), _AGAIN) from None
