"""sample: CDX files -> split points, as text and as a SequenceFile."""

from __future__ import annotations

import heapq
import math
import posixpath
import random
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from cdxmill.commands.cdx_inputs import deal, note_empty, read_pieces
from cdxmill.commands.pool import run_tasks
from cdxmill.commands.progress import Failures, Progress, count
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.gzip_member import MAGIC
from cdxmill.formats.split_points import format_sequence_file, format_text, parse
from cdxmill.stages.sample_lines import Reservoir, Sample, add_pieces, merge_samples, pick_splits
from cdxmill.storage.choose import (
    Place,
    ask_all,
    file_size,
    open_ranges,
    read_bytes,
    total_size,
    write_atomic,
)

SAMPLES_PER_SHARD = 400
"""The worst of 300 shards then has about 1.15 times the mean of lines; 25 % above is rarer than one in a million."""

_SMALL = 8 << 20
"""Inputs of fewer bytes are sampled without a guess of their lines."""
_LOOKED_AT, _LOOK = 8, 1 << 16
"""Files, and bytes at the start of each, that tell how many lines there may be."""
_GENEROUS = 1.25
"""Lines looked at for each that is kept, if the guess is right."""


class SampleTask(NamedTuple):
    """A group of CDX files, and how it is sampled."""

    paths: list[str]
    seed: str
    size: int
    ceiling: float = 1.0


class SampleResult(NamedTuple):
    """A sample of a group's lines, and the files that could not be read."""

    sample: Sample
    failures: list[InputError]


def sample_files(
    paths: Sequence[str],
    shards: int,
    seed: int,
    processes: int,
    failures: Failures,
    quiet: bool = False,
    fraction: float = 1.0,
) -> list[bytes]:
    """Up to `shards` - 1 split points from a uniform sample of all lines, or of those of a part of the files.

    Failures are told. Raises UsageError where `fraction` is none.
    """
    size = shards * SAMPLES_PER_SHARD
    named, paths = len(paths), choose_files(paths, fraction, seed)
    if len(paths) < named and not quiet:
        failures.note(f"note: {count(len(paths), 'file')} of {named} read")
    note_empty(paths, failures)
    ceiling = guess_ceiling(paths, size)
    sample = _sample(sample_tasks(paths, seed, size, ceiling), processes, failures, quiet)
    if ceiling < 1 and len(sample) < size:  # far fewer lines than guessed
        sample = _sample(sample_tasks(paths, seed, size), processes, None, quiet)
    return splits_of(sample, shards, failures)


def choose_files(paths: Sequence[str], fraction: float, seed: int) -> list[str]:
    """That part of the files, chosen at random, in their order; at least one.

    Each file has the same chance whatever its size, and so has each line. Raises UsageError.
    """
    if not 0 < fraction <= 1:
        raise UsageError("--fraction is a number above 0, and 1 at the most")
    wanted = max(1, math.ceil(fraction * len(paths) - 1e-9))
    chosen = random.Random(f"{seed}:files").sample(range(len(paths)), min(wanted, len(paths)))
    return [paths[number] for number in sorted(chosen)]


def sample_tasks(paths: Sequence[str], seed: int, size: int, ceiling: float = 1.0) -> list[SampleTask]:
    """The files in groups, each sampled by itself; the same ones on any machine."""
    return [SampleTask(group, f"{seed}:{number}", size, ceiling) for number, group in enumerate(deal(paths))]


def guess_ceiling(paths: Sequence[str], size: int) -> float:
    """Below which priority the `size` lines of least priority are to be looked for: 1 for few lines."""
    sizes = ask_all(file_size, paths)
    if sum(sizes) < _SMALL:
        return 1.0
    largest = heapq.nlargest(_LOOKED_AT, zip(sizes, paths, strict=True))
    density = sum(_lines_a_byte(path) for _, path in largest) / len(largest)
    lines = density * sum(sizes)
    return min(1.0, _GENEROUS * size / lines) if lines else 1.0


def _lines_a_byte(path: str) -> float:
    """Line ends for each byte at the start of a file, packed or not; 0 where it cannot be read."""
    try:
        with open_ranges(path) as read_at:
            head = read_at(0, _LOOK)
        if not head.startswith(MAGIC):
            return head.count(b"\n") / max(len(head), 1)
        unpacker = zlib.decompressobj(31)
        text = unpacker.decompress(head)
        return text.count(b"\n") / (len(head) - len(unpacker.unused_data))
    except (InputError, zlib.error):
        return 0.0


def _sample(tasks: list[SampleTask], processes: int, failures: Failures | None, quiet: bool) -> Sample:
    """All tasks' samples, merged; `failures` of None: they are told already."""
    size = tasks[0].size if tasks else 0
    merged: Sample = []
    paths = [path for task in tasks for path in task.paths]
    with Progress("sampling", len(tasks), total_size(paths), quiet) as progress:
        if failures is not None:
            failures.show_on(progress)
        for _, result in run_tasks(sample_group, tasks, processes, progress.tick):
            if failures is not None:
                for error in result.failures:
                    failures.add(error.path, None, error.reason, error.hint)
            merged += result.sample
            if len(merged) > 4 * size:
                merged = merge_samples((merged,), size)
            progress.advance()
    return merge_samples((merged,), size)


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
    reservoir = Reservoir(task.size, random.Random(task.seed), task.ceiling)
    failures = []
    for path in task.paths:
        reservoir.begin()
        try:
            add_pieces(read_pieces(path), reservoir)
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
