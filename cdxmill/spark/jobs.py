"""What Spark does: index or scan archives, or write them again; count what is in them; make the shards of a cluster: sample, sort and send, write.

A shard that an earlier run has finished is not written again. Its result is in the directory's .work.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from cdxmill.commands.clusters.zipnum_options import Made, ZipnumOptions
from cdxmill.commands.count import CountTask, GroupResult
from cdxmill.commands.own_function import OwnSource
from cdxmill.commands.per_archive.recompress_elsewhere import RecompressWork
from cdxmill.commands.per_archive.task import ArchiveTask
from cdxmill.errors import InputError, StoppedError
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import part_of
from cdxmill.inputs.cdx_files import CdxSource, Inventory
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failures
from cdxmill.running.lock import sweep
from cdxmill.running.resume import WORK
from cdxmill.running.watched import Limits
from cdxmill.spark.counting import CountWork, add_parts, count_and_send
from cdxmill.spark.engine import Engine, Shuffle
from cdxmill.spark.scanning import ScanPlace, own_sources, scan_archive
from cdxmill.spark.tasks import (
    OnNode,
    ShardWork,
    SortReport,
    SortWork,
    index_archive,
    join_parts,
    names_in_wacz,
    recompress_archive,
    report_name,
    sort_and_send,
)
from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.sort_lines import Run, write_run
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location, PathOrUrl, join, locate
from cdxmill.storage.scratch import Scratch
from cdxmill.tasks.sampling import TASKS, group_sources, sample_inventory, splits_of
from cdxmill.tasks.sorting import share_of_runs

_Task = TypeVar("_Task", bound=ArchiveTask)


class _ArchiveRunner:
    """Runs tasks on `engine`, one for each archive; `scratch` is a directory of the nodes for temporary files, or ""."""

    def __init__(self, engine: Engine, scratch: str = "") -> None:
        self._engine, self._scratch = engine, scratch

    def __call__(
        self, work: Any, tasks: Sequence[Any], processes: int, tick: Callable[[], None], /
    ) -> Iterator[tuple[int, Any]]:
        """Do the tasks: see `running.processes.RunTasks`."""
        if not tasks:
            return iter(())
        work, tasks = self._prepared(tasks)
        return self._engine.run_tasks(work, _for_nodes(tasks, self._engine), processes, tick)

    def _prepared(self, tasks: Sequence[Any]) -> tuple[Callable[[Any], Any], Sequence[Any]]:
        """What does a task on a node, and the tasks as they are sent."""
        raise NotImplementedError


class IndexRunner(_ArchiveRunner):
    """Runs the tasks of `index`."""

    def _prepared(self, tasks: Sequence[Any]) -> tuple[Callable[[Any], Any], Sequence[Any]]:
        return partial(index_archive, OnNode(self._scratch, self._engine.tries)), tasks


class RecompressRunner(_ArchiveRunner):
    """Runs the tasks of `recompress`. Their dictionary is sent once."""

    def _prepared(self, tasks: Sequence[Any]) -> tuple[Callable[[Any], Any], Sequence[Any]]:
        shared = RecompressWork.of(tasks[0].options)
        work = partial(recompress_archive, shared, OnNode(self._scratch, self._engine.tries))
        return work, list(map(shared.without_dictionary, tasks))


class WaczOpener:
    """Opens WACZ files on `engine`: see `inputs.archives.OpenAll`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, places: Sequence[Location], /) -> list[list[str] | InputError]:
        """The names of the files in each, or why it cannot be opened. Raises StoppedError."""
        anywhere = [Location(place.absolute()) for place in places]
        work = partial(names_in_wacz, OnNode("", self._engine.tries))
        found = dict(self._engine.run_tasks(work, anywhere, 0, lambda: None))
        return [_told_of(place, found[number]) for number, place in enumerate(places)]


def _told_of(place: Location, found: list[str] | InputError) -> list[str] | InputError:
    """What a node has found, with the name of the WACZ that the user gave."""
    return type(found)(place.text, found.reason, found.hint) if isinstance(found, InputError) else found


class ScanRunner(_ArchiveRunner):
    """Runs the tasks of `scan`."""

    def _prepared(self, tasks: Sequence[Any]) -> tuple[Callable[[Any], Any], Sequence[Any]]:
        place = ScanPlace(str(Path.cwd()), own_sources(tasks[0].options), self._scratch)
        return partial(scan_archive, place), tasks


def _for_nodes(tasks: Sequence[_Task], engine: Engine) -> Sequence[_Task]:
    """The tasks as nodes can do them: they have another current directory."""
    if engine.is_local:
        return tasks
    return list(map(_found_anywhere, tasks))


def _found_anywhere(task: _Task) -> _Task:
    """A task with places that all nodes find: its archive, its output and the files beside that."""
    places: dict[str, Any] = {
        name: Location(place.absolute()) for name, place in vars(task).items() if isinstance(place, Location)
    }
    directory = None if task.directory is None else Path(locate(task.directory).absolute())
    return replace(task, **places, archive=_anywhere(task.archive), directory=directory)


def _anywhere(archive: Input) -> Input:
    """An archive as all nodes find it."""
    return archive._replace(location=Location(archive.location.absolute()))


def _source_anywhere(source: CdxSource) -> CdxSource:
    """A CDX file as all nodes find it."""
    return source._replace(location=Location(source.location.absolute()))


_SORTS_PER_CORE, _MOST_SORTS = 2, 100_000
"""Tasks that sort, per core and at most: a task that is repeated then reads 256 MB of gzipped lines again, and not a part
of 400 of a crawl. A node merges that many runs in two steps."""
_PER_CORE = 4
"""Partitions of the counts per core."""


class CountRunner:
    """Counts archives on `engine`; `scratch` is a directory of the nodes for temporary files, or "" for Spark's."""

    def __init__(self, engine: Engine, scratch: str = "") -> None:
        self._engine, self._scratch = engine, scratch

    def __call__(
        self, tasks: Sequence[CountTask], what: str | OwnSource, limits: Limits, scratch: Scratch
    ) -> Iterator[tuple[CountTask, GroupResult]]:
        """(task, result) for every task. The runs, in `scratch`, are those of the last result. Raises StoppedError."""
        partitions = _PER_CORE * self._engine.cores
        node = OnNode(self._scratch, self._engine.tries)
        works = [
            CountWork(number, list(map(_anywhere, task.archives)), what, limits, partitions, node)
            for number, task in enumerate(tasks)
        ]
        step = Shuffle(count_and_send, works, add_parts, (partitions, self._scratch), partitions + 1)
        runs, found = list[Run](), dict[int, list[GroupResult]]()
        for number, pieces in groupby(self._engine.shuffle_pieces(step), itemgetter(0)):
            if number == partitions:
                found = dict(pickle.loads(piece.data) for piece in pieces)
                continue
            texts = (TextBlock(piece.lines, zlib.decompress(piece.data)) for piece in pieces)
            with scratch.create(f"{number}") as file:
                runs.append(write_run(file, f"{number}", texts))
        if len(found) != len(tasks):
            raise StoppedError(f"Spark: {len(found)} of {len(tasks)} groups were counted; run it again")
        for number, task in enumerate(tasks):
            yield from ((task._replace(archives=[]), result) for result in found[number][:-1])
            *_, last = found[number]
            last.runs, runs = runs, []
            yield task, last


class Maker:
    """Makes shards on `engine`; `scratch` is a directory of the nodes for temporary files, or "" for Spark's."""

    def __init__(self, engine: Engine, scratch: str = "") -> None:
        self._engine, self._scratch = engine, scratch

    def __call__(
        self, inventory: Inventory, directory: PathOrUrl, options: ZipnumOptions, failures: Failures
    ) -> Made:
        """Write the shards to the directory at a path or URL, as `commands.zipnum.Make` says."""
        place = locate(directory).absolute()
        points = self.split_points(inventory, options, failures)
        shards = _finished_shards(place, len(points) + 1)
        wanted = frozenset(range(len(points) + 1)) - shards.keys()
        tasks_of_cores = max(TASKS, _SORTS_PER_CORE * self._engine.cores)
        groups = group_sources(inventory.sources, tasks_of_cores, _MOST_SORTS)
        tasks = [
            SortWork(
                number=number,
                sources=list(map(_source_anywhere, group)),
                points=points,
                wanted=wanted,
                convert=options.convert,
                scratch=self._scratch,
                most_runs=share_of_runs(len(groups)),
            )
            for number, group in enumerate(groups)
        ]
        shared = ShardWork(
            directory=place,
            points=points,
            wanted=wanted,
            compressor=options.compressor,
            version=options.compressor.version(),
            block_lines=options.block_lines,
            scratch=self._scratch,
        )
        step = Shuffle(sort_and_send, tasks, join_parts, shared, len(points) + 2)
        written = [*shards.values(), *self._engine.shuffle(step)]
        names = {source.location.absolute(): source.path for source in inventory.sources}
        made = _made(written, points, len(tasks), place)
        if not locate(place).is_remote:
            sweep(Path(place))  # what killed attempts have left
        failed = [failure._replace(path=names[failure.path]) for failure in made.failures]
        for failure in failed:
            failures.report(failure)
        return made._replace(failures=failed)

    def split_points(self, inventory: Inventory, options: ZipnumOptions, failures: Failures) -> list[bytes]:
        """The split points given, or those from a sample: the sample of the local engine."""
        if options.points is not None:
            return list(options.points)
        there = replace(inventory, sources=list(map(_source_anywhere, inventory.sources)))
        run, size = self._engine.run_tasks, options.sample_size
        sample = sample_inventory(there, options.seed, size, 1, options.quiet, None, run)
        return splits_of(sample, options.shards, failures)


def _made(written: list[ShardEntry | list[SortReport]], points: list[bytes], tasks: int, place: str) -> Made:
    """What the tasks have made. Raises StoppedError if something is missing."""
    entries = sorted(entry for entry in written if isinstance(entry, ShardEntry))
    reports = [report for found in written if not isinstance(found, ShardEntry) for report in found]
    if len(entries) != len(points) + 1 or len(reports) != tasks:
        raise StoppedError(
            f"{place}: only {len(entries)} of {len(points) + 1} shards were written; run it again"
        )
    there = locate(place).entries()
    if not all(_is_there(entry, there) for entry in entries):
        raise StoppedError(
            f"{place}: the shards that the nodes wrote are not there; use a directory that all machines"
            " share, or an s3 or hdfs URL"
        )
    failed = [failure for report in reports for failure in report.failures]
    lines = sum(report.lines for report in reports)
    return Made(entries, points, lines, failed, has_read_twice=True)


def _finished_shards(place: str, shards: int) -> dict[int, ShardEntry]:
    """The shards that an earlier run of the same work has finished, by number."""
    noted, there = (locate(place) / WORK).entries(), locate(place).entries()
    found: dict[int, ShardEntry] = {}
    for number in range(shards):
        name = f"{report_name(number)}.json"
        if name in noted:
            with suppress(InputError, ValueError, TypeError):
                entry = ShardEntry(**json.loads(locate(join(place, WORK, name)).read_bytes()))
                if _is_there(entry, there):
                    found[number] = entry
    return found


def _is_there(entry: ShardEntry, found: Mapping[str, Entry]) -> bool:
    """Whether the files of a shard are in the directory: one listing is faster than a request for each."""
    return entry.name in found and found[entry.name].size == entry.bytes and part_of(entry.name) in found
