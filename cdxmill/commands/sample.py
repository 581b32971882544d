"""sample: CDX files -> split points, as text and as a SequenceFile."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from cdxmill.cluster.split_files import check_splits, split_files, write_splits
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.cdx_files import find_cdx_files, take_inventory
from cdxmill.inputs.pipes import Pipes
from cdxmill.messages import count
from cdxmill.options.clusters import Sampling
from cdxmill.options.option import optional_path, required_paths
from cdxmill.outputs.names import check_inputs_stay
from cdxmill.running.failures import Failures
from cdxmill.storage.location import locate
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD, sample_inventory, splits_of


def sample(asked: Sampling, failures: Failures, pipes: Pipes | None = None) -> list[bytes]:
    """Up to `shards` - 1 split points from a uniform sample of all lines, or of the lines of a `fraction` of the files.

    With `output` they are also written there, and as a SequenceFile beside it. Failures are reported. Raises UsageError
    if one of the two is an input or exists and may not be replaced, or if `fraction` is out of range, InputError if no line
    can be read.
    """
    output = optional_path(asked.output)
    if output is not None:
        check_splits(output, replace=asked.replace)
    paths = find_cdx_files(required_paths(asked.cdx), failures, pipes)
    if output is not None:
        check_inputs_stay(split_files(output), map(locate, paths))
    chosen = choose_files(paths, asked.fraction, asked.seed)
    if len(chosen) < len(paths) and not asked.quiet:
        failures.note(f"note: {count(len(chosen), 'file')} of {len(paths)} read")
    size = asked.shards * SAMPLES_PER_SHARD
    found = sample_inventory(take_inventory(chosen), asked.seed, size, asked.processes, asked.quiet, failures)
    if failures.count and not found:
        raise InputError(output or "sample", "no line can be read, so there are no split points")
    points = splits_of(found, asked.shards, failures)
    if output is not None:
        check_splits(output, replace=asked.replace)  # again: another run may have written them
        write_splits(points, output)
    return points


def choose_files(paths: Sequence[str], fraction: float, seed: int) -> list[str]:
    """A random `fraction` of the files, in their order; at least one.

    Each file has the same chance whatever its size, and so has each line. Raises UsageError.
    """
    if not 0 < fraction <= 1:
        raise UsageError("--fraction must be above 0 and at most 1")
    wanted = max(1, math.ceil(fraction * len(paths) - 1e-9))
    chosen = random.Random(f"{seed}:files").sample(range(len(paths)), min(wanted, len(paths)))
    return [paths[number] for number in sorted(chosen)]
