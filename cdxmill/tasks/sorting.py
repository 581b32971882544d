"""CDX files -> sorted runs on scratch space, and a sample of their lines: one task per group of files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.formats.lines.cdx_lines import convert_line
from cdxmill.inputs.cdx_files import CdxSource, read_pieces, read_sorted
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.line_lists import LineCutter, is_capture_line
from cdxmill.stages.lines.merge_lines import MOST_RUNS, fewer_runs
from cdxmill.stages.lines.pick_splits import Reservoir, Sample, TextSampler
from cdxmill.stages.lines.sort_lines import LineSorter, Run
from cdxmill.storage.location import locate
from cdxmill.storage.scratch import Scratch
from cdxmill.tasks.sampling import sample_from_json, sample_to_json
from cdxmill.tasks.whole_files import NONE_IN_CLUSTER, whole_or_nothing

LEAST_SORTED = 8 << 20
"""A smaller file is spilled together with others, sorted or not."""


def share_of_runs(tasks: int) -> int:
    """The number of runs that each of `tasks` may leave, so that all can be merged at once."""
    return max(1, MOST_RUNS // max(tasks, 1))


def finish_runs(sorter: LineSorter, scratch: Scratch, most: int) -> list[Run]:
    """The runs of `sorter`, at most `most`: if there are more, some are merged, MOST_RUNS at a time, and deleted."""
    runs = sorter.finish()
    while len(runs) > most:
        few = fewer_runs(runs, scratch.create, scratch.reader, max(most, len(runs) - MOST_RUNS + 1))
        scratch.delete({run.name for run in runs} - {run.name for run in few})
        runs = few
    return runs


def sort_files(paths: Sequence[str], sorter: LineSorter, convert: bool) -> list[Failure]:
    """Sort the lines of CDX files. The failures of files that are corrupt or cannot be read."""
    failures: list[Failure] = []
    for path in paths:
        with whole_or_nothing(path, failures, sorter, consequence=NONE_IN_CLUSTER):
            _sort(read_pieces(path), sorter, convert)
    return failures


def sort_sources(
    sources: Sequence[CdxSource], sorter: LineSorter, convert: bool, shards: int
) -> list[Failure]:
    """Sort the lines of CDX files, as `sort_and_sample` does, without a sample."""
    failures: list[Failure] = []
    for source in sources:
        with whole_or_nothing(source.path, failures, sorter, consequence=NONE_IN_CLUSTER):
            is_large = source.size >= LEAST_SORTED and not convert
            may_adopt = is_large and not source.location.is_remote
            if not (may_adopt and _adopt(source, sorter, len, shards)):
                pieces = read_pieces(source.location)
                _sort(sorter.add_sorted(pieces) if is_large else pieces, sorter, convert)
    return failures


def sort_and_sample(
    sources: Sequence[CdxSource], sorter: LineSorter, reservoir: Reservoir, convert: bool, shards: int
) -> list[Failure]:
    """Sort the lines of CDX files, as `sort_files` does, and sample them.

    Large local files that are sorted already are not spilled. They are read again when the runs are merged
    to `shards` shards, so they must not change until then.
    """
    failures: list[Failure] = []
    for source in sources:
        with whole_or_nothing(source.path, failures, sorter, reservoir, consequence=NONE_IN_CLUSTER):
            is_large = source.size >= LEAST_SORTED and not convert
            may_adopt = is_large and not source.location.is_remote
            if not (may_adopt and _adopt_and_sample(source, sorter, reservoir, shards)):
                pieces = _sampled(read_pieces(source.location), TextSampler(reservoir))
                _sort(sorter.add_sorted(pieces) if is_large else pieces, sorter, convert)
    return failures


def _adopt_and_sample(source: CdxSource, sorter: LineSorter, reservoir: Reservoir, shards: int) -> bool:
    sampler = TextSampler(reservoir)
    if not _adopt(source, sorter, sampler.add, shards):
        reservoir.undo()
        return False
    sampler.end()
    return True


def _adopt(source: CdxSource, sorter: LineSorter, take: Callable[[bytes], object], shards: int) -> bool:
    """Use the file itself as a run, and pass its text to `take`. False if it is not suitable.

    Each of `shards` shards inflates one member from its start; if members are large, a spill costs less.
    """
    seek_points = read_sorted(source.location, source.size // shards, take)
    if seek_points is None:
        return False
    sorter.adopt(str(Path(source.location.local).absolute()), seek_points)
    return True


def _sampled(pieces: Iterator[bytes], sampler: TextSampler) -> Iterator[bytes]:
    for piece in pieces:
        sampler.add(piece)
        yield piece
    sampler.end()


def _sort(pieces: Iterator[bytes], sorter: LineSorter, convert: bool) -> None:
    """Pass the lines of a text to `sorter`."""
    cutter = LineCutter()
    for piece in pieces:
        sorter.add(_converted(cutter.cut(piece), convert))
    sorter.add(_converted(cutter.end(), convert))


def _converted(lines: list[bytes], convert: bool) -> list[bytes]:
    return [convert_line(line) for line in lines if is_capture_line(line)] if convert else lines


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
        return all(locate(scratch.directory / run.name).size() == run.end for run in self.runs)


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
