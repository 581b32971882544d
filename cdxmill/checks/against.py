"""The lines of a cluster, held against those of the CDX files that it was built of.

CDX files  --sort, spill-->  runs  --merge by shard-->  lines that have to be in the shard
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.errors import InputError
from cdxmill.inputs.grouping import group_sources
from cdxmill.inputs.sorting import finish_runs, share_of_runs, sort_files
from cdxmill.inputs.sources import take_inventory
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count
from cdxmill.stages.lines.compare_lines import Difference, compare_lines
from cdxmill.stages.lines.merge_lines import merge_slices
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.sorted_runs import Run, Slice, cut_runs
from cdxmill.stages.zipnum.check_shard import Fault, read_blocks
from cdxmill.storage.choose import open_ranges, total_size
from cdxmill.storage.scratch import Scratch


class SoundShard(NamedTuple):
    """A shard whose lines are in order: its path or URL, and its first line."""

    place: str
    first: bytes


class _SortTask(NamedTuple):
    number: int
    paths: list[str]
    scratch: Path
    convert: bool
    most_runs: int


class _CompareTask(NamedTuple):
    place: str | None
    slices: list[Slice]
    scratch: Path


def check_against(
    shards: Sequence[SoundShard],
    paths: Sequence[str],
    convert: bool,
    processes: int,
    failures: Failures,
    quiet: bool,
) -> Difference:
    """How the lines of `shards`, none without a line, differ from those of the CDX files `paths`.

    Files that cannot be read are told. Memory is bounded; what is sorted lies in TMPDIR.
    """
    with tempfile.TemporaryDirectory(prefix="cdxmill-") as folder:
        scratch = Scratch(Path(folder))
        runs = _sort(paths, scratch, convert, processes, failures, quiet)
        slices = cut_runs(runs, [shard.first for shard in shards[1:]], scratch.reader)
        places: list[str | None] = [shard.place for shard in shards] or [None]
        tasks = [
            _CompareTask(place, part, scratch.folder) for place, part in zip(places, slices, strict=True)
        ]
        found = {}
        size = total_size(shard.place for shard in shards)
        with Progress("comparing lines", len(tasks), size, quiet) as progress:
            failures.show_on(progress)
            for number, difference in run_tasks(_compare, tasks, processes, progress.tick):
                found[number] = difference
                progress.advance()
    return sum((found[number] for number in sorted(found)), Difference())


def told_difference(difference: Difference) -> Iterator[str]:
    """What is wrong, in words."""
    if difference.missing:
        first = difference.first_missing[:200]
        yield f"{count(difference.missing, 'line')} of the inputs missing, the first: {first!r}"
    if difference.extra:
        first = difference.first_extra[:200]
        yield f"{count(difference.extra, 'line')} not of the inputs, the first: {first!r}"


def _sort(
    paths: Sequence[str], scratch: Scratch, convert: bool, processes: int, failures: Failures, quiet: bool
) -> list[Run]:
    inventory = take_inventory(paths)
    groups = [[source.path for source in group] for group in group_sources(inventory.sources)]
    most = share_of_runs(len(groups))
    tasks = [_SortTask(number, group, scratch.folder, convert, most) for number, group in enumerate(groups)]
    runs: list[Run] = []
    with Progress("sorting inputs", len(tasks), inventory.size, quiet) as progress:
        failures.show_on(progress)
        for _, (sorted_runs, failed) in run_tasks(_sort_group, tasks, processes, progress.tick):
            runs += sorted_runs
            for failure in failed:
                failures.report(failure._replace(hint="none of its lines are compared"))
            progress.advance()
    return sorted(runs)


def _sort_group(task: _SortTask) -> tuple[list[Run], list[Failure]]:
    scratch = Scratch(task.scratch)
    sorter = LineSorter(scratch.create, f"sort-{task.number:05d}")
    failed = sort_files(task.paths, sorter, task.convert)
    return finish_runs(sorter, scratch, task.most_runs), failed


def _compare(task: _CompareTask) -> Difference:
    wanted = merge_slices(task.slices, Scratch(task.scratch).reader)
    if task.place is None:
        return compare_lines(iter(()), wanted)
    with open_ranges(task.place) as read_at:
        blocks = read_blocks(counted(read_at), {})
        return compare_lines((_lines(task.place, block) for block in blocks), wanted)


def _lines(place: str, block: Any) -> list[bytes]:
    if isinstance(block, Fault):
        raise InputError(place, block.reason, "it was changed meanwhile")
    lines: list[bytes] = block.lines
    return lines
