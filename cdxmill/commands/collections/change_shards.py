"""Lines to add and to remove -> the shards of a cluster that change, in processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.change import Change, is_changeable
from cdxmill.cluster.overlays import BLOCK_LINES, filter_content
from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.cluster.write import check_installed
from cdxmill.commands.collections.removal import Removal, ShardRemoval
from cdxmill.errors import InputError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import (
    BEYOND,
    OVERLAY,
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
from cdxmill.running.processes import counted, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.lines.line_lists import split_lines, text_of
from cdxmill.stages.lines.merge_lines import merge_lines, merge_slices
from cdxmill.stages.lines.sort_lines import Run, Slice, cut_runs, has_lines
from cdxmill.stages.zipnum.block_pieces import BlockPieces, ReadShard, Tables
from cdxmill.stages.zipnum.block_text import BlockText
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


@dataclass(frozen=True, kw_only=True)
class ChangeWanted:
    """What is to change: the runs of lines to add, what to remove, and how blocks are cut."""

    runs: Sequence[Run] = ()
    removal: Removal | None = None
    rule: ChangeRule
    processes: int = 0
    quiet: bool = True


class ChangeTask(NamedTuple):
    """A shard to change. The lines that are removed go to a file on scratch space."""

    number: int
    entry: ShardEntry
    name: str
    directory: Location
    added: list[Slice]
    removal: ShardRemoval | None
    rule: ChangeRule
    compressor: Compressor
    scratch: Path
    writes: bool


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
    tasks = _tasks(change, wanted, scratch, writes)
    entries = list(change.manifest.files)
    gone: dict[int, Path] = {}
    total = Changes()
    size = sum(task.entry.bytes for task in tasks)
    with Progress("changing shards", len(tasks), size, wanted.quiet) as progress:
        for _, found in run_tasks(_change_shard, tasks, wanted.processes, progress.tick):
            progress.advance()
            total += found.changed.counts
            if found.changed.entry is not None:
                entries[found.number] = found.changed.entry
            if found.gone:
                gone[found.number] = scratch / found.gone
    shards = len(change.manifest.shards)
    done = Done(
        entries[:shards] + _with_lines(change, entries[shards:]),
        total,
        [gone[number] for number in sorted(gone)],
        sum(number >= shards for number in gone),
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


def _tasks(change: Change, wanted: ChangeWanted, scratch: Path, writes: bool) -> list[ChangeTask]:
    """The shards and overlays that change. The largest first."""
    tasks = [*_shard_tasks(change, wanted, scratch, writes), *_overlay_tasks(change, wanted, scratch, writes)]
    return sorted(tasks, key=lambda task: task.entry.bytes, reverse=True)


def _overlay_tasks(change: Change, wanted: ChangeWanted, scratch: Path, writes: bool) -> Iterator[ChangeTask]:
    """The overlays that lines may be removed from."""
    removal = None if wanted.removal is None else wanted.removal.part(b"", None)
    for number, entry in enumerate(change.manifest.overlays, len(change.manifest.shards)):
        if removal is not None:
            found = OVERLAY.fullmatch(entry.name)
            name = overlay_name(int(found[1]) if found else 0, change.number)
            rule, compressor = ChangeRule(BLOCK_LINES), overlay_compressor(change)
            yield ChangeTask(
                number, entry, name, change.place, [], removal, rule, compressor, scratch, writes
            )


def overlay_compressor(change: Change) -> Compressor:
    """The compressor of overlays: their blocks are small and have no sections."""
    return compressor_of(change)._replace(section_lines=0)


def _shard_tasks(change: Change, wanted: ChangeWanted, scratch: Path, writes: bool) -> list[ChangeTask]:
    """The shards that lines are added to or removed from, and with `recut` those that were changed."""
    points = change.points
    files, compressor = Scratch(scratch), compressor_of(change)
    added = [
        [one for one in slices if has_lines(files.reader, one)]
        for slices in cut_runs(wanted.runs, points, files.reader)
    ]
    tasks = []
    for number, entry in enumerate(change.manifest.shards):
        low = points[number - 1] if number else b""
        high = points[number] if number < len(points) else None
        removal = None if wanted.removal is None else wanted.removal.part(low, high)
        name = shard_name(number, change.number)
        is_uneven = wanted.rule.recut and entry.name != shard_name(number)
        if added[number] or (removal and entry.lines) or is_uneven:
            tasks.append(
                ChangeTask(
                    number,
                    entry,
                    name,
                    change.place,
                    added[number],
                    removal,
                    wanted.rule,
                    compressor,
                    scratch,
                    writes,
                )
            )
    return tasks


class _Unchanged(Exception):
    """Leaves the files of a shard that has not changed."""


def _change_shard(task: ChangeTask) -> _Result:
    scratch, place = Scratch(task.scratch), task.directory
    with (place / task.entry.name).open_ranges() as read_at, _Gone(scratch, task.number) as gone:
        read: ReadShard = lambda _, offset, size: tallied(offset, size)  # noqa: E731
        tallied = counted(read_at)
        blocks = blocks_of(place, task.entry.name)
        removing = None if task.removal is None else Dropping(task.removal.drop(scratch), gone.add)
        old = ShardBlocks(blocks, lambda block: lines_of(block, read), removing)
        added = LinesToAdd(merge_slices(task.added, scratch.reader) if task.added else ())
        change = ShardChange([old, added], task.rule)
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


def lines_of(block: BlockRef, read: ReadShard) -> list[bytes]:
    """The lines of a block. Raises DamagedCluster if it is corrupt."""
    return BlockText(BlockPieces(block, read, Tables(), at_once=True)).between(b"", BEYOND)[0]


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
            (task.directory / task.name).write_atomic() as shard,
            (task.directory / part_of(task.name)).write_atomic() as part,
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
