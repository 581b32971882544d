"""zipnum: CDX files -> a ZipNum cluster.

    CDX files  --sort, spill, sample-->  runs + split points  --merge by shard-->  shards

Every file is read once, except large sorted gzip files: these serve as runs and are read again.
A killed run leaves its finished tasks in a work directory inside the cluster's directory. The same
command, started again, continues from them.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cdxmill.cluster.exclude import EXCLUDED, read_excluded
from cdxmill.cluster.find import local_directory
from cdxmill.cluster.output import Output, open_output, place_of
from cdxmill.cluster.split_files import read_splits
from cdxmill.cluster.write import (
    RunRecord,
    ShardTask,
    check_installed,
    is_shard_whole,
    read_record,
    shards_in,
    unpublish,
    write_archive_index,
    write_cluster_files,
    write_shard_of,
)
from cdxmill.commands.clusters.sorting import sort_files
from cdxmill.commands.clusters.zipnum_options import Made, ZipnumOptions
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.compressor import checked_compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import CDX_DIRECTORY
from cdxmill.formats.lines.cdx_lines import FIELDS
from cdxmill.inputs.cdx_files import Inventory, check_formats, have_changed, take_inventory
from cdxmill.inputs.shared_names import two_archives
from cdxmill.messages import count, human_bytes
from cdxmill.options.clusters import ClusterOptions, ClusterOutput
from cdxmill.outputs.names import check_inputs_stay, identity
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress
from cdxmill.running.resume import WORK, WorkDirectory, fingerprint
from cdxmill.stages.lines.cdx_text import name_of
from cdxmill.stages.lines.sample_lines import Sample
from cdxmill.stages.lines.sort_lines import Run, cut_runs
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.tasks.sampling import (
    guess_ceiling,
    run_sampling,
    sample_tasks,
    shards_by_size,
    splits_of,
)


def zipnum_options(
    asked: ClusterOptions, convert: bool = False, points: tuple[bytes, ...] | None = None
) -> ZipnumOptions:
    """How a cluster is built, with the split points of `splits`, or with `points`. Raises UsageError."""
    try:
        compressor = checked_compressor(asked.compressor, asked.level, asked.section_lines)
    except ValueError as error:
        raise UsageError(f"--compressor, --level, --section-lines: {error}") from None
    points = points if asked.splits is None else tuple(read_splits(os.fspath(asked.splits)))
    if points is not None and asked.shards not in (None, len(points) + 1):
        raise UsageError(
            f"--shards {asked.shards} does not match {asked.splits}, which gives {len(points) + 1} shards;"
            " omit one of the two options"
        )
    return ZipnumOptions(
        shards=asked.shards or (0 if points is None else len(points) + 1),
        points=points,
        block_lines=asked.numlines,
        compressor=compressor,
        convert=convert,
        seed=asked.seed,
        processes=asked.processes,
        location=asked.location,
        replace=asked.replace,
        quiet=asked.quiet,
    )


def output_place(asked: ClusterOutput, *, is_local: bool) -> PathOrUrl:
    """The directory of a new cluster, or unless it `is_local` its URL. Raises UsageError."""
    place = os.fspath(asked.output)
    return place if locate(place).is_listed and not is_local else local_directory(place)


class Beside(NamedTuple):
    """What a run writes to the directory besides the cluster: `files` exist already, `archives` is for archives.tsv."""

    files: Sequence[str] = ()
    archives: bytes = b""


class ClusterSummary(NamedTuple):
    """What is in a finished cluster. It is not `new` if an earlier run with the same inputs and options wrote it.

    With `by_size`, the size of the CDX files decided the number of shards.
    """

    shards: int
    lines: int
    blocks: int
    duplicates: int
    bytes: int
    new: bool = True
    by_size: bool = False

    def __str__(self) -> str:
        """Return one line."""
        lines = f"{count(self.lines, 'line')} in {count(self.blocks, 'block')}"
        removed = f"{count(self.duplicates, 'duplicate line')} removed"
        unchanged = "" if self.new else "; unchanged, because it has these inputs already"
        shards = f"{count(self.shards, 'shard')}{' (by size)' if self.by_size else ''}"
        return f"{lines}, {shards}, {human_bytes(self.bytes)}, {removed}{unchanged}"


def build_cluster(
    paths: Sequence[str],
    place: PathOrUrl,
    options: ZipnumOptions,
    failures: Failures,
    beside: Beside = Beside(),  # noqa: B008 - it is immutable
) -> ClusterSummary:
    """Build the cluster of all lines of the CDX files `paths` in a directory; on another engine, also at a URL.

    A file that is corrupt or cannot be read is reported and adds no lines. Requires: there are files. Raises UsageError
    if they hold different kinds of lines, or if the directory has another cluster and `options` do not replace it.
    """
    place = locate(place)
    place.check_writable()
    options = with_exclusions(options, place)
    inventory = take_inventory(paths, formats=True)
    by_size, options = not options.shards, with_shards(options, inventory)
    check_inputs(inventory, options)
    check_inputs_stay(shards_in(place), (locate(source.path) for source in inventory.sources))
    run = run_of(inventory, options)
    before = read_record(place_of(place))
    with open_output(place, run, options.replace, failures, options.points, options.is_far) as output:
        if output.finished is not None:
            return summary_of(output.finished)._replace(by_size=by_size)
        for text in two_archives(inventory.sources):
            failures.note(text)
        summary = write_cluster(inventory, output, place, run, options, failures, beside)
        output.finish()
    _note_old_indexes(output.place, before, inventory, failures)
    return summary._replace(by_size=by_size)


def _note_old_indexes(
    place: Location, before: RunRecord | None, inventory: Inventory, failures: Failures
) -> None:
    """Print how many indexes of the cluster `before`, of `build`, stay below the directory and are no inputs of the new one."""
    inputs = {identity(source.location) for source in inventory.sources}
    directory = place / CDX_DIRECTORY
    names = {
        posixpath.basename(name) for name in (before.files if before else ()) if name.endswith(".cdx.gz")
    }
    found = names and names & directory.entries().keys()
    if left := sum(identity(directory / name) not in inputs for name in found):
        what = f"{count(left, 'index file')} of the cluster that was replaced"
        failures.note(f"{directory}: note: still has {what}, not of the new one; delete what is not needed")


def with_shards(options: ZipnumOptions, inventory: Inventory) -> ZipnumOptions:
    """The options with a number of shards: the one that was given, or else the one that suits the files."""
    return options if options.shards else replace(options, shards=shards_by_size(inventory.sources))


def with_exclusions(options: ZipnumOptions, place: Location) -> ZipnumOptions:
    """The options with the exclusion list in the directory of the cluster. Raises UsageError if the engine cannot apply it."""
    excluded = tuple(read_excluded(place))
    if excluded and options.make is not None:
        raise UsageError(
            f"{place / EXCLUDED}: is applied by the local engine only; use --engine local, or move the list away and remove"
            " these captures from the finished cluster"
        )
    return replace(options, excluded=excluded)


def run_of(inventory: Inventory, options: ZipnumOptions) -> str:
    """The fingerprint of everything that the files of a cluster depend on."""
    return fingerprint("zipnum", inventory.states, options.settings(), options.location)


def summary_of(finished: RunRecord) -> ClusterSummary:
    """What an earlier run built."""
    shards, lines, blocks, duplicates, size = finished.summary
    return ClusterSummary(shards, lines, blocks, duplicates, size, new=False)


def write_cluster(
    inventory: Inventory,
    output: Output,
    place: Location,
    run: str,
    options: ZipnumOptions,
    failures: Failures,
    beside: Beside = Beside(),  # noqa: B008 - it is immutable
) -> ClusterSummary:
    """Write the cluster of the files in the inventory to `output.work`, with a record of the run `run`.

    `place` is its name in cluster.loc.
    """
    unpublish(output.work)
    job = fingerprint(inventory.states, options.settings())
    work = WorkDirectory(output.work / WORK, job, output.clear)
    output.start(options.shards)
    if options.make is None:
        made = _make(inventory, output.work, place, work, options, failures)
    else:
        made = options.make(inventory, output.work, options, failures)
    _check_made(made, inventory, place, work)
    summary = summary_of_made(made)
    if beside.archives:
        write_archive_index(output.work, beside.archives)
    output.record(run, list(map(int, summary[:5])), beside.files)
    location = locate(options.location or place)
    write_cluster_files(
        output.work, made.shards, made.points, options.compressor, options.block_lines, location
    )
    work.remove()
    return summary


def _make(
    inventory: Inventory,
    directory: Location,
    place: Location,
    work: WorkDirectory,
    options: ZipnumOptions,
    failures: Failures,
) -> Made:
    """Make the shards in processes of this machine."""
    done = sort_files(inventory, work, options, failures)
    if done.excluded:
        failures.note(f"note: {count(done.excluded, 'line')} skipped, as {EXCLUDED} says")
    made = Made([], [], 0, done.failures)
    _check_made(made, inventory, place, work)
    points = _split_points(inventory, done.sample, options, failures)
    shards = _write_shards(directory, work, done.runs, points, options)
    taken = sum(run.lines + run.duplicates for run in done.runs)
    return Made(shards, points, taken, done.failures, any(run.source for run in done.runs))


def _check_made(made: Made, inventory: Inventory, place: Location, work: WorkDirectory) -> None:
    """Raise InputError if no input could be read, StoppedError if inputs were changed while they were read twice."""
    if {failure.path for failure in made.failures} == {source.path for source in inventory.sources}:
        work.remove()  # another run has nothing to continue with
        raise InputError(str(place), "no input can be read, so no cluster was written")
    if made.has_read_twice and have_changed(inventory.sources):
        raise StoppedError("inputs were changed while they were read; run it again")


def summary_of_made(made: Made) -> ClusterSummary:
    """The summary of a new cluster."""
    lines = sum(shard.lines for shard in made.shards)
    return ClusterSummary(
        shards=len(made.shards),
        lines=lines,
        blocks=sum(shard.blocks for shard in made.shards),
        duplicates=made.taken - lines,
        bytes=sum(shard.bytes for shard in made.shards),
    )


def check_inputs(inventory: Inventory, options: ZipnumOptions) -> None:
    """Raise UsageError if the files hold different kinds of lines, or the options do not suit them."""
    first = check_formats(inventory.sources)
    if options.convert and first and first.fields is not None and first.fields != FIELDS:
        raise UsageError(
            f"--convert takes CDX lines with {FIELDS} fields, but {first.path} is {name_of(first.fields)}"
        )
    check_installed(options.compressor)


def _split_points(
    inventory: Inventory, sample: Sample, options: ZipnumOptions, failures: Failures
) -> list[bytes]:
    """The split points given, or those from the sample; if it came out too small, the files are sampled again."""
    if options.points is not None:
        return list(options.points)
    size = options.sample_size
    if len(sample) < size and guess_ceiling(inventory, size) < 1:  # far fewer lines than guessed
        tasks = sample_tasks(inventory, options.seed, size)
        sample = run_sampling(tasks, inventory.total, options.processes, options.quiet, None)
    return splits_of(sample, options.shards, failures)


def _write_shards(
    directory: Location,
    work: WorkDirectory,
    runs: Sequence[Run],
    points: Sequence[bytes],
    options: ZipnumOptions,
) -> list[ShardEntry]:
    tasks = [
        ShardTask(
            number=number,
            slices=slices,
            directory=directory,
            scratch=work.scratch.directory,
            compressor=options.compressor,
            block_lines=options.block_lines,
        )
        for number, slices in enumerate(cut_runs(runs, points, work.scratch.reader))
    ]
    # the largest first, so that all processes end together
    tasks.sort(key=ShardTask.packed, reverse=True)
    with Progress("writing shards", len(tasks), sum(map(ShardTask.packed, tasks)), options.quiet) as progress:

        def is_whole(content: Any) -> bool:
            return is_shard_whole(directory, ShardEntry(**content))

        results = work.run("shard", _write_shard, tasks, options.processes, progress, is_whole)
        return sorted(ShardEntry(**content) for content in results)


def _write_shard(task: ShardTask) -> dict[str, Any]:
    return write_shard_of(task)._asdict()
