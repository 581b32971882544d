"""sample: CDX files -> split points, as text and as a SequenceFile."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from cdxmill.errors import UsageError
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.messages import count
from cdxmill.running.failures import Failures
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD, sample_inventory, splits_of


def sample_files(
    paths: Sequence[str],
    shards: int,
    seed: int,
    processes: int,
    failures: Failures,
    quiet: bool = False,
    fraction: float = 1.0,
) -> list[bytes]:
    """Up to `shards` - 1 split points from a uniform sample of all lines, or of the lines of a `fraction` of the files.

    Failures are reported. Raises UsageError if `fraction` is out of range.
    """
    if shards < 1:
        raise UsageError("the number of shards must be at least 1")
    size = shards * SAMPLES_PER_SHARD
    chosen = choose_files(paths, fraction, seed)
    if len(chosen) < len(paths) and not quiet:
        failures.note(f"note: {count(len(chosen), 'file')} of {len(paths)} read")
    inventory = take_inventory(chosen)
    sample = sample_inventory(inventory, seed, size, processes, quiet, failures)
    return splits_of(sample, shards, failures)


def choose_files(paths: Sequence[str], fraction: float, seed: int) -> list[str]:
    """A random `fraction` of the files, in their order; at least one.

    Each file has the same chance whatever its size, and so has each line. Raises UsageError.
    """
    if not 0 < fraction <= 1:
        raise UsageError("--fraction must be above 0 and at most 1")
    wanted = max(1, math.ceil(fraction * len(paths) - 1e-9))
    chosen = random.Random(f"{seed}:files").sample(range(len(paths)), min(wanted, len(paths)))
    return [paths[number] for number in sorted(chosen)]
