"""The lines of a cluster, compared with those of the CDX files from which it was built.

CDX files  --sort, spill-->  runs  --merge by shard-->  the lines that the shard must have
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cdxmill.checks.shards import ReadShard, valid_blocks
from cdxmill.checks.verify_run import VerifyRun
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.messages import count
from cdxmill.running.failures import Failure
from cdxmill.running.processes import counted
from cdxmill.stages.lines.merge_lines import Difference, compare_lines, merge_lines, merge_slices
from cdxmill.stages.lines.sort_lines import LineSorter, Run, Slice, cut_runs
from cdxmill.storage.location import Location, total_size
from cdxmill.storage.scratch import Scratch, temporary_directory
from cdxmill.tasks.sampling import group_sources
from cdxmill.tasks.sorting import SortTask, share_of_runs, sort_group


class _Sorted(NamedTuple):
    runs: list[Run]
    findings: list[Failure]


class _CompareTask(NamedTuple):
    """A shard, the lines of overlays that belong between its first line and that of the next, and the wanted lines."""

    shard: Location | None
    overlays: list[Slice]
    slices: list[Slice]
    scratch: Path


class _Compared(NamedTuple):
    difference: Difference
    findings: tuple[Failure, ...] = ()


def check_against(
    shards: Sequence[ReadShard],
    overlays: Sequence[ReadShard],
    paths: Sequence[str],
    convert: bool,
    run: VerifyRun,
) -> Difference:
    """How the lines of `shards` and `overlays` differ from those of the CDX files `paths`. Unreadable files are reported.

    Memory is bounded; sorted lines are spilled to TMPDIR. Requires: the shards have no faults and are in order.
    """
    shards = [shard for shard in shards if shard.report.lines]
    with temporary_directory() as directory:
        scratch = Scratch(Path(directory))
        points = [shard.report.first for shard in shards[1:]]
        slices = cut_runs(_sort(paths, scratch, convert, run), points, scratch.reader)
        added = cut_runs(list(_runs_of(overlays, scratch)), points, scratch.reader)
        places: list[Location | None] = [shard.task.place for shard in shards] or [None]
        tasks = [
            _CompareTask(place, more, part, scratch.directory)
            for place, more, part in zip(places, added, slices, strict=True)
        ]
        size = total_size(shard.task.place for shard in shards)
        compared = run.results("comparing lines", _compare, tasks, size)
    return sum((result.difference for result in compared), Difference())


def _runs_of(overlays: Sequence[ReadShard], scratch: Scratch) -> Iterator[Run]:
    """The lines of overlays, as sorted runs."""
    for number, overlay in enumerate(overlays):
        sorter = LineSorter(scratch.create, f"overlay-{number}")
        with overlay.task.place.open_ranges() as read_at:
            for lines in valid_blocks(overlay.task.place, read_at):
                sorter.add(lines)
        yield from sorter.finish()


def difference_findings(cluster: str, difference: Difference) -> Iterator[Failure]:
    """Missing and extra lines as findings about the whole cluster."""
    if difference.missing:
        first = difference.first_missing[:200]
        reason = f"{count(difference.missing, 'line')} of the inputs missing; the first one: {first!r}"
        yield Failure(cluster, None, reason)
    if difference.extra:
        first = difference.first_extra[:200]
        reason = f"{count(difference.extra, 'line')} not in the inputs; the first one: {first!r}"
        yield Failure(cluster, None, reason)


def _sort(paths: Sequence[str], scratch: Scratch, convert: bool, run: VerifyRun) -> list[Run]:
    inventory = take_inventory(paths)
    groups = group_sources(inventory.sources)
    most = share_of_runs(len(groups))
    tasks = [SortTask(number, group, scratch.directory, convert, most) for number, group in enumerate(groups)]
    results = run.results("sorting inputs", _sort_group, tasks, inventory.total)
    return sorted(found for result in results for found in result.runs)


def _sort_group(task: SortTask) -> _Sorted:
    runs, _, failed, _ = sort_group(task)
    return _Sorted(
        runs,
        [
            Failure(failure.path, None, failure.reason, "none of its lines were compared")
            for failure in failed
        ],
    )


def _compare(task: _CompareTask) -> _Compared:
    wanted = merge_slices(task.slices, Scratch(task.scratch).reader)
    added = merge_slices(task.overlays, Scratch(task.scratch).reader)
    if task.shard is None:
        return _Compared(compare_lines(added, wanted))
    with task.shard.open_ranges() as read_at:
        own = valid_blocks(task.shard, counted(read_at))
        return _Compared(compare_lines(merge_lines([own, added]) if task.overlays else own, wanted))
