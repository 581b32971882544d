"""Build CDX indexes of web archives, search them, and fetch captures from them.

The functions and types listed in `__all__` are the public Python API; docs/python.md describes them. Each is
imported when it is first used, so that `import cdxmill` stays quick and nodes of a cluster need no libraries for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.version import __version__ as __version__

if TYPE_CHECKING:
    from cdxmill.api.archives import captures, index
    from cdxmill.api.clusters import build, publish, sample, verify, zipnum
    from cdxmill.api.copies import copy
    from cdxmill.api.prefix_indexes import PrefixIndex, build_prefix_index
    from cdxmill.api.results import (
        CapturedRecord,
        ClusterResult,
        CopyResult,
        IndexResult,
        PrefixIndexResult,
        SampleResult,
        VerifyResult,
    )
    from cdxmill.api.searches import Cluster, get, lookup, lookup_many
    from cdxmill.api.urlkey import urlkey
    from cdxmill.errors import AbsentError, CdxmillError, InputError, RefusedError, StoppedError, UsageError
    from cdxmill.running.failures import Failure

_HOMES = {
    "index": "api.archives",
    "captures": "api.archives",
    "sample": "api.clusters",
    "zipnum": "api.clusters",
    "build": "api.clusters",
    "publish": "api.clusters",
    "verify": "api.clusters",
    "lookup": "api.searches",
    "lookup_many": "api.searches",
    "get": "api.searches",
    "Cluster": "api.searches",
    "copy": "api.copies",
    "build_prefix_index": "api.prefix_indexes",
    "PrefixIndex": "api.prefix_indexes",
    "IndexResult": "api.results",
    "PrefixIndexResult": "api.results",
    "ClusterResult": "api.results",
    "CopyResult": "api.results",
    "SampleResult": "api.results",
    "VerifyResult": "api.results",
    "CapturedRecord": "api.results",
    "Failure": "running.failures",
    "CdxmillError": "errors",
    "UsageError": "errors",
    "InputError": "errors",
    "AbsentError": "errors",
    "RefusedError": "errors",
    "StoppedError": "errors",
    "urlkey": "api.urlkey",
}

__all__ = [
    "AbsentError",
    "CapturedRecord",
    "CdxmillError",
    "Cluster",
    "ClusterResult",
    "CopyResult",
    "Failure",
    "IndexResult",
    "InputError",
    "PrefixIndex",
    "PrefixIndexResult",
    "RefusedError",
    "SampleResult",
    "StoppedError",
    "UsageError",
    "VerifyResult",
    "build",
    "build_prefix_index",
    "captures",
    "copy",
    "get",
    "index",
    "lookup",
    "lookup_many",
    "publish",
    "sample",
    "urlkey",
    "verify",
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
