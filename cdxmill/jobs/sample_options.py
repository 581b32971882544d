"""The options of samplecdxjob.py and dosample.py."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from cdxmill.errors import UsageError
from cdxmill.jobs.launcher.mrjob_types import AddOption
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD


@dataclass(frozen=True)
class SampleJobOptions:
    """The options of the sample job. `size` is the number of lines in the whole sample."""

    inputs: tuple[str, ...]
    shards: int
    size: int
    seed: int
    splitfile: str | None
    replace: bool
    output_dir: str | None


def add_options(add: AddOption) -> None:
    """Add the options to a job."""
    add("--shards", type=int, default=300, help="Number of shards. Default: 300.")
    add(
        "--scaler",
        type=int,
        default=SAMPLES_PER_SHARD,
        help=f"Number of sampled lines per shard. Default: {SAMPLES_PER_SHARD}.",
    )
    add("--seed", type=int, default=0, help="Seed of the sample. Equal seeds give equal split points.")
    add("--splitfile", help="Write the split points to this SequenceFile, and to a .txt file beside it.")
    add("--replace", action="store_true", help="Replace an existing --splitfile.")


def parse_options(options: Namespace) -> SampleJobOptions:
    """The options as one typed value. Raises UsageError if one is invalid."""
    if options.shards < 1 or options.scaler < 1:
        raise UsageError("invalid --shards or --scaler: expected a number >= 1")
    return SampleJobOptions(
        inputs=tuple(options.args),
        shards=options.shards,
        size=options.shards * options.scaler,
        seed=options.seed,
        splitfile=options.splitfile,
        replace=options.replace,
        output_dir=options.output_dir,
    )
