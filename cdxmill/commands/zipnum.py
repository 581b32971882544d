"""zipnum: CDX files -> a ZipNum cluster.

    CDX files  --sort, spill, sample-->  runs + split points  --merge by shard-->  shards

Everything is read once, but large sorted gzip files: these are runs as they are. A run killed
half-way leaves its finished tasks in a work folder inside the cluster's; the same command goes
on from them.
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
from cdxmill.cluster.write import unpublish, write_cluster_files
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.cluster_manifest import ShardEntry
from cdxmill.formats.convert import FIELDS
from cdxmill.formats.zipnum_block import Compressor
from cdxmill.formats.zipnum_index import part_name, shard_name
from cdxmill.inputs.cdx_files import check_flavours, deal, note_empty
from cdxmill.inputs.sampling import SAMPLES_PER_SHARD, guess_ceiling, sample_group, sample_tasks, splits_of
from cdxmill.inputs.sorting import finish_runs, share_of_runs, sort_files
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.running.resume import WorkFolder, fingerprint
from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.merge_blocks import merge_blocks
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, merge_samples
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.sorted_runs import Run, Slice, cut_runs
from cdxmill.stages.zipnum.write_shard import BLOCK_LINES, write_shard
from cdxmill.storage.choose import total_size
from cdxmill.storage.local import file_size, make_folder, write_atomic
from cdxmill.storage.scratch import Scratch


@dataclass(frozen=True, kw_only=True)
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

    def __str__(self) -> str:
        """Return one line."""
        lines = f"{count(self.lines, 'line')} in {count(self.blocks, 'block')}"
        removed = f"{count(self.duplicates, 'duplicate line')} removed"
        return f"{lines}, {count(self.shards, 'shard')}, {human_bytes(self.bytes)}, {removed}"


class _SortTask(NamedTuple):
    number: int
    paths: list[str]
    scratch: Path
    sample_size: int
    seed: str
    convert: bool
    shards: int
    ceiling: float
    most_runs: int


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
    make_folder(folder)
    unpublish(folder)
    settings = _settings(options)
    job = fingerprint(paths, settings)
    work = WorkFolder(folder / ".work", job)
    runs, sample, failed = _sort(paths, work, options, failures)
    points = (
        list(options.points) if options.points is not None else splits_of(sample, options.shards, failures)
    )
    shards = _write_shards(folder, work, runs, points, options, failures)
    if any(run.source for run in runs) and fingerprint(paths, settings) != job:
        raise StoppedError("inputs were changed while they were read; run it again")
    write_cluster_files(folder, shards, points, options.compressor, options.block_lines, options.location)
    work.scratch.remove()
    lines = sum(shard.lines for shard in shards)
    taken = sum(run.lines + run.duplicates for run in runs)
    size, blocks = sum(shard.bytes for shard in shards), sum(shard.blocks for shard in shards)
    return ClusterSummary(
        shards=len(shards),
        lines=lines,
        blocks=blocks,
        duplicates=taken - lines,
        bytes=size,
        failed_inputs=failed,
    )


def _settings(options: ZipnumOptions) -> tuple[object, ...]:
    """All that the bytes of a cluster depend on, but the inputs."""
    lines = options.points, options.shards, options.convert, options.seed
    return *lines, options.block_lines, options.compressor, options.compressor.version(), __version__


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
    ceiling = guess_ceiling(paths, size) if size else 1.0
    tasks = _sort_tasks(paths, work.scratch.folder, options, size, ceiling)
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
    if ceiling < 1 and len(sample) < size:  # far fewer lines than guessed
        sample = _sample_again(paths, size, options)
    return sorted(runs), sample, failed


def _sort_tasks(
    paths: Sequence[str], scratch: Path, options: ZipnumOptions, size: int, ceiling: float
) -> list[_SortTask]:
    shards = options.shards if options.points is None else len(options.points) + 1
    groups = deal(paths)
    rest = options.convert, shards, ceiling, share_of_runs(len(groups))
    return [
        _SortTask(number, group, scratch, size, f"{options.seed}:{number}", *rest)
        for number, group in enumerate(groups)
    ]


def _sample_again(paths: Sequence[str], size: int, options: ZipnumOptions) -> Sample:
    """As `sample` does; files that cannot be read are told already."""
    tasks = sample_tasks(paths, options.seed, size)
    with Progress("sampling", len(tasks), total_size(paths), options.quiet) as progress:
        results = run_tasks(sample_group, tasks, options.processes, progress.tick)
        return merge_samples((result.sample for _, result in results), size)


def _are_there(scratch: Scratch, result: dict[str, list[Any]]) -> bool:
    return all(file_size(str(scratch.folder / run.name)) == run.end for run in starmap(Run, result["runs"]))


def _sort_group(task: _SortTask) -> dict[str, list[Any]]:
    """Runs, sample and failures of a group of files, as JSON can hold them."""
    scratch = Scratch(task.scratch)
    sorter = LineSorter(scratch.create, f"sort-{task.number:05d}")
    reservoir = Reservoir(task.sample_size, random.Random(task.seed), task.ceiling)
    failures = sort_files(task.paths, sorter, reservoir, task.convert, task.shards)
    sample = [(priority, key.decode("latin-1")) for priority, key in reservoir.sample()]
    return {"runs": finish_runs(sorter, scratch, task.most_runs), "sample": sample, "failures": failures}


def _write_shards(
    folder: Path,
    work: WorkFolder,
    runs: Sequence[Run],
    points: Sequence[bytes],
    options: ZipnumOptions,
    failures: Failures,
) -> list[ShardEntry]:
    scratch = work.scratch
    slices = cut_runs(runs, points, scratch.reader)
    tasks = [
        _ShardTask(number, part, folder, scratch.folder, options.compressor, options.block_lines)
        for number, part in enumerate(slices)
    ]
    # the largest first, so that all processes end together
    tasks.sort(key=lambda task: sum(part.packed() for part in task.slices), reverse=True)
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


def _write_shard(task: _ShardTask) -> ShardEntry:
    blocks = merge_blocks(task.slices, Scratch(task.scratch).reader, task.block_lines)
    return write_shard_files(blocks, task.number, task.folder, task.compressor)


def write_shard_files(
    blocks: Iterable[TextBlock], number: int, folder: Path, compressor: Compressor
) -> ShardEntry:
    """Write the blocks of a shard, and its part, to `folder`, each whole or not at all."""
    name = shard_name(number)
    with write_atomic(folder / name) as shard, write_atomic(folder / part_name(number)) as part:
        report = write_shard(blocks, name, shard, part, compressor)
    return ShardEntry(name, report.bytes, report.lines, report.blocks, report.sha256)
