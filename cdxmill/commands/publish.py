"""The files beside a cluster's shards: idx, summary, loc, and last the manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cdxmill.commands.sample import write_splits
from cdxmill.formats.cluster_manifest import ShardEntry, format_manifest
from cdxmill.formats.zipnum_block import Compressor
from cdxmill.formats.zipnum_index import format_location, part_name
from cdxmill.storage.local import TEMPORARY, stopping, write_atomic

MANIFEST = "cluster.json"
INDEX, SUMMARY, LOCATIONS = "cluster.idx", "cluster.summary", "cluster.loc"

_NUMBERED = re.compile(r"\.?(?:part-|cdx-)(\d{5,})(?:\.gz)?" + f"({re.escape(TEMPORARY)})?")


def unpublish(folder: Path) -> None:
    """From now on the folder is no finished cluster."""
    with stopping(folder):
        for name in (MANIFEST, INDEX, SUMMARY, LOCATIONS):
            (folder / name).unlink(missing_ok=True)


def write_cluster_files(
    folder: Path,
    shards: Sequence[ShardEntry],
    points: Sequence[bytes],
    compressor: Compressor,
    block_lines: int,
    location: str | None,
) -> None:
    """Finish the cluster in `folder`, whose parts and shards stand.

    `location` is the folder or URL that cluster.loc points to; by default the folder itself.
    """
    _remove_others(folder, len(shards))
    write_splits(points, folder / "splits.txt")
    _write_index(folder, len(shards))
    base = (location or str(folder.absolute())).rstrip("/")
    with write_atomic(folder / LOCATIONS) as file:
        for shard in shards:
            file.write(format_location(shard.name, f"{base}/{shard.name}"))
    with write_atomic(folder / MANIFEST) as file:
        file.write(format_manifest(shards, points, compressor, block_lines))


def _remove_others(folder: Path, shards: int) -> None:
    """Parts and shards of an earlier, larger cluster, and what a killed run left half-written."""
    with stopping(folder):
        for path in folder.iterdir():
            found = _NUMBERED.fullmatch(path.name)
            if found is not None and (found[2] or int(found[1]) >= shards):
                path.unlink()


def _write_index(folder: Path, shards: int) -> None:
    """All parts with line numbers, under both names that readers look for."""
    number = 0
    with write_atomic(folder / INDEX) as index, write_atomic(folder / SUMMARY) as summary:
        for shard in range(shards):
            with (folder / part_name(shard)).open("rb") as part:
                for line in part:
                    number += 1
                    numbered = b"%b\t%d\n" % (line.rstrip(b"\n"), number)
                    index.write(numbered)
                    summary.write(numbered)
