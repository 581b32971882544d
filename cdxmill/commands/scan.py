"""scan: archives -> for each, a file with what was asked of the records that match."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.index import forgetting
from cdxmill.commands.scan_captures import Ranges, ranges_of
from cdxmill.commands.scan_one import (
    ScanOptions,
    ScanResult,
    ScanTask,
    Skip,
    compiled,
    list_failures,
    remove_parts,
    scan_one,
)
from cdxmill.inputs.existing_outputs import Rule, check_inputs_stay, plan_outputs
from cdxmill.inputs.named import Input, check_archives
from cdxmill.inputs.output_names import below
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.lock import hold
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count
from cdxmill.running.watched import Limits, Lost, run_watched
from cdxmill.stages.scan.plan import Measured, added
from cdxmill.storage.choose import (
    PathOrUrl,
    check_libraries,
    check_writable,
    is_remote,
    join,
    local_path,
    total_size,
)
from cdxmill.storage.local import sync_folders

_COMPRESSED = re.compile(r"\.(gz|zst)$", re.I)
_WARC = re.compile(r"\.warc$", re.I)
_MOST_LOST = 10
"""Processes that one archive may cost. One that used too much memory counts several times: a leak does not end."""
_BY_MEMORY = 4


class ScanSummary(NamedTuple):
    """What `scan` did."""

    files: int
    written: int
    kept: int
    records: int
    matches: int
    measured: list[Measured]
    kept_as: str = "up to date"

    def __str__(self) -> str:
        """Return the closing line."""
        kept = f", {self.kept} {self.kept_as}" if self.kept else ""
        none = self.files - self.written
        without = f", {none} that cannot be read" if none else ""
        return f"{self.matches} of {count(self.records, 'record')} in {count(self.files, 'archive')} match{without}{kept}"


def scanned_name(path: str, to: str) -> str:
    """The path, below the output folder, of the output for the archive at `path`.

    >>> scanned_name("/dir1/a.warc.gz", "jsonl.gz"), scanned_name("a.warc.gz", "warc.gz"), scanned_name("a.arc", "jsonl")
    ('dir1/a.warc.jsonl.gz', 'a.warc.gz', 'a.arc.jsonl')
    """
    stem = _COMPRESSED.sub("", below(path))
    return f"{_WARC.sub('', stem) if to.startswith('warc') else stem}.{to}"


def scan(
    names: Mapping[Input, str],
    folder: PathOrUrl,
    options: ScanOptions,
    failures: Failures,
    captures: bytes | None = None,
) -> ScanSummary:
    """Scan each archive, or only the records that the index lines `captures` name, and write the file of its name below `folder`, a path or URL.

    Raises UsageError if there are no archives, if the options are invalid, or if an output exists that may not be
    replaced. Nothing is changed then.
    """
    check_archives(names)
    check_writable(folder)
    is_local = not is_remote(str(folder))
    base = local_path(str(folder)) if is_local else str(folder)
    check_inputs_stay(names, base)
    ranges: Mapping[Input, Ranges | None] = dict.fromkeys(names)
    if captures is not None:
        options = replace(options, captures=hashlib.sha256(captures).hexdigest())
        ranges = ranges_of(captures, names, failures)
    compiled.cache_clear()  # the files that the options name may have changed
    compiled(options)  # for all processes
    outputs = {archive: join(base, names[archive]) for archive in ranges}
    if not is_local:
        with tempfile.TemporaryDirectory(prefix="cdxmill-") as scratch:
            return _run(_Places(outputs, ranges, base, Path(scratch)), options, failures)
    path = Path(base)
    with hold(path, failures.note), tempfile.TemporaryDirectory(prefix=".scratch-", dir=path) as scratch:
        return _run(_Places(outputs, ranges, base, Path(scratch)), options, failures)


class _Places(NamedTuple):
    """The output of each archive, the ranges to scan of it (None: all), the folder of the outputs, one for scratch files."""

    outputs: Mapping[Input, str]
    ranges: Mapping[Input, Ranges | None]
    base: str
    scratch: Path


def _run(places: _Places, options: ScanOptions, failures: Failures) -> ScanSummary:
    outputs, ranges, base, scratch = places
    folder = None if is_remote(base) else Path(base)
    archives, kept = plan_outputs(outputs, options.settings(), options.existing, folder)
    tasks = [
        ScanTask(
            archive,
            outputs[archive],
            folder,
            scratch / str(number),
            options,
            ranges[archive],
        )
        for number, archive in enumerate(archives)
    ]
    with forgetting(folder, archives):
        summary = _run_tasks(tasks, options, failures)
        if folder is not None:
            sync_folders(outputs[archive] for archive in archives)
    kept_as = "skipped" if options.existing is Rule.SKIP else "up to date"
    return summary._replace(kept=len(kept), kept_as=kept_as)


def _run_tasks(tasks: Sequence[ScanTask], options: ScanOptions, failures: Failures) -> ScanSummary:
    check_libraries(task.archive.path for task in tasks)
    total = total_size(task.archive.path for task in tasks)
    results: list[ScanResult] = []
    running = list(tasks)

    def lost(index: int, how: Lost) -> ScanTask | ScanResult:
        found = _after_loss(running[index], how)
        if isinstance(found, ScanTask):
            running[index] = found
        return found

    limits = Limits(options.seconds, options.memory)
    with Progress("scanning", len(tasks), total, options.quiet) as progress:
        failures.show_on(progress)
        for index, result in run_watched(scan_one, tasks, options.processes, progress.tick, limits, lost):
            archive = tasks[index].archive
            failures.report_listed(
                archive.label, [one._replace(path=archive.label) for one in result.failures]
            )
            for note in result.notes:
                failures.note_one(f"{archive.label}@{note.offset}", note.reason)
            results.append(result._replace(failures=[], notes=[], measured=[]))
            measured = added([*measured_so_far(results), result.measured])
            results[0] = results[0]._replace(measured=measured)
            progress.more = f"{sum(one.matches for one in results)} of {sum(one.records for one in results)} records match"
            progress.advance()
        failures.close_notes()
    return _summary(results)


def measured_so_far(results: Sequence[ScanResult]) -> list[list[Measured]]:
    """What was measured in all results: the first one has the sums."""
    return [results[0].measured] if results else []


def _after_loss(task: ScanTask, how: Lost) -> ScanTask | ScanResult:
    """What follows when a process was lost: the task once more, or the result of an archive that is given up."""
    remove_parts(task.output)
    item = how.item
    if task.lost < _MOST_LOST:
        if how.by_memory and not task.lost:
            item = None  # perhaps other archives filled the memory
        skip = (Skip(item, how.reason),) if item is not None else ()
        lost = task.lost + (_BY_MEMORY if how.by_memory else 1)
        return task._replace(lost=lost, skip=(*task.skip, *skip))
    hint = (
        "omit this archive, or find the cause in what --call runs"
        if task.skip
        else "try fewer processes (-p)"
    )
    failed = [Failure(task.archive.path, None, how.reason, hint)]
    list_failures(task, failed)
    return ScanResult(0, 0, False, failed, [], [])


def _summary(results: Sequence[ScanResult]) -> ScanSummary:
    return ScanSummary(
        files=len(results),
        written=sum(result.is_written for result in results),
        kept=0,
        records=sum(result.records for result in results),
        matches=sum(result.matches for result in results),
        measured=sorted((one for some in measured_so_far(results) for one in some), key=Measured.rank),
    )
