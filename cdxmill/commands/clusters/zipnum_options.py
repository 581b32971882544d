"""How a cluster is built, by this machine or another engine, and what an engine gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cdxmill.formats.clusters.compressor import BLOCKS, Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import BLOCK_LINES
from cdxmill.inputs.cdx_files import Inventory
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.storage.location import Location
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD
from cdxmill.version import __version__


@dataclass(frozen=True, kw_only=True)
class ZipnumOptions:
    """How a cluster is built. If `points` is None, `shards` - 1 of them are found by sampling.

    If `shards` is 0, the size of the CDX files decides (see `shards_by_size`).
    """

    shards: int = 0
    points: tuple[bytes, ...] | None = None
    block_lines: int = BLOCK_LINES
    compressor: Compressor = BLOCKS
    convert: bool = False
    seed: int = 0
    processes: int = 1
    location: str | None = None
    replace: bool = False
    quiet: bool = False
    make: Make | None = None
    """Makes the shards on another engine."""
    method: str = "zipnum"
    """How blocks are cut: what other bytes depend on than inputs and options."""
    excluded: tuple[LineRange, ...] = ()
    """Lines that are skipped."""
    is_far: bool = False
    """Whether the tasks of that engine can outlive this process: they get a directory of their own."""

    @property
    def sample_size(self) -> int:
        """Lines of the sample; 0 if the split points are given."""
        return self.shards * SAMPLES_PER_SHARD if self.points is None else 0

    def settings(self) -> tuple[object, ...]:
        """Everything besides the inputs that the bytes of a cluster depend on."""
        lines = self.method, self.points, self.shards, self.convert, self.seed, self.excluded
        return *lines, self.block_lines, self.compressor, self.compressor.version(), __version__


class Made(NamedTuple):
    """The shards that an engine has written. `taken` counts the lines of all inputs, with duplicates."""

    shards: list[ShardEntry]
    points: list[bytes]
    taken: int
    failures: list[Failure]
    has_read_twice: bool = False


class Make(Protocol):
    """An engine: writes the shards of the files in the inventory to `directory`, and reports the files that failed.

    The results of finished shards are in `directory`/.work, where a rerun finds them.
    """

    def __call__(
        self, inventory: Inventory, directory: Location, options: ZipnumOptions, failures: Failures, /
    ) -> Made:
        """Write the shards. Raises StoppedError."""
