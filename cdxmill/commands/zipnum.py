"""zipnum: CDX files -> a ZipNum cluster.

    CDX files  --sort, spill, sample-->  runs + split points  --merge by shard-->  shards

Everything is read once. A run killed half-way leaves its finished tasks in a work folder
inside the cluster's; the same command goes on from them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill import __version__
from cdxmill.commands.cdx_inputs import AGAIN, check_flavours, deal, note_empty, read_cdx
from cdxmill.commands.progress import Failures, Progress
from cdxmill.commands.publish import unpublish, write_cluster_files
from cdxmill.commands.resume import WorkFolder, fingerprint
from cdxmill.commands.sample import SAMPLES_PER_SHARD, splits_of
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.cluster_manifest import ShardEntry
from cdxmill.formats.convert import FIELDS, convert_line
from cdxmill.formats.zipnum_block import Compressor
from cdxmill.formats.zipnum_index import part_name, shard_name
from cdxmill.stages.line_lists import is_capture_line
from cdxmill.stages.merge_lines import fewer_runs, merge_slices
from cdxmill.stages.sample_lines import Reservoir, Sample, merge_samples
from cdxmill.stages.sort_lines import LineSorter
from cdxmill.stages.sorted_runs import Run, Slice, cut_run
from cdxmill.stages.write_shard import BLOCK_LINES, write_shard
from cdxmill.storage.choose import total_size
from cdxmill.storage.local import file_size, stopping, write_atomic
from cdxmill.storage.scratch import Scratch


@dataclass(frozen=True)
class ZipnumOptions:
    """How a cluster is built. `points` of None means: sample `shards` - 1 of them."""

    shards: int
    points: tuple[bytes, ...] | None = None
    block_lines: int = BLOCK_LINES
    compressor: Compressor = field(default_factory=Compressor)
    convert: bool = False
    seed: int = 0
    processes: int = 1
    location: str | None = None
    quiet: bool = False


class ClusterSummary(NamedTuple):
    """What is in a finished cluster."""

    shards: int
    lines: int
    blocks: int
    duplicates: int
    bytes: int
    failed_inputs: int


class _SortTask(NamedTuple):
    number: int
    paths: list[str]
    scratch: Path
    sample_size: int
    seed: str
    convert: bool


class _ShardTask(NamedTuple):
    number: int
    slices: list[Slice]
    folder: Path
    scratch: Path
    compressor: Compressor
    block_lines: int


def build_cluster(
    paths: Sequence[str], folder: Path, options: ZipnumOptions, failures: Failures
) -> ClusterSummary:
    """Build the cluster of all lines of the CDX files `paths` in `folder`.

    A file that cannot be read or is damaged is told and contributes no line. Raises
    UsageError where the files do not fit together.
    """
    check_inputs(paths, options)
    with stopping(folder):
        folder.mkdir(parents=True, exist_ok=True)
    unpublish(folder)
    settings = (options.points, options.shards, options.block_lines, options.compressor, options.convert)
    job = fingerprint(paths, (*settings, options.seed, options.compressor.version(), __version__))
    work = WorkFolder(folder / ".work", job)
    runs, sample, failed = _sort(paths, work, options, failures)
    points = (
        list(options.points) if options.points is not None else splits_of(sample, options.shards, failures)
    )
    shards = _write_shards(folder, work, runs, points, options, failures)
    write_cluster_files(folder, shards, points, options.compressor, options.block_lines, options.location)
    work.scratch.remove()
    lines = sum(shard.lines for shard in shards)
    taken = sum(run.lines + run.duplicates for run in runs)
    size, blocks = sum(shard.bytes for shard in shards), sum(shard.blocks for shard in shards)
    return ClusterSummary(len(shards), lines, blocks, taken - lines, size, failed)


def check_inputs(paths: Sequence[str], options: ZipnumOptions) -> None:
    """Raise UsageError where the files do not fit together, or not the options."""
    flavour = check_flavours(paths)
    if options.convert and flavour is not None and flavour.fields != FIELDS:
        raise UsageError(
            f"--convert takes CDX lines with {FIELDS} fields, but {flavour.path} is {flavour.name}"
        )
    try:
        options.compressor.version()
    except ValueError as error:
        raise UsageError(str(error)) from None


def _sort(
    paths: Sequence[str], work: WorkFolder, options: ZipnumOptions, failures: Failures
) -> tuple[list[Run], Sample, int]:
    size = options.shards * SAMPLES_PER_SHARD if options.points is None else 0
    tasks = [
        _SortTask(number, group, work.scratch.folder, size, f"{options.seed}:{number}", options.convert)
        for number, group in enumerate(deal(paths))
    ]
    runs: list[Run] = []
    sample: Sample = []
    failed = 0
    with Progress("sorting", len(tasks), total_size(paths), options.quiet) as progress:
        failures.show_on(progress)
        note_empty(paths, failures)
        done = work.run(
            "sort", _sort_group, tasks, options.processes, progress, partial(_are_there, work.scratch)
        )
        for result in done:
            runs += (Run(*run) for run in result["runs"])
            keys = ((priority, key.encode("latin-1")) for priority, key in result["sample"])
            sample = merge_samples((sample, list(keys)), size)
            for path, reason, hint in result["failures"]:
                failures.add(path, None, reason, hint)
                failed += 1
    return sorted(runs), sample, failed


def _are_there(scratch: Scratch, result: dict[str, list[Any]]) -> bool:
    return all(file_size(str(scratch.folder / run.name)) == run.end for run in starmap(Run, result["runs"]))


def _sort_group(task: _SortTask) -> dict[str, list[Any]]:
    """Runs, sample and failures of a group of files, as JSON can hold them."""
    scratch = Scratch(task.scratch)
    sorter = LineSorter(scratch.create, f"sort-{task.number:05d}")
    reservoir = Reservoir(task.sample_size, random.Random(task.seed))
    failures = sort_files(task.paths, sorter, reservoir, task.convert)
    sample = [(priority, key.decode("latin-1")) for priority, key in reservoir.sample()]
    return {"runs": sorter.finish(), "sample": sample, "failures": failures}


def sort_files(
    paths: Sequence[str], sorter: LineSorter, reservoir: Reservoir, convert: bool
) -> list[tuple[str, str, str]]:
    """Read CDX files into `sorter` and past `reservoir`; path, reason and hint of those that are no good.

    A damaged file leaves no line in either.
    """
    failures = []
    for path in paths:
        sorter.begin()
        reservoir.begin()
        try:
            for lines in read_cdx(path):
                if convert:
                    lines = [convert_line(line) for line in lines if is_capture_line(line)]
                reservoir.add(lines)
                sorter.add(lines)
        except (InputError, ValueError) as error:
            sorter.undo()
            reservoir.undo()
            reason = error.reason if isinstance(error, InputError) else str(error)
            todo = (error.hint if isinstance(error, InputError) else "") or AGAIN
            failures.append((path, reason, f"none of its lines are in the cluster: {todo}"))
    return failures


def _write_shards(
    folder: Path,
    work: WorkFolder,
    runs: Sequence[Run],
    points: Sequence[bytes],
    options: ZipnumOptions,
    failures: Failures,
) -> list[ShardEntry]:
    scratch = work.scratch
    few = fewer_runs(runs, scratch.create, scratch.reader)
    slices = _slices(few, points, scratch)
    tasks = [
        _ShardTask(number, part, folder, scratch.folder, options.compressor, options.block_lines)
        for number, part in enumerate(slices)
    ]
    with Progress("writing shards", len(tasks), 0, options.quiet) as progress:
        failures.show_on(progress)
        results = work.run(
            "shard", _write_shard, tasks, options.processes, progress, partial(_is_there, folder)
        )
        return sorted(starmap(ShardEntry, results))


def _is_there(folder: Path, result: Sequence[Any]) -> bool:
    shard = ShardEntry(*result)
    part = folder / shard.name.replace("cdx-", "part-").removesuffix(".gz")
    return file_size(str(folder / shard.name)) == shard.bytes and part.exists()


def _slices(runs: Sequence[Run], points: Sequence[bytes], scratch: Scratch) -> list[list[Slice]]:
    """For each shard, what belongs to it of each run."""
    lows, highs = [None, *points], [*points, None]
    shards: list[list[Slice]] = [[] for _ in lows]
    for run in runs:
        cuts = cut_run(scratch.reader(run.name), run, points)
        for shard, (start, end), low, high in zip(shards, cuts, lows, highs, strict=True):
            if start < end:
                shard.append(Slice(run, start, end, low, high))
    return shards


def _write_shard(task: _ShardTask) -> ShardEntry:
    lists = merge_slices(task.slices, Scratch(task.scratch).reader)
    return write_shard_files(lists, task.number, task.folder, task.compressor, task.block_lines)


def write_shard_files(
    lists: Iterable[list[bytes]], number: int, folder: Path, compressor: Compressor, block_lines: int
) -> ShardEntry:
    """Write the sorted, distinct lines of a shard, and its part, to `folder`, each whole or not at all."""
    name = shard_name(number)
    with write_atomic(folder / name) as shard, write_atomic(folder / part_name(number)) as part:
        report = write_shard(lists, name, shard, part, compressor, block_lines)
    return ShardEntry(name, report.bytes, report.lines, report.blocks, report.sha256)
