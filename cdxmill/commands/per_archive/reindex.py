"""reindex: the index of archives -> the index of the same archives, written again by `recompress`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from cdxmill.commands.per_archive.task import (
    ArchiveTask,
    OneOutput,
    OutputOptions,
    open_directory,
    report,
    run_each,
    showing,
)
from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.inputs.named import Input
from cdxmill.messages import count
from cdxmill.outputs.names import identity
from cdxmill.outputs.offset_tables import read_table
from cdxmill.outputs.record import state_of
from cdxmill.outputs.settings import TableSettings
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines, write_lines
from cdxmill.stages.lines.merge_lines import sorted_lists
from cdxmill.stages.lines.move_lines import LineMover, Names, TableNames
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.storage.location import Location, PathOrUrl, ask_all, locate
from cdxmill.storage.scratch import Scratch

_HINT = "index the new archive"


@dataclass(frozen=True)
class ReindexTask(ArchiveTask):
    """An index file to write with its lines moved by the tables of `settings`."""

    settings: TableSettings


class ReindexedFile(NamedTuple):
    """What came of an index file: lines that were moved, copied, and skipped; lines that were there twice."""

    moved: int
    copied: int
    skipped: int
    duplicates: int
    failures: list[Failure]


def reindex_one(task: ReindexTask) -> ReindexedFile:
    """Write one index file. Its failures are in the result; they are listed before its output appears.

    If it or a table cannot be read to its end, nothing is written, and an output of an earlier run stays.
    """
    output, scratch = OneOutput(task), Scratch(task.scratch)
    mover = LineMover(task.settings.names, read_table)
    sorter = LineSorter(scratch.create, "lines")
    try:
        output.check()
        header = _move(task.archive.path, mover, sorter)
    except InputError as error:
        failure = Failure.from_error(error)
        if error.path != task.archive.path:
            reason = f"needs {error.path}: {error.reason}"
            failure = failure._replace(path=task.archive.path, reason=reason)
        output.finish([failure])
        return ReindexedFile(0, 0, 0, 0, [failure])
    failures = list(_skipped(task.archive.path, mover))
    with output.writing(lambda: failures) as file:
        lists = chain([header] if header else [], sorted_lists(sorter, scratch.create, scratch.reader))
        written = write_lines(lists, file, task.output.name) - len(header)
    output.finish(failures)
    duplicates = mover.moved + mover.copied - written
    return ReindexedFile(mover.moved, mover.copied, mover.skipped.total(), duplicates, failures)


def _move(path: str, mover: LineMover, sorter: LineSorter) -> list[bytes]:
    """Give the moved lines of an index file to `sorter`. Returns its header line, if it has one."""
    header: list[bytes] = []
    for lines in split_lines(read_pieces(path)):
        captures = [line for line in lines if is_capture_line(line)]
        if not header and len(captures) < len(lines):
            header = [line for line in lines if line and not is_capture_line(line)][:1]
        sorter.add(mover.move(captures))
    return header


def _skipped(path: str, mover: LineMover) -> Iterator[Failure]:
    """A failure for each reason why lines were skipped."""
    for skip, number in mover.skipped.items():
        table = f" in {skip.table}" if skip.table else ""
        first = f"; the first is {mover.examples[skip]!r}"
        yield Failure(path, None, f"{count(number, 'line')} skipped, {skip.reason}{table}{first}", _HINT)


class ReindexSummary(NamedTuple):
    """What `reindex` did: index files, and lines of those that were written."""

    files: int
    kept: int
    moved: int
    copied: int
    skipped: int
    duplicates: int

    def __str__(self) -> str:
        """Return the closing line."""
        kept = f", {self.kept} up to date" if self.kept else ""
        others = f", {self.copied} of other archives" if self.copied else ""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        twice = f", {count(self.duplicates, 'duplicate')} dropped" if self.duplicates else ""
        return f"{count(self.moved, 'line')} moved in {count(self.files, 'index file')}{others}{skipped}{twice}{kept}"


def reindex(
    names: Mapping[Input, str],
    tables: Mapping[str, Names],
    target: PathOrUrl,
    options: OutputOptions,
    failures: Failures,
) -> ReindexSummary:
    """Write each index file, with its lines moved by `tables`, to the file of its name below `target`, a path or URL.

    Failures are reported and listed: in a file in the directory, or, if it is remote, in files beside the outputs.
    Raises UsageError if nothing can be written there, or if an output exists that may not be replaced. Nothing is
    changed then.
    """
    settings = TableSettings(TableNames(tables), _fingerprints(tables))
    counts = [(0, 0, 0, 0)]
    with open_directory(names, target, failures) as directory:
        outputs, kept, *_ = directory.plan(names, settings, options.existing)
        tasks = [ReindexTask(*fields) for fields in directory.each(outputs, settings)]
        with directory.writing(outputs), showing("reindexing", tasks, options.quiet, failures) as progress:
            for task, result in run_each(reindex_one, tasks, options.processes, progress):
                report(task.archive, result.failures, failures)
                counts.append(result[:4])
    return ReindexSummary(len(tasks), len(kept), *map(sum, zip(*counts, strict=True)))


def _fingerprints(tables: Mapping[str, Names]) -> tuple[tuple[str, object], ...]:
    found = zip(tables, ask_all(Location.status, map(locate, tables)), strict=True)
    return tuple(sorted((identity(path), state_of(entry)) for path, entry in found))
