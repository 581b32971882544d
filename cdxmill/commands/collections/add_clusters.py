"""Clusters to add to another one: whether their blocks are copied, and some of their lines, to find out what is there already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import filterfalse, islice

from cdxmill.cluster.change import Change
from cdxmill.commands.collections.add_lines import LARGE
from cdxmill.commands.collections.identity import LinesToKnow
from cdxmill.commands.collections.other_clusters import OtherCluster, all_blocks, lines_of, why_not_copied
from cdxmill.commands.collections.summary import MOST_ADDED
from cdxmill.formats.clusters.zipnum import MANIFEST
from cdxmill.options.collections import OVERLAY, Adding
from cdxmill.running.processes import RunTasks
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
    return why_not_copied(clusters, wanted, change.manifest.numlines)


def lines_of_cluster(other: OtherCluster, cluster: OpenCluster, excluded: Sequence[LineRange]) -> LinesToKnow:
    """The lines of another cluster, which is open as `cluster`. Those in `excluded` say nothing."""

    def lists(step: int = 1) -> Iterator[list[bytes]]:
        sound = filterfalse(other.skipped.__contains__, all_blocks(cluster))
        for block in islice(sound, 0, None, step):
            lines = lines_of(block, cluster.reader.read)
            yield outside(lines, excluded) if excluded else lines

    return LinesToKnow(lists(max(1, other.manifest.blocks // _BLOCKS)), lists)
