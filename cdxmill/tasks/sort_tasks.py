"""One task of sorting: a group of CDX files -> sorted runs, a sample, and the files that failed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.inputs.sources import CdxSource
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.sample_lines import Reservoir, Sample
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.storage.local.files import file_size
from cdxmill.storage.scratch import Scratch
from cdxmill.tasks.sampling import sample_from_json, sample_to_json
from cdxmill.tasks.sorting import finish_runs, sort_and_sample

_RUN = str, int, int, int, int, int, str
_SAMPLED = float, bytes
_FAILURE = str, (int, type(None)), str, str


class SortTask(NamedTuple):
    """A group of sources, and how it is sorted and sampled.

    `sample_size` of 0: no sample. `ceiling`: see `guess_ceiling`. The task leaves at most `most_runs` runs.
    """

    number: int
    sources: list[CdxSource]
    scratch: Path
    seed: str
    sample_size: int
    ceiling: float
    convert: bool
    shards: int
    most_runs: int


class SortResult(NamedTuple):
    """What came of a group of files."""

    runs: list[Run]
    sample: Sample
    failures: list[Failure]

    def to_json(self) -> dict[str, Any]:
        """The result as JSON can hold it, each value under its name."""
        return {
            "runs": [run._asdict() for run in self.runs],
            "sample": sample_to_json(self.sample),
            "failures": [failure._asdict() for failure in self.failures],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SortResult:
        """What `to_json` was given."""
        return cls(
            [Run(**run) for run in content["runs"]],
            sample_from_json(content["sample"]),
            [Failure(**failure) for failure in content["failures"]],
        )

    def is_whole(self, scratch: Scratch) -> bool:
        """Whether all its runs are still on scratch space. Raises TypeError if a value has a wrong type."""
        _check_types(self.runs, _RUN)
        _check_types(self.sample, _SAMPLED)
        _check_types(self.failures, _FAILURE)
        return all(file_size(str(scratch.directory / run.name)) == run.end for run in self.runs)


def _check_types(rows: Sequence[tuple[Any, ...]], wanted: tuple[Any, ...]) -> None:
    """Raise TypeError if a value of a row is not of the wanted type. A work directory can hold any JSON."""
    for row in rows:
        if not all(map(isinstance, row, wanted)):
            raise TypeError(f"not the result of a sort: {row}")


def sort_group(task: SortTask) -> SortResult:
    """Sort and sample the lines of a group of files."""
    scratch = Scratch(task.scratch)
    sorter = LineSorter(scratch.create, f"sort-{task.number:05d}")
    reservoir = Reservoir(task.sample_size, random.Random(task.seed), task.ceiling)
    failures = sort_and_sample(task.sources, sorter, reservoir, task.convert, task.shards)
    return SortResult(finish_runs(sorter, scratch, task.most_runs), reservoir.sample(), failures)
