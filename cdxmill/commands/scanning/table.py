"""The columns of a table whose parts are the outputs of scans: they are recorded in its directory."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cdxmill.errors import AbsentError, InputError, StoppedError, UsageError
from cdxmill.formats.own_records import APART, TABLE, format_row
from cdxmill.messages import count
from cdxmill.outputs.names import identity
from cdxmill.stages.scan.columns import Columns
from cdxmill.storage.location import Location
from cdxmill.storage.own import read_own
from cdxmill.storage.walk import files_below

_NAME = f"{APART}/columns.tsv"


def record_columns(place: Location, columns: Columns, outputs: Collection[Location]) -> None:
    """Record the columns of the outputs in a directory: a name and a type per row. `outputs` are written next.

    If others are recorded, all files of the table have to be written again, so they are deleted first: a killed run, or an
    archive that cannot be read any more, leaves none with the old columns. Raises UsageError if a file would remain, StoppedError.
    """
    data = b"".join(format_row([name, kind]) for name, kind in columns.items())
    if _recorded(place) == data:
        return
    written = {identity(output) for output in outputs}
    parts = _parts(place)
    if others := [path for path in parts if identity(path) not in written]:
        raise UsageError(
            f"{others[0]}: has other columns ({count(len(others), 'such file')}; see {place / _NAME}), and one table has one set; choose another output directory, or scan all archives with --replace"
        )
    for path in parts:
        Location(path).remove()
    with (place / _NAME).write_atomic() as file:
        file.write(data)


def _recorded(place: Location) -> bytes:
    if place.directory is not None:
        return read_own(Path(place.directory) / _NAME)
    try:
        return (place / _NAME).read_bytes()
    except AbsentError:
        return b""


def _parts(place: Location) -> list[str]:
    """The files of the table."""
    try:
        found = files_below(str(place))
    except AbsentError:
        return []
    except InputError as error:
        raise StoppedError(str(error)) from None
    return [path for path in (*found.files, *found.links) if path.endswith(TABLE)]
