"""scan: archives -> for each, a file with what was asked of the records that match."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.commands.per_archive.task import (
    KEPT_AS,
    OutputDirectory,
    note,
    open_directory,
    outputs_in,
    report,
    showing,
)
from cdxmill.commands.scanning.options import ScanOptions, compiled, needs_watch
from cdxmill.commands.scanning.rows import WARC, WET
from cdxmill.commands.scanning.scan_one import ScannedArchive, ScanTask, scan_one
from cdxmill.commands.scanning.table import record_columns
from cdxmill.inputs.named import Input
from cdxmill.messages import count, human_seconds
from cdxmill.outputs.names import below
from cdxmill.regex import regex
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.watched import Limits, Lost, Working, run_watched
from cdxmill.stages.scan.plan import Measured, added
from cdxmill.stages.scan.sampling import Smallest, parse_sample
from cdxmill.storage.hosts import begin_run
from cdxmill.storage.local import drop_unfinished
from cdxmill.storage.location import PathOrUrl
from cdxmill.storage.scratch import Scratch

if TYPE_CHECKING:
    from cdxmill.commands.scanning.captures import NamedRecords

    SortCaptures = Callable[
        [Sequence[Input], Scratch, Failures], tuple[Mapping[Input, NamedRecords | None], str]
    ]

_COMPRESSED = regex(r"\.(gz|zst)$", re.I)
_WARC = regex(r"\.warc(\.wet)?$", re.I)
_LONG = 2.0
"""Seconds. The progress shows a record that takes longer."""
_MOST_SHOWN = 16
"""Processes that the progress shows: those that work on their archive longest."""


class ScanSummary(NamedTuple):
    """What `scan` did."""

    archives: int
    written: int
    kept: int
    records: int
    matches: int
    measured: list[Measured]
    kept_as: str

    def __str__(self) -> str:
        """Return the closing line."""
        kept = f", {self.kept} {self.kept_as}" if self.kept else ""
        none = self.archives - self.written
        without = f", {none} that cannot be read" if none else ""
        return f"{self.matches} of {count(self.records, 'record')} in {count(self.archives, 'archive')} match{without}{kept}"


def scanned_name(path: str, to: str) -> str:
    """The path, below the output directory, of the output for the archive at `path`.

    >>> scanned_name("/dir1/a.warc.gz", "jsonl.gz"), scanned_name("a.warc.gz", "warc.gz"), scanned_name("a.arc", "jsonl")
    ('dir1/a.warc.jsonl.gz', 'a.warc.gz', 'a.arc.jsonl')
    >>> scanned_name("a.warc.gz", "wet.gz"), scanned_name("a.warc.wet.gz", "wet.gz"), scanned_name("a.arc.gz", "wet.zst")
    ('a.warc.wet.gz', 'a.warc.wet.gz', 'a.arc.warc.wet.zst')
    """
    stem = _COMPRESSED.sub("", below(path))
    return f"{_WARC.sub('', stem) if to in (*WARC, *WET) else stem}{ending_of(to)}"


def ending_of(to: str) -> str:
    """The ending of the outputs in a format."""
    return f".warc.{to}" if to in WET else f".{to}"


def scan(
    names: Mapping[Input, str],
    target: PathOrUrl,
    options: ScanOptions,
    failures: Failures,
    captures: str | None = None,
    run: RunTasks | None = None,
) -> ScanSummary:
    """Scan each archive, and write the file of its name below `target`, a path or URL.

    Only the records are scanned that index lines in `captures` name, if that is given: a path, a URL, or - for standard
    input. `run` is another engine. Raises UsageError if there are no archives, if the options are invalid, or if an output exists that may not be
    replaced. Nothing is changed then.
    """
    records: Mapping[Input, NamedRecords | None] = dict.fromkeys(names)
    digest = ""
    compiled.cache_clear()  # the files that the options name may have changed
    compiled(options)  # for all processes
    with ExitStack() as files:
        lines = files.enter_context(_lines_of(captures))
        directory = files.enter_context(open_directory(names, target, failures))
        if lines is not None:
            records, digest = lines(list(names), Scratch(directory.scratch), failures)
        options = _with_limit(_Run(options, failures, run), directory, names, records)
        settings = options.settings(digest)
        wanted = {archive: names[archive] for archive in records}
        outputs, kept, *_ = directory.plan(wanted, settings, options.existing)
        tasks = [
            ScanTask(*fields, options, records[fields[0]], is_last=False)
            for fields in directory.each(outputs, settings)
        ]
        scan_run = _Run(options, failures, run)
        if options.to == "parquet":
            record_columns(directory.place, compiled(options).extractor.columns, outputs.values())
        with directory.writing(outputs):
            scan_run.scan_twice("scanning", tasks)
    return scan_run.summary(len(kept))


@contextmanager
def _lines_of(captures: str | None) -> Iterator[SortCaptures | None]:
    """Open the index lines of `captures`: a function that sorts them. None for all records."""
    if captures is None:
        yield None
        return
    from cdxmill.commands.scanning.captures import open_lines, sort_captures  # not needed otherwise

    with open_lines(captures) as read_at:
        yield partial(sort_captures, captures, read_at)


def _with_limit(
    run: _Run,
    directory: OutputDirectory,
    names: Mapping[Input, str],
    records: Mapping[Input, NamedRecords | None],
) -> ScanOptions:
    """The options, with the limit of a sample of N records: all archives are read for it."""
    options = run.options
    number = parse_sample(options.sample)[1]
    if not number:
        return options
    outputs = outputs_in(directory.place, {archive: names[archive] for archive in records})
    tasks = [
        ScanTask(*fields, options, records[fields[0]], is_last=False, ranks=number)
        for fields in directory.each(outputs, options.settings(""))
    ]
    run.scan_twice("sampling", tasks)
    return replace(options, limit=run.smallest.limit())


def scan_watched(
    tasks: Sequence[ScanTask], processes: int, tick: Callable[[Sequence[Working]], None]
) -> Iterator[tuple[ScanTask, ScannedArchive]]:
    """(task, result) for each archive. A record that takes too long or too much memory is skipped and reported."""
    if not tasks:
        return iter(())
    options = tasks[0].options
    limits = Limits(options.seconds, options.memory)
    return run_watched(scan_one, tasks, processes, tick, limits, _after_loss)


class _Run:
    """The archives of a scan that are finished: what they had in all, and what they report."""

    def __init__(self, options: ScanOptions, failures: Failures, run: RunTasks | None) -> None:
        self.options, self._failures, self._run = options, failures, run
        self._progress = Progress("", 0, quiet=True)
        self._start = time.monotonic()
        self._files = self._written = self._records = self._matches = 0
        self._measured: list[Measured] = []
        self.smallest = Smallest(parse_sample(options.sample)[1])

    def scan_twice(self, doing: str, tasks: Sequence[ScanTask]) -> None:
        """Scan archives, and once more at the end those whose storage gave no answer."""
        with showing(doing, tasks, self.options.quiet, self._failures) as self._progress:
            if failed := self._scan(tasks):
                begin_run()  # a server that was given up may work again
                self._scan([replace(task, is_last=True) for task in failed])

    def _scan(self, tasks: Sequence[ScanTask]) -> list[ScanTask]:
        """Scan archives. Returns those to try once more: their storage gave no answer."""
        again = list[ScanTask]()
        for task, result in self._results(tasks):
            if result.again:
                self._failures.note(f"{result.again}; tried again at the end")
                again.append(task)
            else:
                self._add(task.archive, result)
        return again

    def _results(self, tasks: Sequence[ScanTask]) -> Iterator[tuple[ScanTask, ScannedArchive]]:
        run, processes = self._run, self.options.processes
        if run is None and (processes == 1 or len(tasks) == 1) and not needs_watch(self.options):
            run = run_tasks  # in this process, which saves a start
        if run is None:
            return scan_watched(tasks, processes, self._show)
        done = run(scan_one, tasks, processes, self._progress.tick)
        return ((tasks[index], result) for index, result in done)

    def _add(self, archive: Input, result: ScannedArchive) -> None:
        report(archive, result.failures, self._failures)
        note(archive.label, result.notes, self._failures)
        self._files += 1
        self._written += result.is_written
        self._records += result.records
        self._matches += result.matches
        for number in result.smallest:
            self.smallest.add(number)
        self._measured = added([self._measured, result.measured])
        self._progress.advance()

    def _show(self, working: Sequence[Working]) -> None:
        """Show the progress, with the records of archives that are not finished."""
        records = self._records + sum(one.items for one in working)
        matches = self._matches + sum(one.found for one in working)
        rate = records / max(time.monotonic() - self._start, 1e-6)
        self._progress.more = f"{count(records, 'record')} ({rate:.0f}/s), {matches} match"
        longest = sorted(working, key=lambda one: -one.seconds)[:_MOST_SHOWN]
        names = [posixpath.basename(one.task.archive.path) for one in longest]
        self._progress.at_work = [f"{name}: {_state(one)}" for name, one in zip(names, longest, strict=True)]
        self._progress.tick()

    def summary(self, kept: int) -> ScanSummary:
        """All that was scanned."""
        measured = sorted(self._measured, key=Measured.rank)
        counts = self._files, self._written, kept, self._records, self._matches
        return ScanSummary(*counts, measured, KEPT_AS[self.options.existing])


def _state(working: Working) -> str:
    """What a process does: `record 120, 31 s`."""
    if not working.items:
        return f"starts, {human_seconds(working.seconds)}"
    what = f"record {working.items}, {human_seconds(working.seconds)}"
    if working.item_seconds is None:
        return f"{what}, reads"
    is_long = working.item_seconds > _LONG
    return f"{what}, this record for {human_seconds(working.item_seconds)}" if is_long else what


def _after_loss(task: ScanTask, how: Lost) -> list[ScanTask] | ScannedArchive:
    """What follows when a process was lost: the task once more, or the result of an archive that is given up."""
    if (path := task.output.directory) is not None:
        drop_unfinished(path)
    losses = task.losses.after(how)
    if losses is not None:
        return [replace(task, losses=losses)]
    if task.ranks:  # reported when it is scanned
        return ScannedArchive(0, 0, False, [], [], [])
    failed = [Failure(task.archive.path, None, how.reason, task.losses.hint())]
    task.list_failures(failed)
    return ScannedArchive(0, 0, False, failed, [], [])
