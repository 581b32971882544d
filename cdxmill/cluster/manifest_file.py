"""The cluster.json of a cluster that is read, also while it is being changed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cdxmill.formats.clusters.zipnum import CHANGE, INDEX, MANIFEST, STAGED_MANIFEST
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location
from cdxmill.storage.optional import optional
from cdxmill.storage.reading import bytes_if_any, if_any

if TYPE_CHECKING:
    from cdxmill.formats.clusters.manifest import Manifest


def manifest_of_index(directory: Location) -> tuple[Manifest | None, Entry | None]:
    """As `manifest_beside`, and the state of the file (see `Ranges.entry`).

    While a change is being moved in, it is the new one as soon as the index is. Raises OutageError.
    """
    staged = (
        staged_manifest(directory) if directory.properties.can_write and _is_moved_in(directory) else None
    )
    place = directory / MANIFEST
    with optional():
        data, state = if_any(place, lambda: _with_state(place)) or (None, None)
    return staged or _parsed(data), state


def _with_state(place: Location) -> tuple[bytes, Entry | None]:
    if not place.is_remote:
        state = place.status()  # before it is read: if it changes in between, the state is an old one
        return place.read_bytes(), state
    from cdxmill.storage.cache import read_with_entry  # slow to import, and only remote files need it

    return read_with_entry(place)


def manifest_beside(directory: Location) -> Manifest | None:
    """The cluster.json of a directory; None if it has none, or none that cdxmill can read.

    Raises OutageError if the storage does not answer: without this file, answers would be others.
    """
    with optional():
        return _parsed(bytes_if_any(directory / MANIFEST))


def _parsed(data: bytes | None) -> Manifest | None:
    """The manifest; None if there is none, or none that cdxmill can read."""
    if data is None:
        return None
    from cdxmill.formats.clusters.manifest import parse_manifest  # imported only if there is one

    with suppress(ValueError):
        return parse_manifest(data)
    return None


def _is_moved_in(directory: Location) -> bool:
    """Whether the index of a change is in its place, and cluster.json perhaps not: see cluster/change."""
    return (directory / STAGED_MANIFEST).exists() and not (directory / CHANGE / INDEX).exists()


def staged_manifest(directory: Location) -> Manifest | None:
    """The cluster.json of a change that is being moved in; None as above. Raises OutageError."""
    return _parsed(bytes_if_any(directory / STAGED_MANIFEST))
