"""Lines to add and to remove, or other clusters -> the shards of a cluster that change, in processes of this machine or on Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.change import Change, is_changeable
from cdxmill.cluster.overlays import filter_content
from cdxmill.cluster.own_run import remove_runs, start_run
from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.cluster.write import check_installed
from cdxmill.commands.collections.other_clusters import Bounds, OtherCluster, OtherClusters, lines_of
from cdxmill.commands.collections.removal import Removal, ShardRemoval
from cdxmill.errors import InputError, StoppedError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import (
    OVERLAY,
    OVERLAY_LINES,
    BlockRef,
    files_of_shard,
    filter_of,
    overlay_name,
    parse_index_line,
    part_of,
    shard_name,
)
from cdxmill.options.collections import Adding, Removing
from cdxmill.running.failures import Failures
from cdxmill.running.lock import check_held
from cdxmill.running.processes import RunTasks, counted, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.stages.lines.line_lists import split_lines, text_of
from cdxmill.stages.lines.merge_lines import merge_lines, merge_slices
from cdxmill.stages.lines.sort_lines import Run, Slice, cut_runs, has_lines
from cdxmill.stages.zipnum.block_pieces import ReadShard
from cdxmill.stages.zipnum.change_shard import (
    ChangedShard,
    ChangeRule,
    Changes,
    ShardChange,
    ShardIO,
    write_changed,
)
from cdxmill.stages.zipnum.changed_blocks import Dropping, LinesToAdd, ShardBlocks
from cdxmill.storage.location import Location, ask_all, locate, pieces
from cdxmill.storage.scratch import Scratch, temporary_directory


class Others(NamedTuple):
    """Other clusters, all of whose lines are added, but those in ranges that are `excluded`."""

    clusters: Sequence[OtherCluster] = ()
    excluded: Sequence[LineRange] = ()


@dataclass(frozen=True, kw_only=True)
class ChangeWanted:
    """What is to change: lines to add, as runs or `others`, what to remove, and how blocks are cut.

    `run` is an engine whose tasks are on other machines: they know no scratch space, so it can only add other clusters.
    """

    runs: Sequence[Run] = ()
    others: Others = Others()  # noqa: RUF009 - it is immutable
    removal: Removal | None = None
    rule: ChangeRule
    processes: int = 0
    quiet: bool = True
    run: RunTasks | None = None


class ChangeTask(NamedTuple):
    """A shard to change; the new one is written to `target`. The lines that are removed go to a file on scratch space."""

    number: int
    entry: ShardEntry
    name: str
    directory: Location
    target: Location
    rule: ChangeRule
    compressor: Compressor
    version: str
    scratch: Path
    writes: bool
    added: list[Slice] = []  # noqa: RUF012 - it is not changed
    removal: ShardRemoval | None = None
    bounds: Bounds = (b"", None)
    others: Others = Others()


class Done(NamedTuple):
    """What came of the cluster: the shards and then the overlays that it has now, and what was done.

    `gone` are files with the lines removed from the shards in order, and then from each overlay: see `gone_lines`.
    """

    shards: list[ShardEntry]
    counts: Changes
    gone: list[Path]
    of_overlays: int = 0

    def gone_lines(self) -> Iterator[list[bytes]]:
        """The lines that were removed, sorted, each once."""
        start = len(self.gone) - self.of_overlays
        of_shards = chain.from_iterable(map(_lines_in, self.gone[:start]))
        return merge_lines([of_shards, *map(_lines_in, self.gone[start:])])


def _lines_in(path: Path) -> Iterator[list[bytes]]:
    with locate(str(path)).open_ranges() as read_at:
        yield from filter(None, split_lines(pieces(read_at)))


class _Result(NamedTuple):
    number: int
    changed: ChangedShard
    gone: str


def make_changeable(asked: Adding | Removing, failures: Failures) -> None:
    """Check a cluster of another tool, and write what a change needs. Raises UsageError, InputError."""
    path = os.fspath(asked.cluster)
    locate(path).check_writable()
    if not is_changeable(path):
        from cdxmill.commands.collections.adopt import adopt  # slow to import, and seldom needed

        adopt(path, failures, asked.processes, asked.quiet)


def compressor_of(change: Change) -> Compressor:
    """The compressor that the blocks of the cluster have. Raises UsageError if this machine has not it."""
    used = change.manifest.compressor
    compressor = Compressor(used.library, used.level, used.section_lines)
    check_installed(compressor)
    return compressor


@contextmanager
def work_directory(change: Change) -> Iterator[Path]:
    """A directory for temporary files: on the disk of the cluster, or where the system has such files."""
    with ExitStack() as files:
        if change.place.is_remote:
            yield Path(files.enter_context(temporary_directory())) / "work"
        else:
            yield Path((change.staged / "work").local)


def change_shards(change: Change, wanted: ChangeWanted, scratch: Path, writes: bool = True) -> Done:
    """Write the shards that change. Unless it `writes`, only what would be removed is found out.

    Raises InputError if a block that is needed is corrupt, StoppedError if a shard cannot be written.
    """
    with _target(change, wanted) as target:
        tasks = _tasks(change, wanted, _TaskMaker(change, wanted.rule, target, scratch, writes))
        results = _run(tasks, wanted)
        if target != change.place:
            check_held()
            new = [one.changed.entry.name for one in results if one.changed.entry is not None]
            ask_all(partial(_move_in, target, change.place), new)
    return _done(change, results, scratch)


@contextmanager
def _target(change: Change, wanted: ChangeWanted) -> Iterator[Location]:
    """Where shards are written. Tasks on other machines may wake up after their run: each run has a directory for them."""
    if wanted.run is None:
        yield change.place
        return
    remove_runs(change.place)
    target = start_run(change.place, os.urandom(8).hex())
    try:
        yield target
    finally:
        target.remove_tree()


def _move_in(target: Location, place: Location, shard: str) -> None:
    for name in files_of_shard(shard):
        (target / name).move(place / name)


def _run(tasks: list[ChangeTask], wanted: ChangeWanted) -> list[_Result]:
    size = sum(task.entry.bytes for task in tasks)
    results = []
    with Progress("changing shards", len(tasks), size, wanted.quiet) as progress:
        for _, found in (wanted.run or run_tasks)(_change_shard, tasks, wanted.processes, progress.tick):
            progress.advance()
            results.append(found)
    return sorted(results, key=lambda one: one.number)


def _done(change: Change, results: Sequence[_Result], scratch: Path) -> Done:
    entries, shards = list(change.manifest.files), len(change.manifest.shards)
    for one in results:
        if one.changed.entry is not None:
            entries[one.number] = one.changed.entry
    gone = [one for one in results if one.gone]
    total = sum((one.changed.counts for one in results), Changes())
    done = Done(
        entries[:shards] + _with_lines(change, entries[shards:]),
        total,
        [scratch / one.gone for one in gone],
        sum(one.number >= shards for one in gone),
    )
    if done.of_overlays:  # a line may be in a shard and in overlays
        removed = sum(map(len, done.gone_lines()))
        done = done._replace(counts=total._replace(removed=removed))
    return done


def _with_lines(change: Change, overlays: list[ShardEntry]) -> list[ShardEntry]:
    """The overlays without those that have no lines any more. If they were just written, they are deleted."""
    empty = [one for one in overlays if not one.lines]
    ask_all(Location.remove, [change.place / name for one in empty for name in files_of_shard(one.name)])
    return [one for one in overlays if one.lines]


class _TaskMaker(NamedTuple):
    """What all tasks of a change have in common."""

    change: Change
    rule: ChangeRule
    target: Location
    scratch: Path
    writes: bool

    def task(self, number: int, entry: ShardEntry, name: str, compressor: Compressor) -> ChangeTask:
        """A task in which nothing changes."""
        return ChangeTask(
            number,
            entry,
            name,
            self.change.place,
            self.target,
            self.rule,
            compressor,
            compressor.version(),
            self.scratch,
            self.writes,
        )


def _tasks(change: Change, wanted: ChangeWanted, maker: _TaskMaker) -> list[ChangeTask]:
    """The shards and overlays that change. The largest first."""
    tasks = [*_shard_tasks(change, wanted, maker), *_overlay_tasks(change, wanted, maker)]
    return sorted(tasks, key=lambda task: task.entry.bytes, reverse=True)


def _overlay_tasks(change: Change, wanted: ChangeWanted, maker: _TaskMaker) -> Iterator[ChangeTask]:
    """The overlays that lines may be removed from."""
    removal = None if wanted.removal is None else wanted.removal.part(b"", None)
    if removal is None:
        return
    for number, entry in enumerate(change.manifest.overlays, len(change.manifest.shards)):
        found = OVERLAY.fullmatch(entry.name)
        assert found is not None  # cluster.json lists no other names
        name = overlay_name(int(found[1]), change.number)
        task = maker.task(number, entry, name, overlay_compressor(change))
        yield task._replace(rule=ChangeRule(OVERLAY_LINES), removal=removal)


def overlay_compressor(change: Change) -> Compressor:
    """The compressor of overlays: their blocks are small and have no sections."""
    return compressor_of(change)._replace(section_lines=0)


def _shard_tasks(change: Change, wanted: ChangeWanted, maker: _TaskMaker) -> Iterator[ChangeTask]:
    """The shards that lines are added to or removed from, and with `recut` those that were changed."""
    points, files, compressor = change.points, Scratch(maker.scratch), compressor_of(change)
    with ExitStack() as opened:
        others = OtherClusters(wanted.others.clusters, opened)
        for number, slices in enumerate(cut_runs(wanted.runs, points, files.reader)):
            entry = change.manifest.shards[number]
            bounds = (points[number - 1] if number else b"", points[number] if number < len(points) else None)
            added = [one for one in slices if has_lines(files.reader, one)]
            removal = None if wanted.removal is None else wanted.removal.part(*bounds)
            is_uneven = wanted.rule.recut and entry.name != shard_name(number)
            is_changed = added or (removal and entry.lines) or is_uneven
            if is_changed or others.have_lines(bounds, wanted.others.excluded):
                task = maker.task(number, entry, shard_name(number, change.number), compressor)
                yield task._replace(added=added, removal=removal, bounds=bounds, others=wanted.others)


class _Unchanged(Exception):
    """Leaves the files of a shard that has not changed."""


def _change_shard(task: ChangeTask) -> _Result:
    if task.compressor.version() != task.version:
        reason = f"a node has {task.compressor.version()}, this machine {task.version}"
        raise StoppedError(f"{reason}: install the same version")
    scratch, place = Scratch(task.scratch), task.directory
    with ExitStack() as files:
        read_own = counted(files.enter_context((place / task.entry.name).open_ranges()))
        gone = files.enter_context(_Gone(scratch, task.number))
        others = OtherClusters(task.others.clusters, files)

        def read(shard: bytes, offset: int, size: int) -> bytes:
            return others.read(shard, offset, size) if b"/" in shard else read_own(offset, size)

        removing = None if task.removal is None else Dropping(task.removal.drop(scratch), gone.add)
        blocks = blocks_of(place, task.entry.name)
        old = ShardBlocks(blocks, lambda block: lines_of(block, read), removing)
        added = LinesToAdd(merge_slices(task.added, scratch.reader) if task.added else ())
        new = others.sources(task.bounds, task.others.excluded)
        change = ShardChange([old, added, *new], task.rule)
        with damage_as_input_error(str(place)):
            changed = _written(task, change, read) if task.writes else _looked_at(change)
            if changed.entry is not None and changed.entry.lines and OVERLAY.fullmatch(changed.entry.name):
                write_filter(place, changed.entry)
    return _Result(task.number, changed, gone.name)


def blocks_of(place: Location, shard: str) -> list[BlockRef]:
    """The blocks of a shard, by its part. Raises InputError."""
    part = place / part_of(shard)
    try:
        return list(map(parse_index_line, part.read_bytes().split(b"\n")[:-1]))
    except ValueError as error:
        raise InputError(str(part), str(error), "check the cluster with cdxmill verify") from None


def write_filter(place: Location, overlay: ShardEntry) -> None:
    """Write the key filter of an overlay, which is read for it. Raises DamagedCluster, InputError."""
    content = filter_content(place, overlay, place / overlay.name)
    with (place / filter_of(overlay.name)).write_atomic() as file:
        file.write(content)


def _looked_at(change: ShardChange) -> ChangedShard:
    for _ in change:
        pass
    return ChangedShard(None, change.counts)


def _written(task: ChangeTask, change: ShardChange, read: ReadShard) -> ChangedShard:
    changed = ChangedShard(None, Changes())
    try:
        with (
            (task.target / task.name).write_atomic() as shard,
            (task.target / part_of(task.name)).write_atomic() as part,
        ):
            changed = write_changed(
                change, task.entry, task.name, ShardIO(read, shard, part), task.compressor
            )
            if changed.entry is None:
                raise _Unchanged
    except _Unchanged:
        pass
    return changed


class _Gone:
    """The file of the lines that are removed from a shard. It is made for the first of them."""

    def __init__(self, scratch: Scratch, number: int) -> None:
        self._scratch, self._path = scratch, f"gone-{number:05d}"
        self._files = ExitStack()
        self.name = ""

    def __enter__(self) -> _Gone:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def add(self, lines: list[bytes]) -> None:
        """Write lines."""
        if not self.name:
            self.name = self._path
            self._file = self._files.enter_context(self._scratch.create(self.name))
        self._file.write(text_of(lines))
