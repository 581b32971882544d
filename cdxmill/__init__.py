"""Build CDX indexes of web archives, search them, and fetch captures from them.

The functions and types listed in `__all__` are the public Python API; docs/python.md describes them. Each is
imported when it is first used, so that `import cdxmill` stays quick and nodes of a cluster need no libraries for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.version import __version__ as __version__

if TYPE_CHECKING:
    from cdxmill.api.archives import captures, index, records
    from cdxmill.api.clusters import build, publish, sample, verify, zipnum
    from cdxmill.api.collections import add, compact, merge, remove
    from cdxmill.api.contents import (
        cat,
        count,
        recompress,
        recompress_estimate,
        reindex,
        scan,
        train_dictionary,
        verify_archives,
    )
    from cdxmill.api.exports import export
    from cdxmill.api.prefix_indexes import PrefixIndex, build_prefix_index
    from cdxmill.api.reports import report
    from cdxmill.api.results import (
        CapturedRecord,
        CatResult,
        ChangeResult,
        ClusterResult,
        CopyResult,
        CountResult,
        DictionaryResult,
        EstimateResult,
        ExportResult,
        IndexResult,
        PrefixIndexResult,
        RecompressResult,
        ReindexResult,
        ReportResult,
        SampleResult,
        ScanResult,
        VerifyArchivesResult,
        VerifyResult,
    )
    from cdxmill.api.searches import Cluster, copy, get, lookup, lookup_many
    from cdxmill.api.urlkey import urlkey
    from cdxmill.errors import (
        AbsentError,
        CdxmillError,
        InputError,
        OutageError,
        RefusedError,
        StoppedError,
        UsageError,
    )
    from cdxmill.messages import Step
    from cdxmill.running.failures import Failure
    from cdxmill.stages.pages.full_record import FullRecord

_HOMES: dict[str, str] = {}
"""The module of each name."""

for _home, _names in {
    "api.archives": ("captures", "index", "records"),
    "api.clusters": ("build", "publish", "sample", "verify", "zipnum"),
    "api.collections": ("add", "compact", "merge", "remove"),
    "api.contents": (
        "cat",
        "count",
        "recompress",
        "recompress_estimate",
        "reindex",
        "scan",
        "train_dictionary",
        "verify_archives",
    ),
    "api.exports": ("export",),
    "api.prefix_indexes": ("PrefixIndex", "build_prefix_index"),
    "api.results": (
        "CapturedRecord",
        "CatResult",
        "ChangeResult",
        "ClusterResult",
        "CopyResult",
        "CountResult",
        "DictionaryResult",
        "EstimateResult",
        "ExportResult",
        "IndexResult",
        "PrefixIndexResult",
        "RecompressResult",
        "ReindexResult",
        "ReportResult",
        "SampleResult",
        "ScanResult",
        "VerifyArchivesResult",
        "VerifyResult",
    ),
    "api.reports": ("report",),
    "api.searches": ("Cluster", "copy", "get", "lookup", "lookup_many"),
    "api.urlkey": ("urlkey",),
    "errors": (
        "AbsentError",
        "CdxmillError",
        "InputError",
        "OutageError",
        "RefusedError",
        "StoppedError",
        "UsageError",
    ),
    "messages": ("Step",),
    "running.failures": ("Failure",),
    "stages.pages.full_record": ("FullRecord",),
}.items():
    _HOMES |= dict.fromkeys(_names, _home)

__all__ = [
    "AbsentError",
    "CapturedRecord",
    "CatResult",
    "CdxmillError",
    "ChangeResult",
    "Cluster",
    "ClusterResult",
    "CopyResult",
    "CountResult",
    "DictionaryResult",
    "EstimateResult",
    "ExportResult",
    "Failure",
    "FullRecord",
    "IndexResult",
    "InputError",
    "OutageError",
    "PrefixIndex",
    "PrefixIndexResult",
    "RecompressResult",
    "RefusedError",
    "ReindexResult",
    "ReportResult",
    "SampleResult",
    "ScanResult",
    "Step",
    "StoppedError",
    "UsageError",
    "VerifyArchivesResult",
    "VerifyResult",
    "add",
    "build",
    "build_prefix_index",
    "captures",
    "cat",
    "compact",
    "copy",
    "count",
    "export",
    "get",
    "index",
    "lookup",
    "lookup_many",
    "merge",
    "publish",
    "recompress",
    "recompress_estimate",
    "records",
    "reindex",
    "remove",
    "report",
    "sample",
    "scan",
    "train_dictionary",
    "urlkey",
    "verify",
    "verify_archives",
    "zipnum",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cdxmill' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"cdxmill.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
