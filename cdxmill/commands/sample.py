"""sample: CDX files -> split points, as text and as a SequenceFile."""

from __future__ import annotations

import posixpath
import random
from collections.abc import Sequence
from typing import NamedTuple

from cdxmill.commands.cdx_inputs import deal, note_empty, read_cdx
from cdxmill.commands.pool import run_tasks
from cdxmill.commands.progress import Failures, Progress, count
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.split_points import format_sequence_file, format_text, parse
from cdxmill.stages.sample_lines import Reservoir, Sample, merge_samples, pick_splits
from cdxmill.storage.choose import Place, read_bytes, total_size, write_atomic

SAMPLES_PER_SHARD = 400
"""The worst of 300 shards then has about 1.15 times the mean of lines; 25 % above is rarer than one in a million."""


class SampleTask(NamedTuple):
    """A group of CDX files, and how it is sampled."""

    paths: list[str]
    seed: str
    size: int


class SampleResult(NamedTuple):
    """A sample of a group's lines, and the files that could not be read."""

    sample: Sample
    failures: list[InputError]


def sample_files(
    paths: Sequence[str], shards: int, seed: int, processes: int, failures: Failures, quiet: bool = False
) -> list[bytes]:
    """Up to `shards` - 1 split points from a uniform sample of all lines. Failures are told."""
    size = shards * SAMPLES_PER_SHARD
    tasks = [SampleTask(group, f"{seed}:{number}", size) for number, group in enumerate(deal(paths))]
    merged: Sample = []
    with Progress("sampling", len(tasks), total_size(paths), quiet) as progress:
        failures.show_on(progress)
        note_empty(paths, failures)
        for _, result in run_tasks(sample_group, tasks, processes, progress.tick):
            for error in result.failures:
                failures.add(error.path, None, error.reason, error.hint)
            merged = merge_samples((merged, result.sample), size)
            progress.advance()
    return splits_of(merged, shards, failures)


def splits_of(sample: Sample, shards: int, failures: Failures) -> list[bytes]:
    """Split points from a sample; a note where there are fewer keys than shards asked for."""
    points = pick_splits((key for _, key in sample), shards)
    if len(points) + 1 < shards:
        why = "there are too few distinct keys" if sample else "no line was found"
        failures.note(f"note: {count(len(points) + 1, 'shard')}, not {shards}: {why}")
    return points


def write_splits(points: Sequence[bytes], place: Place) -> None:
    """Write `place`, a path or URL, as text, and a SequenceFile beside it with the ending `.seq`.

    Where `place` itself ends so, it is the SequenceFile, and the text beside it ends in `.txt`.
    """
    stem, ending = posixpath.splitext(str(place))
    with write_atomic(f"{stem}.txt" if ending == ".seq" else place) as file:
        file.write(format_text(points))
    with write_atomic(f"{stem}.seq") as file:
        file.write(format_sequence_file(points))


def sample_group(task: SampleTask) -> SampleResult:
    """A uniform sample of `task.size` of all lines of a group of files."""
    reservoir = Reservoir(task.size, random.Random(task.seed))
    failures = []
    for path in task.paths:
        reservoir.begin()
        try:
            for lines in read_cdx(path):
                reservoir.add(lines)
        except InputError as error:
            reservoir.undo()
            failures.append(error)
    return SampleResult(reservoir.sample(), failures)


def read_splits(place: Place) -> list[bytes]:
    """The split points in a text file or SequenceFile, at a path or URL. Raises UsageError."""
    try:
        return parse(read_bytes(place))
    except InputError as error:
        raise UsageError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from None
