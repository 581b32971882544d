"""Clusters to add to another one: whether their blocks are copied, and some of their lines, to find out what is there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cdxmill.cluster.change import Change
from cdxmill.commands.collections.add_lines import LARGE
from cdxmill.commands.collections.identity import LinesToKnow
from cdxmill.commands.collections.other_clusters import OtherCluster, lines_of, why_not_copied
from cdxmill.commands.collections.summary import MOST_ADDED
from cdxmill.formats.clusters.zipnum import BEYOND, MANIFEST
from cdxmill.options.collections import OVERLAY, Adding
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.drop_lines import LineRange, outside

_BLOCKS = 64
"""Blocks of a cluster, evenly over all keys, whose lines tell what archives it has."""


def why_not_added(
    change: Change,
    paths: Sequence[str],
    clusters: Sequence[OtherCluster],
    asked: Adding,
    engine: RunTasks | None,
) -> str:
    """Why blocks of `clusters` are not copied to the shards, but all lines of the inputs sorted; "" if they are copied."""
    if paths or not clusters:
        return f"{paths[0] if paths else asked.cluster} is not a cluster with {MANIFEST}"
    if asked.mode == OVERLAY:
        return f"--mode {OVERLAY} was given"
    if change.manifest.overlays:
        return f"{change.place} has overlays"
    lines = sum(one.manifest.lines for one in clusters)
    own = change.manifest.lines
    if engine is None and asked.mode is None and own >= LARGE and lines <= MOST_ADDED * own:
        return "there are few new lines"  # they may become an overlay
    wanted = change.manifest.compressor._replace(version="")
    return why_not_copied(clusters, wanted, change.manifest.numlines, asked, engine or run_tasks)


def lines_of_cluster(cluster: OpenCluster, blocks: int, excluded: Sequence[LineRange]) -> LinesToKnow:
    """The lines of a cluster with that number of blocks. Those in `excluded` say nothing."""

    def outside_of(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        return (outside(lines, excluded) if excluded else lines for lines in lists)

    chosen = islice(cluster.reader.index.blocks(b""), 0, None, max(1, blocks // _BLOCKS))
    some = (lines_of(block, cluster.reader.read) for block in chosen)
    return LinesToKnow(outside_of(some), lambda: outside_of(cluster.lines(b"", BEYOND)))
