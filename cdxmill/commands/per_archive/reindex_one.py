"""Move the lines of one index file to the new places of their records: the task that `reindex` runs in its processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from cdxmill.commands.per_archive.index_one import sorted_lists
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.inputs.named import Input
from cdxmill.outputs.failure_list import failures_beside, list_beside, list_in
from cdxmill.outputs.names import identity
from cdxmill.outputs.offset_tables import read_table
from cdxmill.outputs.record import Fingerprinted, Made, append_made
from cdxmill.outputs.settings import TableSettings
from cdxmill.running.failures import Failure
from cdxmill.running.quantities import count
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines, text_of
from cdxmill.stages.lines.move_lines import LineMover
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.write_lines import write_gzip_lines
from cdxmill.storage.choose import file_size, is_remote, remove, write_atomic
from cdxmill.storage.scratch import Scratch

_HINT = "index the new archive"


class ReindexTask(NamedTuple):
    """An index file to write to the path or URL `output`, with its lines moved by the tables of `settings`.

    Failures are listed in the local folder `folder`, or, without one, beside the output.
    """

    cdx: Input
    output: str
    folder: Path | None
    scratch: Path
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
    scratch = Scratch(task.scratch)
    mover = LineMover(task.settings.names, read_table)
    path = task.cdx.path
    try:
        size = 0 if is_remote(path) else file_size(path)
        sorter = LineSorter(scratch.create, "lines")
        header = _move(path, mover, sorter)
    except InputError as error:
        failure = Failure.from_error(error)
        if error.path != path:
            failure = Failure(path, None, f"needs {error.path}: {error.reason}", error.hint)
        _list_failures(task, [failure])
        scratch.remove()
        return ReindexResult(0, 0, 0, 0, [failure])
    written, failures = 0, list(_skipped(path, mover))

    def counted(lists: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
        nonlocal written
        if header:
            yield [header]
        for lines in lists:
            written += len(lines)
            yield lines

    with write_atomic(task.output, sync_name=False) as raw:
        file = Fingerprinted(raw)
        _write(counted(sorted_lists(sorter, scratch)), task.output, cast("IO[bytes]", file))
        _list_failures(task, failures)
        if task.folder is not None:
            append_made(task.folder, _made(task, task.folder, size, file.fingerprint()))
    if task.folder is not None or not failures:
        remove(failures_beside(task.output))
    scratch.remove()
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


def _write(lists: Iterator[list[bytes]], output: str, file: IO[bytes]) -> None:
    if output.lower().endswith(".gz"):
        write_gzip_lines(lists, file, Compressor())
    else:
        for lines in lists:
            file.write(text_of(lines))


def _skipped(path: str, mover: LineMover) -> Iterator[Failure]:
    """A failure for each reason why lines were skipped."""
    for skip, number in mover.skipped.items():
        table = f" in {skip.table}" if skip.table else ""
        first = f"; the first is {mover.examples[skip]!r}"
        yield Failure(path, None, f"{count(number, 'line')} skipped, {skip.reason}{table}{first}", _HINT)


def _made(task: ReindexTask, folder: Path, size: int, fingerprint: str) -> Made:
    name = Path(task.output).relative_to(folder).as_posix()
    return Made(name, identity(task.cdx.path), task.settings.digest(task.cdx.filename), size, fingerprint)


def _list_failures(task: ReindexTask, failed: list[Failure]) -> None:
    if task.folder is not None:
        list_in(task.folder, failed)
    elif failed:
        list_beside(task.output, failed)
