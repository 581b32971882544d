"""Write the files beside a cluster's shards: idx, summary, loc, and the manifest last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cdxmill.formats.clusters.manifest import ShardEntry, format_manifest, make_manifest
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.formats.clusters.zipnum_index import (
    INDEX,
    LOCATIONS,
    MANIFEST,
    SUMMARY,
    format_location,
    part_name,
)
from cdxmill.inputs.split_files import write_splits
from cdxmill.storage.choose import (
    PathOrUrl,
    absolute,
    join,
    read_bytes,
    remove,
    write_atomic,
)


def unpublish(folder: PathOrUrl) -> None:
    """Remove what makes the folder at a path or URL a finished cluster."""
    for name in (MANIFEST, INDEX, SUMMARY, LOCATIONS):
        remove(join(folder, name))


def write_cluster_files(
    folder: PathOrUrl,
    shards: Sequence[ShardEntry],
    points: Sequence[bytes],
    compressor: Compressor,
    block_lines: int,
    location: str | None,
) -> None:
    """Finish the cluster in `folder`, a path or URL, after its parts and shards are written.

    `location` is the folder or URL of the shards in cluster.loc. The default is `folder`.
    """
    write_splits(points, join(folder, "splits.txt"))
    write_index(folder, (read_bytes(join(folder, part_name(number))) for number in range(len(shards))))
    write_locations(folder, [shard.name for shard in shards], location or folder)
    with write_atomic(join(folder, MANIFEST)) as file:
        file.write(format_manifest(make_manifest(shards, points, compressor, block_lines)))


def write_index(folder: PathOrUrl, parts: Iterable[bytes]) -> None:
    """Write all parts with line numbers to cluster.idx and cluster.summary. Some readers look for the second name."""
    number = 0
    with write_atomic(join(folder, INDEX)) as index, write_atomic(join(folder, SUMMARY)) as summary:
        for part in parts:
            for line in part.removesuffix(b"\n").split(b"\n") if part else ():
                number += 1
                numbered = b"%b\t%d\n" % (line, number)
                index.write(numbered)
                summary.write(numbered)


def write_locations(folder: PathOrUrl, shards: Iterable[str], base: PathOrUrl) -> None:
    """Write cluster.loc. All shards are in `base`, a path or URL."""
    with write_atomic(join(folder, LOCATIONS)) as file:
        file.write(format_locations(shards, base))


def write_archive_index(folder: PathOrUrl, content: bytes) -> None:
    """Write archives.tsv: where the archives of the cluster are."""
    with write_atomic(join(folder, ARCHIVES)) as file:
        file.write(content)


def format_locations(shards: Iterable[str], base: PathOrUrl) -> bytes:
    """The contents of cluster.loc."""
    return b"".join(format_location(shard, join(absolute(base), shard)) for shard in shards)
