"""What runs on the nodes of Spark: index an archive, or write it again; sort the lines of a group of files, and write a shard.

    CDX files --sort, spill--> runs --cut at the split points--> pieces --Spark--> scratch files --merge--> shard

A piece is a part of a run: its name, its position and at most PIECE bytes of packed blocks. So no line becomes an
object of Spark, and no value comes near the 2 GB that one may have. Pieces of a run come in any order: each is written
to its position. A large sorted file in a directory is a run itself: only positions in it are sent.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.cluster.write import write_shard_files
from cdxmill.commands.per_archive.index import IndexedArchive, IndexTask, index_one
from cdxmill.commands.per_archive.recompress_elsewhere import RecompressWork
from cdxmill.commands.per_archive.recompress_one import RecompressedArchive, RecompressTask
from cdxmill.errors import InputError, StoppedError
from cdxmill.formats.archives.zstd_dictionary import all_known, know
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.inputs.archives import names_in
from cdxmill.inputs.cdx_files import CdxSource
from cdxmill.running.failures import Failure, stop_at_outage
from cdxmill.running.resume import WORK
from cdxmill.stages.lines.merge_lines import MOST_RUNS, fewer_runs, merge_blocks
from cdxmill.stages.lines.sort_lines import Run, Slice, cut_run
from cdxmill.storage.hosts import begin_run
from cdxmill.storage.local import stopping
from cdxmill.storage.location import Location, join, locate
from cdxmill.storage.own import create_own
from cdxmill.storage.scratch import Scratch, temporary_directory
from cdxmill.tasks.sorting import SortTask, sort_group

PIECE = 128 << 10
"""PySpark collects up to 1000 pieces before it looks at its memory: 128 MB."""

Part = tuple[str, int, bytes, str]
"""Of a run: its name, a position, the packed bytes from there, and "". Of a run that is a sorted input: its name, the
start, the end in digits, and the path of the input. Of a report: the number of its task, 0, the pickled report, and ""."""


class SortWork(NamedTuple):
    """A group of CDX files to sort. Only the parts of the shards in `wanted` are sent.

    The report goes to the partition after the last shard. `scratch` is a directory for temporary files, or "".
    """

    number: int
    sources: list[CdxSource]
    points: list[bytes]
    wanted: frozenset[int]
    convert: bool
    scratch: str
    most_runs: int


class SortReport(NamedTuple):
    """What a group had: its lines, with duplicates, and the files that failed."""

    lines: int
    failures: list[Failure]


class ShardWork(NamedTuple):
    """How every shard is written to `directory`, a path or URL. `version` is that of the compressor on the driver."""

    directory: str
    points: list[bytes]
    wanted: frozenset[int]
    compressor: Compressor
    version: str
    block_lines: int
    scratch: str


class SharedWork:
    """What tasks do, as it is sent to the nodes: once for all of them, with the dictionaries that the user gave.

    A further attempt asks the servers that an earlier one gave up: Spark may run both in one process.
    """

    def __init__(self, do: Callable[..., Any]) -> None:
        self._do, self._dictionaries = do, all_known()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for dictionary in self._dictionaries:
            know(dictionary)
        if _attempt():
            begin_run()

    def __call__(self, *given: Any) -> Any:
        """Do a task, or a partition of a shuffle."""
        return self._do(*given)


def _attempt() -> int | None:
    """The number of this attempt at a task, from 0 on; None on the driver."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else int(context.attemptNumber())


class OnNode(NamedTuple):
    """What a task knows of its engine: the directory for temporary files, or "", and how often Spark tries a task."""

    scratch: str
    tries: int

    def check_reached(self, failures: Sequence[Failure]) -> None:
        """Raise StoppedError if a machine was at fault for one of them, and another attempt, elsewhere, may succeed."""
        attempt = _attempt()
        if attempt is not None and attempt + 1 < self.tries:
            stop_at_outage(failures)


def index_archive(node: OnNode, task: IndexTask) -> IndexedArchive:
    """Index an archive. Temporary files are in the scratch directory, or on the node's own disk."""
    with scratch_on_node(node.scratch) as directory:
        result = index_one(replace(task, scratch=Path(directory) / "lines"))
    node.check_reached(result.failures)
    return result


def recompress_archive(work: RecompressWork, node: OnNode, task: RecompressTask) -> RecompressedArchive:
    """Write an archive again. Temporary files are in the scratch directory, or on the node's own disk."""
    with scratch_on_node(node.scratch) as directory:
        result = work.do(task, Path(directory) / "content")
    node.check_reached(result.failures)
    return result


def names_in_wacz(node: OnNode, place: Location) -> list[str] | InputError:
    """The names of all files in a WACZ, or why it cannot be opened."""
    found = names_in(place)
    if isinstance(found, InputError):
        node.check_reached([Failure.from_error(found)])
    return found


def sort_and_send(work: SortWork) -> Iterator[tuple[int, Part]]:
    """Sort the lines of a group, and send each shard its parts of the runs."""
    with scratch_on_node(work.scratch) as directory:
        place = Path(directory)
        shards = len(work.points) + 1
        task = SortTask(work.number, work.sources, place, work.convert, work.most_runs, shards)
        runs, _, failures, _ = sort_group(task)
        scratch = Scratch(place)
        for run in runs:
            yield from _cut(run, scratch, work)
            scratch.delete([run.name])
        report = SortReport(sum(run.lines + run.duplicates for run in runs), failures)
        yield len(work.points) + 1, (str(work.number), 0, pickle.dumps(report), "")


def _cut(run: Run, scratch: Scratch, work: SortWork) -> Iterator[tuple[int, Part]]:
    read_at = scratch.reader(run.name)
    for number, (start, end) in enumerate(cut_run(read_at, run, work.points)):
        if number not in work.wanted or start == end:
            continue
        if run.source:
            yield number, (run.name, start, b"%d" % end, run.source)
            continue
        for position in range(start, end, PIECE):
            data = read_at(position, min(PIECE, end - position))
            yield number, (run.name, position - start, data, "")


def join_parts(work: ShardWork, number: int, parts: Iterator[Part]) -> ShardEntry | list[SortReport] | None:
    """Write a shard from its parts, or return the reports; what is done is noted in the work directory."""
    if number == len(work.points) + 1:
        reports = {name: data for name, _, data, _ in parts}  # a part that came twice counts once
        return [pickle.loads(data) for _, data in sorted(reports.items(), key=lambda one: int(one[0]))]
    if number not in work.wanted:
        return None
    if work.compressor.version() != work.version:
        raise StoppedError(
            f"a node has {work.compressor.version()}, the driver {work.version}: install the same version"
        )
    with scratch_on_node(work.scratch) as directory:
        slices = _receive(Path(directory), number, work.points, parts)
        blocks = merge_blocks(slices, Scratch(Path(directory)).reader, work.block_lines)
        entry = write_shard_files(blocks, number, locate(work.directory), work.compressor)
    with locate(join(work.directory, WORK, f"{report_name(number)}.json")).write_atomic() as file:
        file.write(json.dumps(entry._asdict()).encode())
    return entry


def report_name(number: int) -> str:
    """The name of the result of a shard in the work directory: that of the local engine.

    >>> report_name(7)
    'shard-00007'
    """
    return f"shard-{number:05d}"


def _receive(directory: Path, number: int, points: list[bytes], parts: Iterator[Part]) -> list[Slice]:
    """Write the parts of runs to scratch space, but those of sorted inputs."""
    bounds = [None, *points, None][number : number + 2]
    sizes: dict[str, int] = {}
    slices: dict[str, Slice] = {}
    with stopping(directory):
        for name, position, data, source in parts:
            if source:
                end = int(data)
                slices[name] = Slice(Run(name, 0, 0, 0, 0, end, source), position, end, *bounds)
                continue
            path = directory / name
            with path.open("r+b") if name in sizes else create_own(path) as file:
                file.seek(position)
                file.write(data)
            sizes[name] = max(sizes.get(name, 0), position + len(data))
    scratch = Scratch(directory)
    received = [Run(name, size, size, 0, 0, size) for name, size in sorted(sizes.items())]
    most = max(MOST_RUNS - len(slices), 1)
    for run in fewer_runs(received, scratch.create, scratch.reader, most, scratch.delete):
        slices[run.name] = Slice(run, 0, run.stop, *bounds)
    return [slices[name] for name in sorted(slices)]


def scratch_on_node(directory: str) -> AbstractContextManager[str]:
    """A directory for temporary files: in `directory`, or on the disks that Spark uses."""
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    place = directory or (local if Path(local).is_dir() else None)
    return temporary_directory(place)
