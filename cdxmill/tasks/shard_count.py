"""The number of shards of a cluster, if the user gives none."""

from __future__ import annotations

from collections.abc import Sequence

from cdxmill.inputs.sources import CdxSource

SHARD_SIZE = 64 << 20
"""Bytes of gzipped CDX lines per shard: about a million lines. A process merges them in seconds."""
MOST = 300
"""Shards of a monthly crawl of Common Crawl. More files make no lookup faster."""
_PLAIN = 6
"""gzip makes CDX lines about this many times smaller."""


def shards_by_size(sources: Sequence[CdxSource]) -> int:
    """One shard for each 64 MiB of gzipped CDX files, at least 1 and at most 300. A plain file counts a sixth.

    It depends on the names and sizes of the files only, so every run with the same files has the same number.

    >>> from cdxmill.storage.location import locate
    >>> shards_by_size([CdxSource(locate("a.cdx.gz"), 100 << 20, 0), CdxSource(locate("b.cdxj"), 600 << 20, 0)])
    4
    >>> shards_by_size([]), shards_by_size([CdxSource(locate("a.cdx.gz"), 1 << 50, 0)])
    (1, 300)
    """
    size = sum(
        source.size if source.path.lower().endswith(".gz") else source.size // _PLAIN for source in sources
    )
    return min(max(-(-size // SHARD_SIZE), 1), MOST)
