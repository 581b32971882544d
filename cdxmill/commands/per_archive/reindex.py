"""reindex: the index of archives -> the index of the same archives, written again by `recompress`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, NamedTuple

from cdxmill.commands.per_archive.index import sorted_lists
from cdxmill.commands.per_archive.task import (
    ArchiveTask,
    OneOutput,
    open_directory,
    outputs_in,
    report,
    run_each,
    showing,
)
from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.inputs.named import Input
from cdxmill.messages import count
from cdxmill.outputs.existing import Rule, TableSettings, check_inputs_stay
from cdxmill.outputs.names import identity
from cdxmill.outputs.offset_tables import read_table
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines, text_of, write_gzip_lines
from cdxmill.stages.lines.move_lines import LineMover, Names, TableNames
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.storage.location import Location, PathOrUrl, ask_all, locate
from cdxmill.storage.scratch import Scratch

_HINT = "index the new archive"


@dataclass(frozen=True)
class ReindexTask(ArchiveTask):
    """An index file to write with its lines moved by the tables of `settings`."""

    settings: TableSettings


class ReindexResult(NamedTuple):
    """What came of an index file: lines that were moved, copied, and skipped; lines that were there twice."""

    moved: int
    copied: int
    skipped: int
    duplicates: int
    failures: list[Failure]


def reindex_one(task: ReindexTask) -> ReindexResult:
    """Write one index file. Its failures are in the result; they are listed before its output appears.

    If it or a table cannot be read to its end, nothing is written, and an output of an earlier run stays.
    """
    output, scratch = OneOutput(task), Scratch(task.scratch)
    mover = LineMover(task.settings.names, read_table)
    sorter = LineSorter(scratch.create, "lines")
    try:
        header = _move(task.archive.path, mover, sorter)
    except InputError as error:
        failure = Failure.from_error(error)
        if error.path != task.archive.path:
            failure = Failure(task.archive.path, None, f"needs {error.path}: {error.reason}", error.hint)
        output.finish([failure])
        return ReindexResult(0, 0, 0, 0, [failure])
    written, failures = 0, list(_skipped(task.archive.path, mover))

    def counting(lists: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
        nonlocal written
        if header:
            yield [header]
        for lines in lists:
            written += len(lines)
            yield lines

    with output.writing(lambda: failures) as file:
        _write(counting(sorted_lists(sorter, scratch)), task.output, file)
    output.finish(failures)
    duplicates = mover.moved + mover.copied - written
    return ReindexResult(mover.moved, mover.copied, mover.skipped.total(), duplicates, failures)


def _move(path: str, mover: LineMover, sorter: LineSorter) -> bytes:
    """Give the moved lines of an index file to `sorter`. Returns its header line, b"" if it has none."""
    header = b""
    for lines in split_lines(read_pieces(path)):
        captures = [line for line in lines if is_capture_line(line)]
        if not header and len(captures) < len(lines):
            header = next((line for line in lines if line and not is_capture_line(line)), b"")
        sorter.add(mover.move(captures))
    return header


def _write(lists: Iterator[list[bytes]], output: Location, file: IO[bytes]) -> None:
    if output.name.lower().endswith(".gz"):
        write_gzip_lines(lists, file)
    else:
        for lines in lists:
            file.write(text_of(lines))


def _skipped(path: str, mover: LineMover) -> Iterator[Failure]:
    """A failure for each reason why lines were skipped."""
    for skip, number in mover.skipped.items():
        table = f" in {skip.table}" if skip.table else ""
        first = f"; the first is {mover.examples[skip]!r}"
        yield Failure(path, None, f"{count(number, 'line')} skipped, {skip.reason}{table}{first}", _HINT)


@dataclass(frozen=True, kw_only=True)
class ReindexOptions:
    """How index files are rewritten, and what happens to outputs that exist."""

    processes: int = 1
    existing: Rule = Rule.REFUSE
    quiet: bool = False


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
    options: ReindexOptions,
    failures: Failures,
) -> ReindexSummary:
    """Write each index file, with its lines moved by `tables`, to the file of its name below `target`, a path or URL.

    Failures are reported and listed: in a file in the directory, or, if it is remote, in files beside the outputs.
    Raises UsageError if nothing can be written there, or if an output exists that may not be replaced. Nothing is
    changed then.
    """
    place = locate(target)
    place.check_writable()
    check_inputs_stay(outputs_in(place, names))
    settings = TableSettings(TableNames(tables), _fingerprints(tables))
    with open_directory(place, failures) as directory:
        outputs, kept = directory.plan(names, settings, options.existing)
        tasks = [
            ReindexTask(index, output, directory.directory, directory.scratch / str(number), settings)
            for number, (index, output) in enumerate(outputs.items())
        ]
        with directory.writing(outputs):
            results = _run_tasks(tasks, options, failures)
    counts = (sum(numbers) for numbers in zip(*(result[:4] for result in results), strict=True))
    return ReindexSummary(len(tasks), len(kept), *(counts if results else (0, 0, 0, 0)))


def _fingerprints(tables: Mapping[str, Names]) -> tuple[tuple[str, object], ...]:
    found = zip(tables, ask_all(Location.status, map(locate, tables)), strict=True)
    return tuple(sorted((identity(path), entry and (entry.size, entry.modified)) for path, entry in found))


def _run_tasks(
    tasks: Sequence[ReindexTask], options: ReindexOptions, failures: Failures
) -> list[ReindexResult]:
    results = []
    with showing("reindexing", tasks, options.quiet, failures) as progress:
        for task, result in run_each(reindex_one, tasks, options.processes, progress):
            report(task.archive, result.failures, failures)
            results.append(result._replace(failures=[]))
    return results
