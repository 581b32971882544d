"""CDX files -> sorted runs on scratch space, and a sample of their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cdxmill.formats.lines.convert import convert_line
from cdxmill.inputs.cdx_files import read_pieces, read_sorted
from cdxmill.inputs.sources import CdxSource
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.line_lists import LineCutter, is_capture_line
from cdxmill.stages.lines.merge_runs import MOST_RUNS, fewer_runs
from cdxmill.stages.lines.sample_lines import Reservoir, TextSampler
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.storage.scratch import Scratch
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
