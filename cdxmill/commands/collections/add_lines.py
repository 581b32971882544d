"""New lines -> the shards of a cluster, or an overlay. Shards are written again unless that is much work for few lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.change import Change
from cdxmill.commands.collections.change_shards import (
    ChangeWanted,
    Done,
    Others,
    blocks_of,
    change_shards,
    overlay_compressor,
    write_filter,
)
from cdxmill.formats.clusters.zipnum import BEYOND, OVERLAY_LINES, key_of, overlay_name, part_of
from cdxmill.options.collections import OVERLAY, Adding
from cdxmill.running.processes import RunTasks
from cdxmill.search.lookup import open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.line_lists import cut_blocks
from cdxmill.stages.lines.merge_lines import SortedLists, merge_lines, merge_slices
from cdxmill.stages.lines.sort_lines import LineSorter, Run
from cdxmill.stages.zipnum.change_shard import ChangeRule, Changes
from cdxmill.stages.zipnum.write_shard import write_shard
from cdxmill.storage.location import Location
from cdxmill.storage.scratch import Scratch

LARGE = 50_000_000
"""Lines of a cluster that is written again in about two minutes. Smaller ones get no overlays unless they are asked for."""


class NewLines(NamedTuple):
    """Lines to add, as sorted runs, or as `others`, whose blocks can be copied.

    Unless they `are_new`, some may be in the cluster. `excluded` lines were skipped.
    """

    runs: Sequence[Run] = ()
    are_new: bool = True
    excluded: int = 0
    others: Others = Others()


class Added(NamedTuple):
    """What was done with new lines, and why they became an overlay, "" if they did not."""

    done: Done
    overlay: str = ""


def add_lines(
    change: Change, new: NewLines, asked: Adding, scratch: Path, engine: RunTasks | None = None
) -> Added:
    """Write the shards that get new lines, or an overlay. Raises InputError, StoppedError."""
    files = Scratch(scratch)
    why = _why_overlay(change, new.runs, asked.mode, files)
    runs = new.runs
    if not new.are_new:
        runs = _absent(change.place, runs, files, of_overlays_only=not why)
    present = Changes(present=sum(run.lines for run in new.runs) - sum(run.lines for run in runs))
    if why and runs:
        done = _write_overlay(change, _lines(runs, files))
        return Added(done._replace(counts=done.counts + present), why)
    rule = ChangeRule(change.manifest.numlines)
    wanted = ChangeWanted(
        runs=runs, others=new.others, rule=rule, processes=asked.processes, quiet=asked.quiet, run=engine
    )
    done = change_shards(change, wanted, scratch)
    return Added(done._replace(counts=done.counts + present))


def _why_overlay(change: Change, runs: Sequence[Run], mode: str | None, scratch: Scratch) -> str:
    """Why the lines become an overlay; "" if shards are written again."""
    if mode is not None:
        return f"--mode {OVERLAY}" if mode == OVERLAY else ""
    if change.manifest.lines < LARGE or not runs:
        return ""
    touched, blocks = _touched(change, runs, scratch), change.manifest.blocks
    return f"{touched:,} of {blocks:,} blocks would change" if 2 * touched > blocks else ""


def _touched(change: Change, runs: Sequence[Run], scratch: Scratch) -> int:
    """The number of blocks in whose range there are new lines."""
    new = SortedLists(_lines(runs, scratch))
    shards = (blocks_of(change.place, shard.name) for shard in change.manifest.shards)
    starts = [block.key for block in chain.from_iterable(shards)]
    touched = 0
    for bound in (*starts[1:], None):
        found = new.take_below(bound)
        touched += bool(found)
        while found:
            found = new.take_below(bound)
    return touched


def _lines(runs: Sequence[Run], scratch: Scratch) -> Iterator[list[bytes]]:
    """The lines of runs, sorted, each once."""
    return merge_slices([run.whole() for run in runs], scratch.reader)


def _absent(place: Location, runs: Sequence[Run], scratch: Scratch, of_overlays_only: bool) -> list[Run]:
    """The lines that the cluster, or its overlays, do not have."""
    sorter = LineSorter(scratch.create, "absent")
    with open_searched(place) as cluster:
        for lines in _lines(runs, scratch):
            wanted = set(lines)
            # from the key: a block may end with other lines of the key with which the next one begins
            for there in _there(cluster, key_of(lines[0]), lines[-1] + b"\n", of_overlays_only):
                wanted.difference_update(there)
            sorter.add(sorted(wanted))
    return sorter.finish()


def _there(cluster: OpenCluster, low: bytes, high: bytes, of_overlays_only: bool) -> Iterable[list[bytes]]:
    if not of_overlays_only:
        return cluster.lines(low, high)
    return chain.from_iterable(cluster.lines_of(cluster.overlays(low, high), low, high))


def _write_overlay(change: Change, lists: Iterable[list[bytes]]) -> Done:
    """Write the files of a new overlay."""
    name = overlay_name(change.number, change.number)
    with (
        (change.place / name).write_atomic() as shard,
        (change.place / part_of(name)).write_atomic() as part,
    ):
        entry = write_shard(cut_blocks(lists, OVERLAY_LINES), name, shard, part, overlay_compressor(change))
    write_filter(change.place, entry)
    return Done([*change.manifest.files, entry], Changes(added=entry.lines, written=entry.blocks), [])


def overlay_runs(change: Change, scratch: Path) -> list[Run]:
    """The lines of all overlays, as sorted runs on scratch space. Raises InputError."""
    sorter = LineSorter(Scratch(scratch).create, "overlays")
    with open_searched(change.place) as cluster:
        overlays = cluster.reader.overlays
        for lines in merge_lines(cluster.lines_of(overlays, b"", BEYOND)) if overlays else ():
            sorter.add(lines)
    return sorter.finish()
