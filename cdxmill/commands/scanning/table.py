"""The columns of a table whose parts are the outputs of scans: they are recorded in its directory."""

from __future__ import annotations

from pathlib import Path

from cdxmill.errors import AbsentError, UsageError
from cdxmill.formats.own_records import APART, format_row
from cdxmill.outputs.existing import Rule
from cdxmill.stages.scan.columns import Columns
from cdxmill.storage.location import Location
from cdxmill.storage.own import read_own

_NAME = f"{APART}/columns.tsv"


def record_columns(place: Location, columns: Columns, existing: Rule) -> None:
    """Record the columns of the outputs in a directory: a name and a type per row.

    Raises UsageError if an earlier run has recorded others, unless outputs are replaced.
    """
    data = b"".join(format_row([name, kind]) for name, kind in columns.items())
    recorded = _recorded(place)
    if recorded == data:
        return
    if recorded and existing is not Rule.REPLACE:
        raise UsageError(
            f"{place}: the files there have other columns ({place / _NAME}), and one table has one set; choose another"
            " output directory, or use --replace"
        )
    with (place / _NAME).write_atomic() as file:
        file.write(data)


def _recorded(place: Location) -> bytes:
    if place.directory is not None:
        return read_own(Path(place.directory) / _NAME)
    try:
        return (place / _NAME).read_bytes()
    except AbsentError:
        return b""
