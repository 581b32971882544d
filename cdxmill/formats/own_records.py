"""The names of the files that `index` and `recompress` keep beside their outputs."""

from __future__ import annotations

import posixpath

OUTPUTS = ".outputs.tsv"
FAILURES = "failures.tsv"
BESIDE = ".failures"
"""Ending of the list of failures beside a remote output: several machines cannot append to one file there."""
OFFSETS = ".offsets.gz"
"""What the name of the table of offsets of a new archive adds to that of the archive."""


def is_own_record(path: str) -> bool:
    """Whether `index` or `recompress` writes a record of this name beside its outputs.

    >>> [is_own_record(name) for name in ("cdx/failures.tsv", ".outputs.tsv", "_a.cdx.gz.failures", "a.zst.offsets.gz")]
    [True, True, True, True]
    >>> is_own_record("a.tsv")
    False
    """
    name = posixpath.basename(path)
    is_list = name.startswith("_") and name.endswith(BESIDE)
    return name in (FAILURES, OUTPUTS) or is_list or name.endswith(OFFSETS)
