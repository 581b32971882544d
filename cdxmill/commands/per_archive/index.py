"""index: archives -> one CDX file each, or one sorted file or stream."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from cdxmill.capture import Note
from cdxmill.commands.per_archive.task import (
    KEPT_AS,
    ArchiveTask,
    OneOutput,
    OutputOptions,
    note,
    open_directory,
    report,
    run_each,
    showing,
)
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.own_records import BESIDE, FAILURES
from cdxmill.inputs.named import Input, check_archives
from cdxmill.messages import count, human_bytes
from cdxmill.options.archives import LineOptions, Recording
from cdxmill.options.option import text_list
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import check_archives_stay, check_index_names, output_file, writing
from cdxmill.outputs.settings import LineSettings
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.stages.captures.capture_options import DEFAULT_RECORDS, CaptureOptions, parse_record_types
from cdxmill.stages.captures.index_archive import LINE_FORMATS, Findings, index_archive
from cdxmill.stages.lines.line_lists import write_gzip_lines, write_lines
from cdxmill.stages.lines.merge_lines import merge_runs, sorted_lists
from cdxmill.stages.lines.sort_lines import LineSorter, Run
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.scratch import Scratch, temporary_directory


@dataclass(frozen=True, kw_only=True)
class IndexOptions(OutputOptions):
    """How archives are indexed, and what happens to outputs that exist."""

    captures: CaptureOptions = field(default_factory=CaptureOptions)
    line_format: str = "cdxj"
    run: RunTasks = run_tasks

    def settings(self) -> LineSettings:
        """The options that decide how lines look."""
        return LineSettings(self.captures, self.line_format)


@dataclass(frozen=True)
class IndexTask(ArchiveTask):
    """An archive to index. If it `is_part` of the output, its runs stay in `scratch`, and nothing is written."""

    settings: LineSettings
    is_part: bool = False


class IndexedArchive(NamedTuple):
    """What came of an archive: its size in bytes, what was found in it, and its runs, if it is a part of an output."""

    size: int
    captures: int
    failures: list[Failure]
    notes: list[Note]
    runs: list[Run]


def index_one(task: IndexTask) -> IndexedArchive:
    """Index one archive. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, nothing is written, and an output of an earlier run stays.
    """
    output, scratch = OneOutput(task), Scratch(task.scratch)
    sorter, findings = LineSorter(scratch.create, "lines"), Findings()
    captures, line_format = task.settings
    error = None
    try:
        output.check()
        with task.open_archive() as read_at:
            filename = os.fsencode(task.archive.filename)
            indexer = index_archive(read_at, filename, captures, line_format, task.chunk)
            findings = indexer.findings
            for lines in indexer:
                sorter.add(lines)
    except InputError as failure:
        error = failure
    failures = task.failures_of(findings.damage, error)
    runs: list[Run] = []
    if task.is_part:
        runs = [run._replace(name=f"{task.scratch.name}/{run.name}") for run in sorter.finish()]
    else:
        if error is None:
            with output.writing(lambda: failures) as file:
                lists = sorted_lists(sorter, scratch.create, scratch.reader)
                write_gzip_lines(with_header(line_format, lists), file)
        output.finish(failures)
    return IndexedArchive(output.size, findings.captures, failures, findings.notes, runs)


def with_header(line_format: str, lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The lines, after the header line of their format."""
    header = LINE_FORMATS[line_format][1]
    if header:
        yield [header]
    yield from lists


def index_options(asked: LineOptions, existing: Rule) -> IndexOptions:
    """How archives are indexed. Raises UsageError."""
    return IndexOptions(
        captures=capture_options(asked),
        line_format=asked.line_format,
        processes=asked.processes,
        existing=existing,
        quiet=asked.quiet,
    )


def capture_options(asked: Recording) -> CaptureOptions:
    """Which records get a line. Raises UsageError for an unknown type of record."""
    names = None if asked.records is None else ",".join(text_list(asked.records)).split(",")
    try:
        records = DEFAULT_RECORDS if names is None else parse_record_types(names)
    except ValueError as error:
        raise UsageError(f"--records: {error}") from None
    return CaptureOptions(
        records=records,
        post_append=asked.post_append,
        minimal=asked.minimal,
        unsurt=asked.unsurt,
        keep_www=asked.keep_www,
        check_digests=asked.check_digests,
    )


_TOGETHER = Location("-")
"""The output of archives that are indexed together, which is written later."""


class IndexSummary(NamedTuple):
    """What `index` did. `kept` is the number of outputs that were kept, `kept_as` why. `bytes` is the size of the archives."""

    files: int
    kept: int
    captures: int
    bytes: int
    kept_as: str = "up to date"

    def report(self, failures: Failures, output: str) -> str:
        """Return the closing lines of an index in the directory `output`, a path or URL; "" if it is one file or stream."""
        kept = f", {self.kept} {self.kept_as}" if self.kept else ""
        what = f"{count(self.captures, 'capture')} of {count(self.files, 'archive')}"
        lines = [f"{what} ({human_bytes(self.bytes)}){kept}"]
        if failures.count:
            found = f"{count(failures.count, 'failure')} in {count(len(failures.inputs), 'input')}"
            rest = "; the rest is indexed" if self.captures else ""
            lines.append(f"{found}{_listed_in(output)}{rest}")
        return "\n".join(lines)


def _listed_in(output: str) -> str:
    if not output:
        return ""
    place = locate(output)
    if place.is_remote:
        return f", listed in {place / f'_...{BESIDE}'} beside each output"
    return f", listed in {Location(place.local) / FAILURES}"


def index_to_directory(
    names: Mapping[Input, str], target: PathOrUrl, options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index each archive to the file of its name below `target`, a path or URL.

    Failures are reported and listed: in a file in the directory, or, if it is remote, in files beside the outputs.
    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    settings = options.settings()
    check_index_names(names)
    with open_directory(names, target, failures) as directory:
        outputs, kept, *_ = directory.plan(names, settings, options.existing)
        tasks = [IndexTask(*fields) for fields in directory.each(outputs, settings)]
        with directory.writing(outputs):
            summary, _ = _run(tasks, options, failures)
    return summary._replace(kept=len(kept), kept_as=KEPT_AS[options.existing])


def index_to_stream(
    archives: Sequence[Input], out: IO[bytes], options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index all archives to one sorted stream of lines. Raises UsageError if there are none."""
    with _index_together(archives, options, failures) as (summary, lists):
        write_lines(lists, out, "")
    return summary


def index_to_file(
    archives: Sequence[Input], path: PathOrUrl, options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index all archives to one sorted file at a path or URL. It is gzipped if its name ends in `.gz`.

    Raises UsageError if there are no archives, or if the file exists and `options` do not replace it. Raises
    InputError if there are failures and no line: then no file is written.
    """
    output = output_file(path, replace=options.existing is Rule.REPLACE)
    check_archives_stay([output], archives)
    with _index_together(archives, options, failures) as (summary, lists):
        if failures.count and not summary.captures:
            raise InputError(output.text, "was not written, because no archive gave a line")
        with writing(output, replace=options.existing is Rule.REPLACE) as file:
            write_lines(lists, file, output.name)
    return summary


@contextmanager
def _index_together(
    archives: Sequence[Input], options: IndexOptions, failures: Failures
) -> Iterator[tuple[IndexSummary, Iterator[list[bytes]]]]:
    """Index all archives. Yields the summary, and their lines: sorted, distinct, after the header of their format."""
    check_archives(archives)
    check_index_names(archives)
    with temporary_directory() as directory:
        tasks = [
            IndexTask(
                archive, _TOGETHER, None, Path(directory) / str(number), options.settings(), is_part=True
            )
            for number, archive in enumerate(archives)
        ]
        summary, runs = _run(tasks, options, failures)
        scratch = Scratch(Path(directory))
        merged = merge_runs(runs, scratch.create, scratch.reader)
        yield summary, with_header(options.line_format, merged)


def _run(
    tasks: Sequence[IndexTask], options: IndexOptions, failures: Failures
) -> tuple[IndexSummary, list[Run]]:
    runs: list[Run] = []
    captures = done = 0
    with _without_collecting(), showing("indexing", tasks, options.quiet, failures) as progress:
        for task, result in run_each(index_one, tasks, options.processes, progress, options.run):
            report(task.archive, result.failures, failures, is_listed=not task.is_part)
            note(task.archive.label, result.notes, failures)
            captures += result.captures
            done += result.size
            runs += result.runs
    return IndexSummary(files=len(tasks), kept=0, captures=captures, bytes=done), runs


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Keep the garbage collector from scanning all modules again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
