"""sample: CDX files -> split points, as text and as a SequenceFile."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from cdxmill.errors import UsageError
from cdxmill.inputs.cdx_files import note_empty
from cdxmill.inputs.sampling import (
    SAMPLES_PER_SHARD,
    SampleTask,
    guess_ceiling,
    sample_group,
    sample_tasks,
    splits_of,
)
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count
from cdxmill.stages.lines.sample_lines import Sample, merge_samples
from cdxmill.storage.choose import (
    total_size,
)


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
