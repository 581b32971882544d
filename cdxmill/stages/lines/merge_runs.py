"""Whole runs -> their lines; and many runs -> few runs, which can then be merged at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cdxmill.stages.lines.merge_blocks import merge_blocks
from cdxmill.stages.lines.merge_lines import merge_slices
from cdxmill.stages.lines.sort_lines import Create, LineSorter
from cdxmill.stages.lines.sorted_runs import JOINED, OpenRun, Run, write_run

MOST_RUNS = 500
"""At most this many runs are merged at a time: one block of each is half of what a merge may hold."""


def merge_runs(runs: Sequence[Run], create: Create, open_run: OpenRun) -> Iterator[list[bytes]]:
    """The lines of whole runs, sorted, without duplicates, in lists."""
    few = fewer_runs(runs, create, open_run)
    return merge_slices([run.whole() for run in few], open_run)


def sort_lists(
    lists: Iterable[list[bytes]], name: str, create: Create, open_run: OpenRun
) -> Iterator[list[bytes]]:
    """Lines in any order -> sorted, without duplicates, in lists. Names of spilled runs start with `name`."""
    sorter = LineSorter(create, name)
    for lines in lists:
        sorter.add(lines)
    return merge_runs(sorter.finish(), create, open_run)


def fewer_runs(runs: Sequence[Run], create: Create, open_run: OpenRun, most: int = MOST_RUNS) -> list[Run]:
    """At most `most` runs with the same lines: no more of them are merged than necessary. Requires: `most` >= 1."""
    left = list(runs)
    while len(left) > most:
        batch = left[: min(MOST_RUNS, len(left) - most + 1)]
        left = [*left[len(batch) :], _one_run(batch, create, open_run)]
    return left


def _one_run(runs: Sequence[Run], create: Create, open_run: OpenRun) -> Run:
    name = f"{runs[0].name}+"
    with create(name) as file:
        merged = write_run(file, name, merge_blocks([run.whole() for run in runs], open_run, JOINED))
    taken = sum(run.lines + run.duplicates for run in runs)
    return merged._replace(duplicates=taken - merged.lines)
