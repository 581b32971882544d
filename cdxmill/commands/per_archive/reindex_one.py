"""Move the lines of one index file to the new places of their records: the task that `reindex` runs in its processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

from cdxmill.commands.per_archive.index_one import sorted_lists
from cdxmill.commands.per_archive.task import ArchiveTask, OneOutput
from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.outputs.existing import TableSettings
from cdxmill.outputs.offset_tables import read_table
from cdxmill.running.failures import Failure
from cdxmill.running.quantities import count
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines, text_of
from cdxmill.stages.lines.move_lines import LineMover
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.write_lines import write_gzip_lines
from cdxmill.storage.location import Location
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
