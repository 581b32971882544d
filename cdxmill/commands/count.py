"""count: archives -> lines `<item> TAB <count>`, sorted as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from cdxmill.capture import Note
from cdxmill.commands.own_function import OwnSource, own_counter, own_source
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.archives import OpenAll, find_archives, open_here
from cdxmill.inputs.named import Input
from cdxmill.inputs.pipes import Pipes
from cdxmill.messages import count as quantity
from cdxmill.options.contents import CountOptions
from cdxmill.outputs.names import check_archives_stay, output_file, writing
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import counted, processes_by_default
from cdxmill.running.progress import Progress
from cdxmill.running.watched import NO_LOSSES, Limits, Losses, Lost, mark, run_watched, unmark, unmarked
from cdxmill.stages.counting.count_records import Counted, count_own_records, count_records
from cdxmill.stages.counting.counters import COUNTERS, Counter
from cdxmill.stages.counting.own_counter import BadFunction, OwnCounter
from cdxmill.stages.counting.tally import Tally, new_tally, spill, sum_lines
from cdxmill.stages.lines.line_lists import write_lines
from cdxmill.stages.lines.merge_lines import merge_runs
from cdxmill.stages.lines.sort_lines import Run
from cdxmill.stages.window import chunk_of
from cdxmill.storage.location import Location, locate, total_size
from cdxmill.storage.reading import open_unchanged
from cdxmill.storage.scratch import Scratch, temporary_directory
from cdxmill.version import install_extra

HELD = 64 << 20
"""Bytes of each of the two tallies of a process. A larger one is spilled."""


class CountTask(NamedTuple):
    """Archives to count; the runs are written to `scratch`, and their names start with its name.

    Records that cost a process are in `losses` by their numbers. Then there is one archive.
    """

    archives: list[Input]
    scratch: Path
    losses: Losses = NO_LOSSES


@dataclass
class GroupResult:
    """The runs with the counts of a group of archives, what was read, and what went wrong."""

    runs: list[Run] = field(default_factory=list)
    counted: Counted = field(default_factory=Counted)
    failures: list[Failure] = field(default_factory=list)
    notes: list[tuple[str, Note]] = field(default_factory=list)
    """The archive of each, and the note."""
    without: list[str] = field(default_factory=list)
    """Archives with records, but none to count."""


def count_watched(
    tasks: Sequence[CountTask],
    counter: Counter | OwnCounter,
    processes: int,
    tick: Callable[[], None],
    limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
) -> Iterator[tuple[CountTask, GroupResult]]:
    """Count the archives of some tasks. A record that takes too long or too much memory is skipped and reported.

    All that counts records calls this: the command, and the task of a job.
    """
    work = partial(_count_group, counter)
    return run_watched(work, tasks, processes, lambda _: tick(), limits, _after_loss)


def _after_loss(task: CountTask, how: Lost) -> list[CountTask] | GroupResult:
    """What follows when a process was lost: its archives once more, one by one; or the result of one that is given up."""
    Scratch(task.scratch).remove()
    if len(task.archives) > 1:
        return [
            CountTask([archive], task.scratch.with_name(f"{task.scratch.name}-{number}"))
            for number, archive in enumerate(task.archives)
        ]
    losses = task.losses.after(how)
    if losses is not None:
        return [task._replace(losses=losses)]
    (archive,) = task.archives
    return GroupResult(failures=[Failure(archive.label, None, how.reason, task.losses.hint())])


def _count_group(counter: Counter | OwnCounter, task: CountTask) -> GroupResult:
    """Count the records of some archives. Of an archive that cannot be read to its end, nothing is counted."""
    result = GroupResult()
    group = _Group(Scratch(task.scratch), task.scratch.name, task.losses)
    for archive in task.archives:
        try:
            found = group.count(archive.location, counter)
        except InputError as error:
            group.undo()
            result.failures.append(Failure.from_error(error, archive.label))
            continue
        group.keep()
        result.counted.add(found)
        result.failures += [
            Failure(archive.label, one.offset, one.reason, one.hint) for one in found.findings.damage
        ]
        result.notes += [(archive.label, one) for one in found.findings.notes]
        if found.records and not found.counted and not found.skipped:
            result.without.append(archive.label)
    result.runs = group.finish()
    return result


class _Group:
    """The tallies of a group: `_own` of the archive that is read, `_all` of those before it."""

    def __init__(self, scratch: Scratch, name: str, losses: Losses) -> None:
        self._scratch, self._name, self._losses = scratch, name, losses
        self._own, self._all = new_tally(), new_tally()
        self._own_runs: list[Run] = []
        self._runs: list[Run] = []
        self._number = 0

    def count(self, archive: Location, counter: Counter | OwnCounter) -> Counted:
        """Count the records of an archive. Raises InputError."""
        with open_unchanged(archive) as read_at:
            chunk = chunk_of(archive.is_remote)
            read, rest = unmarked(counted(read_at)), (self._own, self._limit, chunk, self._begin)
            if isinstance(counter, OwnCounter):
                return count_own_records(read, self._scratch, counter, *rest)
            return count_records(read, counter, *rest, self._scratch)

    def _begin(self, number: int) -> str:
        """Begin a record that takes long, perhaps. Returns why it has to be skipped, or ""."""
        mark(number)
        return self._losses.skip.get(number, "")

    def _limit(self) -> None:
        if self._own.size > HELD:
            self._own_runs.append(self._spill(self._own))

    def _spill(self, tally: Tally) -> Run:
        unmark()  # the disk may be slow
        self._number += 1
        name = f"{self._name}.{self._number}"
        run = spill(tally, self._scratch.create, name)
        return run._replace(name=f"{self._name}/{name}")

    def keep(self) -> None:
        """Keep the counts of the archive that was read."""
        self._all.absorb(self._own)
        self._runs += self._own_runs
        self._own_runs = []
        if self._all.size > HELD:
            self._runs.append(self._spill(self._all))

    def undo(self) -> None:
        """Forget them."""
        self._own.take(b"")
        self._scratch.delete(run.name.rpartition("/")[2] for run in self._own_runs)
        self._own_runs = []

    def finish(self) -> list[Run]:
        """All runs."""
        if len(self._all):
            self._runs.append(self._spill(self._all))
        return self._runs


_GROUPS = 8
"""Groups of archives per process, at least. More share the work better, and write more runs."""
_LARGEST_GROUP = 100
_SHOWN = 3


class CountSummary(NamedTuple):
    """What `count` did. `lines` is the number of different items."""

    what: str
    archives: int
    lines: int
    counted: Counted

    def __str__(self) -> str:
        """Return the closing lines."""
        counted = self.counted
        parts = [
            f"{self.lines} different {self.what} in {quantity(counted.counted, 'record')}"
            f" of {quantity(self.archives, 'archive')}"
        ]
        for reason, number in sorted(counted.skipped.items()):
            parts.append(f"note: {number} {reason}")
        return "\n".join(parts)


class RunCounts(Protocol):
    """Another engine: counts archives as `count_watched` does. Its runs are in `scratch`."""

    def __call__(
        self, tasks: Sequence[CountTask], what: str | OwnSource, limits: Limits, scratch: Scratch, /
    ) -> Iterator[tuple[CountTask, GroupResult]]:
        """Count the archives."""


class _Asked(NamedTuple):
    """What is counted, and how; `run` is another engine."""

    options: CountOptions
    counter: Counter | OwnCounter
    run: RunCounts | None

    @property
    def what(self) -> str:
        """Its name in messages."""
        return self.options.what or "items"

    def results(
        self, tasks: Sequence[CountTask], scratch: Scratch, progress: Progress
    ) -> Iterator[tuple[CountTask, GroupResult]]:
        """Count the archives of all tasks."""
        options = self.options
        limits = Limits(options.timeout, options.memory << 20)
        if self.run is None:
            return count_watched(tasks, self.counter, options.processes, progress.tick, limits)
        what = options.what or own_source(str(options.call))
        return self.run(tasks, what, limits, scratch)


def count_asked(
    asked: CountOptions,
    output: IO[bytes] | str,
    failures: Failures,
    run: RunCounts | None = None,
    open_all: OpenAll = open_here,
) -> CountSummary:
    """Write the counts of all inputs to a stream, or to the file at a path or URL. Raises UsageError, InputError."""
    wanted = _Asked(asked, _counter_asked(asked), run)
    with Pipes(failures, quiet=asked.quiet) as pipes:
        archives = find_archives(asked, failures, pipes, open_all=open_all)
        if isinstance(output, str):
            return _count_to_file(archives, output, wanted, failures)
        return _count_to_stream(archives, output, wanted, failures)


def _counter_asked(asked: CountOptions) -> Counter | OwnCounter:
    if asked.call is not None:
        if asked.what is not None:
            raise UsageError(f"{asked.what}: give either WHAT or --call")
        if callable(asked.call):
            return OwnCounter(asked.call)
        if not isinstance(asked.call, str):
            raise UsageError(f"invalid --call {asked.call!r}; expected MODULE:FUNCTION, or a function")
        return own_counter(asked.call)
    counter = COUNTERS.get(asked.what or "")
    if counter is None:
        raise UsageError(f"invalid WHAT {asked.what or ''!r}: expected {', '.join(COUNTERS)}, or --call")
    return counter


def _count_to_stream(
    archives: Sequence[Input], out: IO[bytes], asked: _Asked, failures: Failures
) -> CountSummary:
    """Write the counts of all archives to a stream. Raises UsageError if there is nothing to count."""
    with _counted(archives, asked, failures) as (counted, lists):
        return CountSummary(asked.what, len(archives), write_lines(lists, out, ""), counted)


def _count_to_file(archives: Sequence[Input], path: str, asked: _Asked, failures: Failures) -> CountSummary:
    """Write the counts of all archives to a file at a path or URL. It is gzipped if its name ends in `.gz`.

    Raises UsageError if there is nothing to count, or if the file exists and may not be replaced. Raises InputError
    if there are failures and nothing was counted: then no file is written.
    """
    check_archives_stay([locate(path)], archives)
    output = output_file(path, replace=asked.options.replace)
    with _counted(archives, asked, failures) as (counted, lists):
        if failures.count and not counted.counted:
            raise InputError(path, "was not written, because nothing was counted")
        with writing(output, replace=asked.options.replace) as file:
            lines = write_lines(lists, file, path)
    return CountSummary(asked.what, len(archives), lines, counted)


@contextmanager
def _counted(
    archives: Sequence[Input], asked: _Asked, failures: Failures
) -> Iterator[tuple[Counted, Iterator[list[bytes]]]]:
    """Count all archives. Yields what was read, and the lines of the counts."""
    for archive in archives:
        archive.location.require()
    with temporary_directory() as directory:
        scratch = Scratch(Path(directory))
        processes = asked.options.processes if asked.run is None else len(archives)
        groups = enumerate(_grouped(archives, processes))
        tasks = [CountTask(group, scratch.directory / str(number)) for number, group in groups]
        try:
            counted, runs = _run(tasks, asked, scratch, failures)
        except ImportError as error:
            raise UsageError(f"{error.name} is not installed; {install_extra('scan')}") from None
        yield counted, sum_lines(merge_runs(runs, scratch.create, scratch.reader))


def _grouped(archives: Sequence[Input], processes: int) -> list[list[Input]]:
    """The archives in groups of neighbours, as many as keep all processes busy."""
    groups = (processes or processes_by_default()) * _GROUPS
    size = max(1, min(_LARGEST_GROUP, len(archives) // groups))
    return [list(archives[start : start + size]) for start in range(0, len(archives), size)]


def _run(
    tasks: Sequence[CountTask], asked: _Asked, scratch: Scratch, failures: Failures
) -> tuple[Counted, list[Run]]:
    archives = sum(len(task.archives) for task in tasks)
    total = total_size(archive.location for task in tasks for archive in task.archives)
    counted, runs, without = Counted(), list[Run](), list[str]()
    with Progress(f"counting {asked.what}", archives, total, asked.options.quiet) as progress:
        failures.show_on(progress)
        for task, result in asked.results(tasks, scratch, progress):
            for failure in result.failures:
                report_failure(failure, failures)
            for label, one in result.notes:
                failures.note_one(f"{label}@{one.offset}", one.reason)
            counted.add(result.counted)
            runs += result.runs
            without += result.without
            for _ in task.archives:
                progress.advance()
        failures.close_notes()
        if len(without) < archives:
            _note_without(sorted(without), asked.what, asked.counter.needs, failures)
    if not counted.counted and without and not failures.count:
        where = f"{without[0]}: has" if len(without) == 1 else f"{len(without)} archives have"
        raise UsageError(f"{where} no {asked.what} to count; give {asked.counter.needs}")
    return counted, runs


def report_failure(failure: Failure, failures: Failures) -> None:
    """Report a failure. A user's function may fail on every record: many of a kind are only counted (see `close_listed`)."""
    if failure.hint == BadFunction.hint:
        failures.report_one_listed(failure)
    else:
        failures.report(failure)


def _note_without(without: list[str], what: str, needs: str, failures: Failures) -> None:
    for path in without[:_SHOWN]:
        failures.note(f"{path}: note: has no {what} to count; they are counted in {needs}")
    if len(without) > _SHOWN:
        failures.note(f"note: {len(without) - _SHOWN} more archives without {what} to count")
