"""The list of the files of a table, and what it says: which files are complete, and which an export may replace."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.own_records import APART
from cdxmill.running.lock import sweep
from cdxmill.storage.location import Location
from cdxmill.storage.reading import json_if_any

LIST = f"{APART}/export.json"


class Staged(NamedTuple):
    """A directory that is being written."""

    place: Location

    def finish(self, files: dict[str, int], about: dict[str, Any]) -> None:
        """Write the list of its files with their sizes, and what else is known `about` them. Raises StoppedError if one is missing."""
        if self.place.directory is not None:
            sweep(self.place.directory)  # what killed tasks have left
        check_written(self.place, files)
        with (self.place / LIST).write_atomic() as file:
            file.write(json.dumps({**about, "files": files}, indent=1).encode())


def check_written(place: Location, files: dict[str, int]) -> None:
    """Raise StoppedError unless a directory has files of these sizes: those that tasks have written, perhaps elsewhere."""
    for name, size in files.items():
        found = (place / name).status()
        if found is None or found.size != size:
            raise StoppedError(
                f"{place / name}: the file that a node wrote is not there; use a directory that all machines"
                " share, or an s3 or hdfs URL"
            )


def check_replaceable(place: str, found: Collection[str], own: Collection[str], replace: bool) -> None:
    """Raise UsageError unless the files that were `found` in a directory may be replaced: they are an export's `own`."""
    if not replace:
        raise UsageError(
            f"{place}: already exists; use --replace to replace it, or choose another output directory"
        )
    if foreign := sorted({*found} - {*own}):
        raise UsageError(
            f"{place}: has files that no export wrote ({foreign[0]}); choose another output directory"
        )


def files_listed(place: Location, name: str = LIST) -> set[str]:
    """The files that an earlier export wrote, by its list. Raises OutageError."""
    try:
        return {name, *json_if_any(place / name)["files"]}
    except (KeyError, TypeError):
        return set()
