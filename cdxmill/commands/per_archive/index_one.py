"""Index one archive: the task that `index` runs in its processes, and the index job on its nodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cdxmill.capture import Note
from cdxmill.commands.per_archive.task import ArchiveTask, OneOutput
from cdxmill.errors import InputError
from cdxmill.outputs.existing import LineSettings, Rule
from cdxmill.running.failures import Failure
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.findings import Findings
from cdxmill.stages.captures.index_archive import LINE_FORMATS, ArchiveIndexer
from cdxmill.stages.lines.line_lists import distinct
from cdxmill.stages.lines.merge_runs import merge_runs
from cdxmill.stages.lines.sort_lines import LineSorter, sort_captures
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.stages.lines.write_lines import write_gzip_lines
from cdxmill.storage.scratch import Scratch


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """How archives are indexed, and what happens to outputs that exist."""

    captures: CaptureOptions = field(default_factory=CaptureOptions)
    line_format: str = "cdxj"
    processes: int = 1
    existing: Rule = Rule.REFUSE
    quiet: bool = False
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
        with task.open_archive() as read_at:
            filename = os.fsencode(task.archive.filename)
            indexer = ArchiveIndexer(read_at, filename, captures, line_format, task.chunk)
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
                write_gzip_lines(with_header(line_format, sorted_lists(sorter, scratch)), file)
        output.finish(failures)
    size = output.size or task.archive.location.size()
    return IndexedArchive(size, findings.captures, failures, findings.notes, runs)


def sorted_lists(sorter: LineSorter, scratch: Scratch) -> Iterator[list[bytes]]:
    """The lines of a sorter, sorted and distinct."""
    if sorter.runs:
        return merge_runs(sorter.finish(), scratch.create, scratch.reader)
    lines = distinct(sort_captures(sorter.take()))
    return iter((lines,) if lines else ())


def with_header(line_format: str, lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The lines, after the header line of their format."""
    header = LINE_FORMATS[line_format][1]
    if header:
        yield [header]
    yield from lists
