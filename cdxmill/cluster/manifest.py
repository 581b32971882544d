"""The one reader of a cluster's cluster.json."""

from __future__ import annotations

from contextlib import suppress

from cdxmill.errors import AbsentError, InputError, RefusedError
from cdxmill.formats.clusters.manifest import Manifest, parse_manifest
from cdxmill.formats.clusters.zipnum_index import MANIFEST
from cdxmill.storage.location import join, locate


def read_manifest(path: str) -> Manifest:
    """Read and check the cluster.json at a path or URL. Raises InputError where it is missing or corrupt."""
    try:
        return parse_manifest(locate(path).read_bytes())
    except ValueError as error:
        raise InputError(path, f"is corrupt ({error})", "build or publish the cluster again") from None


def manifest_beside(directory: str) -> Manifest | None:
    """The cluster.json of the directory at a path or URL; None if it has none, or none that cdxmill can read.

    Raises InputError if the storage does not answer: without this file, answers would be others. Buckets behind
    HTTP answer 403 for a missing file.
    """
    path = join(directory, MANIFEST)
    try:
        data = locate(path).read_bytes()
    except AbsentError:
        return None
    except RefusedError:
        if locate(path).is_remote:
            return None
        raise
    with suppress(ValueError):
        return parse_manifest(data)
    return None
