"""archives.tsv beside a cluster: where its archives are. `build` writes it; `get`, `verify` and `serve` read it.

It has names of this machine, so it is a file of its own: cluster.json has the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.cluster.find import find_index, resolved, why_refused
from cdxmill.errors import InputError, RefusedError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, format_path_index, parse_path_index
from cdxmill.storage.location import Location, locate

if TYPE_CHECKING:
    from cdxmill.inputs.archive_store import ArchiveStore


class ArchivePlaces(NamedTuple):
    """Where the archives of index lines are: what the user `named`, else archives.tsv in the `directory` of a cluster."""

    named: str | None
    directory: Location | None = None

    def state(self) -> object:
        """Another value if archives.tsv has changed. None if the user named the places. Raises InputError."""
        if self.named is not None or self.directory is None:
            return None
        return (self.directory / ARCHIVES).status()

    def open(self) -> ArchiveStore:
        """Open the archives. Raises UsageError if the user named no such place, or archives.tsv cannot be read."""
        from cdxmill.inputs.archive_store import (
            ArchiveStore,
        )  # slow to import, and `lookup` reads no archives

        directory = self.directory
        if self.named is not None or directory is None:
            return ArchiveStore(self.named)
        return ArchiveStore(str(directory / ARCHIVES), lambda place: allowed_place(directory, place))


def archives_of(cluster: Location, named: str | None) -> ArchivePlaces:
    """Where the archives of a cluster, which exists, are. Raises InputError if that cannot be found out."""
    if named is not None:
        return ArchivePlaces(named)
    try:
        directory = find_index(cluster).parent
    except UsageError:  # a file with lines, which has no directory of its own
        return ArchivePlaces(None)
    return ArchivePlaces(None, directory if has_archive_index(directory) else None)


def has_archive_index(directory: Location) -> bool:
    """Whether the directory of a cluster has an archives.tsv."""
    with suppress(RefusedError):  # S3 without the right to list answers so for a missing file, too
        return (directory / ARCHIVES).exists()
    return False


def allowed_place(directory: Location, place: str) -> Location:
    """A place in the archives.tsv of a cluster. Raises InputError if this file may not lead there (SECURITY.md).

    >>> str(allowed_place(Location("/data/C"), "../warcs/a.warc.gz"))
    '/data/C/../warcs/a.warc.gz'
    """
    if why := why_refused(directory, place):
        hint = f"if you trust it, use --archives {directory / ARCHIVES}"
        raise InputError(place, f"{directory / ARCHIVES} leads there, and it {why}", hint)
    return resolved(directory, place)


def published_index(
    cluster: Location, target: Location, archives: str | None, note: Callable[[str], None]
) -> bytes | None:
    """The archives.tsv of a cluster for its copy in the directory `target`; None if it has none.

    With `archives`, each file name is looked up there. Else a remote copy has only the URLs: local paths lead nowhere
    from there, and show names of this machine. Raises UsageError, and InputError if a file name is not in `archives`.
    """
    path = cluster / ARCHIVES
    if not has_archive_index(cluster):
        if archives is not None:
            raise UsageError(f"{cluster}: has no {ARCHIVES}, so --archives has no names to write")
        return None
    data = path.read_bytes()
    listed = [(name, place) for name, places in parse_path_index(data) for place in places]
    if archives is not None:
        from cdxmill.inputs.archive_store import ArchiveStore

        names = sorted({name for name, _ in listed})
        with closing(ArchiveStore(archives)) as store:
            listed = [(name, place.absolute()) for name in names for place in store.locations(name)]
    elif not target.is_remote:
        return data
    if not target.is_remote:
        return format_path_index(listed)[0]
    urls = [(name, place) for name, place in listed if locate(place).is_remote and "?" not in place]
    if len(urls) < len(listed):
        left = f"{len(listed) - len(urls)} of {len(listed)} archives"
        note(
            f"{path}: note: {left} not listed in {target}: local paths and URLs with a query stay private; use --archives URL"
        )
    return format_path_index(urls)[0] or None
