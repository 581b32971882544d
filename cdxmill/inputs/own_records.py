"""The names of the files that `index` keeps beside its outputs."""

from __future__ import annotations

import posixpath

OUTPUTS = ".outputs.tsv"
FAILURES = "failures.tsv"
BESIDE = ".failures"
"""Ending of the list of failures beside a remote output: several machines cannot append to one file there."""


def is_own_record(path: str) -> bool:
    """Whether `index` writes a record of this name beside its outputs.

    >>> [is_own_record(name) for name in ("cdx/failures.tsv", ".outputs.tsv", "_a.cdx.gz.failures", "a.tsv")]
    [True, True, True, False]
    """
    name = posixpath.basename(path)
    return name in (FAILURES, OUTPUTS) or (name.startswith("_") and name.endswith(BESIDE))
