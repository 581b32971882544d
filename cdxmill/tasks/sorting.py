"""CDX files -> sorted runs on scratch space, and a sample of their lines: one task per group of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.inputs.cdx_files import CdxSource, read_pieces, read_sorted
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.drop_lines import LineRange, outside
from cdxmill.stages.lines.line_lists import convert_captures, split_lines
from cdxmill.stages.lines.merge_lines import MOST_RUNS, fewer_runs
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, TextSampler, sampled
from cdxmill.stages.lines.sort_lines import LineSorter, Run
from cdxmill.storage.location import locate
from cdxmill.storage.scratch import Scratch
from cdxmill.tasks.whole_files import NONE_IN_CLUSTER, whole_or_nothing

LEAST_SORTED = 8 << 20
"""A smaller file is spilled together with others, sorted or not."""


_RUN = str, int, int, int, int, int, str
_SAMPLED = float, bytes
_FAILURE = str, (int, type(None)), str, str, bool


class SortTask(NamedTuple):
    """A group of sources, and how it is sorted and sampled. The task leaves at most `most_runs` runs.

    With `shards`, large local files that are sorted already are not spilled. They are read again when the runs are
    merged to that number of shards, so they must not change until then. `ceiling`: see `guess_ceiling`. Lines in `excluded`
    are skipped.
    """

    number: int
    sources: list[CdxSource]
    scratch: Path
    convert: bool
    most_runs: int
    shards: int = 0
    seed: str = ""
    sample_size: int = 0
    ceiling: float = 1.0
    excluded: Sequence[LineRange] = ()


class SortResult(NamedTuple):
    """What came of a group of files."""

    runs: list[Run]
    sample: Sample
    failures: list[Failure]
    excluded: int = 0

    def to_json(self) -> dict[str, Any]:
        """The result as JSON can hold it, each value under its name. Keys may have any bytes."""
        return {
            "runs": [run._asdict() for run in self.runs],
            "sample": [(priority, key.decode("latin-1")) for priority, key in self.sample],
            "failures": [failure._asdict() for failure in self.failures],
            "excluded": self.excluded,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SortResult:
        """What `to_json` was given."""
        return cls(
            [Run(**run) for run in content["runs"]],
            [(priority, key.encode("latin-1")) for priority, key in content["sample"]],
            [Failure(**failure) for failure in content["failures"]],
            int(content["excluded"]),
        )

    def is_whole(self, scratch: Scratch) -> bool:
        """Whether all its runs are still on scratch space. Raises TypeError if a value has a wrong type."""
        _check_types(self.runs, _RUN)
        _check_types(self.sample, _SAMPLED)
        _check_types(self.failures, _FAILURE)
        return all(locate(scratch.directory / run.name).size() == run.end for run in self.runs)


def _check_types(rows: Sequence[tuple[Any, ...]], wanted: tuple[Any, ...]) -> None:
    """Raise TypeError if a value of a row is not of the wanted type. A work directory can hold any JSON."""
    for row in rows:
        if not all(map(isinstance, row, wanted)):
            raise TypeError(f"not the result of a sort: {row}")


def share_of_runs(tasks: int) -> int:
    """The number of runs that each of `tasks` may leave, so that all can be merged at once."""
    return max(1, MOST_RUNS // max(tasks, 1))


def sort_group(task: SortTask) -> SortResult:
    """Sort and sample the lines of a group of files."""
    scratch = Scratch(task.scratch)
    sorter = LineSorter(scratch.create, f"sort-{task.number:05d}")
    reservoir = Reservoir(task.sample_size, task.seed, task.ceiling)
    failures: list[Failure] = []
    excluded = 0
    for source in task.sources:
        with whole_or_nothing(source.path, failures, sorter, reservoir, consequence=NONE_IN_CLUSTER):
            excluded += _sort(source, sorter, reservoir, task)
    runs = fewer_runs(sorter.finish(), scratch.create, scratch.reader, task.most_runs, scratch.delete)
    return SortResult(runs, reservoir.sample(), failures, excluded)


def _sort(source: CdxSource, sorter: LineSorter, reservoir: Reservoir, task: SortTask) -> int:
    """Sort the lines of a file. Returns how many were skipped."""
    is_large = source.size >= LEAST_SORTED and not task.convert and not task.excluded
    if is_large and task.shards and not source.location.is_remote:
        if _adopt(source, sorter, reservoir, task.shards):
            return 0
        reservoir.undo()
    pieces = sampled(read_pieces(source.location), reservoir)
    excluded = 0
    for found in split_lines(sorter.add_sorted(pieces) if is_large else pieces):
        lines = convert_captures(found) if task.convert else found
        kept = outside(lines, task.excluded) if task.excluded else lines
        excluded += len(lines) - len(kept)
        sorter.add(kept)
    return excluded


def _adopt(source: CdxSource, sorter: LineSorter, reservoir: Reservoir, shards: int) -> bool:
    """Use the file itself as a run. False if it is not suitable; a part of it may have been sampled then.

    Each of `shards` shards inflates one member from its start; if members are large, a spill costs less.
    """
    sampler = TextSampler(reservoir)
    seek_points = read_sorted(source.location, source.size // shards, sampler.add)
    if seek_points is None:
        return False
    sampler.end()
    sorter.adopt(str(Path(source.location.local).absolute()), seek_points)
    return True
