"""The options of samplecdxjob.py and dosample.py."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Annotated

from cdxmill.options.option import Option
from cdxmill.options.running import Replace, Seed
from cdxmill.options.table import read_options
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD


@dataclass(kw_only=True, repr=False, eq=False)
class SplitsOptions:
    """How many shards, and where their split points are written."""

    shards: Annotated[int, Option(min=1, help="Number of shards.")] = 300
    splitfile: Annotated[
        str | None, Option(help="Write the split points to this SequenceFile, and to a .txt file beside it.")
    ] = None
    replace: Replace = False


@dataclass(kw_only=True, repr=False, eq=False)
class SampleJobOptions(SplitsOptions):
    """The options of the sample job."""

    scaler: Annotated[int, Option(min=1, help="Number of sampled lines per shard.")] = SAMPLES_PER_SHARD
    seed: Seed = 0
    inputs: tuple[str, ...]
    output_dir: str | None

    @property
    def size(self) -> int:
        """The number of lines in the whole sample."""
        return self.shards * self.scaler


def parse_options(options: Namespace) -> SampleJobOptions:
    """The options as one typed value. Raises UsageError if one is invalid."""
    return read_options(SampleJobOptions, options, inputs=tuple(options.args), output_dir=options.output_dir)
