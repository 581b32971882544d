"""Outputs in a directory whose archives do not exist any more. Commands that read the directory still take them."""

from __future__ import annotations

from collections.abc import Set

from cdxmill.outputs.record import OutputRecord
from cdxmill.storage.location import Location, PathOrUrl, ask_all, locate

_SHOWN = 3


def outputs_of_gone(place: PathOrUrl, current: Set[str]) -> list[str]:
    """The names of recorded outputs, without those in `current`, whose archives were local files and are gone.

    A directory at a URL has no record. Raises StoppedError if the record cannot be read.
    """
    directory = locate(place).directory
    if directory is None:
        return []
    rows = [row for row in OutputRecord(directory).last_rows() if row.output not in current]
    own = [(row.output, locate(row.archive).stored_in) for row in rows if (directory / row.output).exists()]
    local = [(name, archive) for name, archive in own if not archive.is_remote]
    exist = ask_all(Location.exists, [archive for _, archive in local])
    return sorted(name for (name, _), is_there in zip(local, exist, strict=True) if not is_there)


def note_of_gone(place: PathOrUrl, names: list[str]) -> str:
    """One line that says which indexes are of archives that are gone."""
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    what = f"{len(names)} indexes are" if len(names) > 1 else "1 index is"
    whose = "archives that are" if len(names) > 1 else "an archive that is"
    return f"{place}: note: {what} of {whose} gone ({shown}); delete what zipnum should not read"
