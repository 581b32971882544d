"""Where Common Crawl keeps the index of an archive."""

from __future__ import annotations

from collections.abc import Sequence

from cdxmill.inputs.named import Input
from cdxmill.outputs.names import output_names

_CRAWL, _INDEX = "crawl-data/", "cc-index/cdx/"


def cdx_names(archives: Sequence[Input], cc_index_paths: bool) -> dict[Input, str]:
    """The path of each archive's CDX file below the CDX folder. Raises UsageError if two are equal."""
    names = output_names(archives)
    if not cc_index_paths:
        return names
    return {
        archive: _INDEX + name[len(_CRAWL) :] if name.startswith(_CRAWL) else name
        for archive, name in names.items()
    }
