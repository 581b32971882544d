"""The one reader of a cluster's cluster.json."""

from __future__ import annotations

from cdxmill.errors import InputError
from cdxmill.formats.cluster_manifest import Manifest, parse_manifest
from cdxmill.storage.choose import read_bytes


def read_manifest(path: str) -> Manifest:
    """Read and check the cluster.json at a path or URL. Raises InputError where it is missing or corrupt."""
    try:
        return parse_manifest(read_bytes(path))
    except ValueError as error:
        raise InputError(path, f"is corrupt ({error})", "build or publish the cluster again") from None
