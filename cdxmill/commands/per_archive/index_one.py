"""Index one archive: the task that `index` runs in its processes, and the index job on its nodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, cast

from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.failure_list import failures_beside, list_beside, list_in
from cdxmill.outputs.names import identity
from cdxmill.outputs.record import Fingerprinted, Made, append_made
from cdxmill.outputs.settings import LineSettings
from cdxmill.running.counted_reads import counted
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
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK
from cdxmill.storage.choose import file_size, is_remote, remove, write_atomic
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.unchanged import open_unchanged


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


class IndexTask(NamedTuple):
    """An archive to index to the path or URL `output`; without one, its runs stay in `scratch`.

    An output in the local folder `folder` is recorded there, and failures are listed there. Without a folder, they are
    listed beside the output.
    """

    archive: Input
    output: str | None
    folder: Path | None
    scratch: Path
    options: IndexOptions


class IndexResult(NamedTuple):
    """What came of an archive: its size in bytes, what was found in it, and its runs, if it has no output."""

    size: int
    findings: Findings
    error: InputError | None
    runs: list[Run]

    def failures(self, path: str) -> list[Failure]:
        """The failures of the archive, under the name `path`: by offset, and last that of the file as a whole."""
        found = [Failure(path, one.offset, one.reason, one.hint) for one in self.findings.damage]
        if self.error is not None:
            found.append(Failure(path, None, self.error.reason, self.error.hint))
        return found


def index_one(task: IndexTask) -> IndexResult:
    """Index one archive. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, nothing is written, and an output of an earlier run stays.
    """
    scratch = Scratch(task.scratch)
    path = task.archive.path
    # if a local archive grows from now on, it differs from the size in the record
    size = 0 if is_remote(path) else file_size(path)
    sorter = LineSorter(scratch.create, "lines")
    error = None
    findings = Findings()
    try:
        with open_unchanged(path) as read_at:
            filename = os.fsencode(task.archive.filename)
            chunk = CHUNK if is_remote(path) else LOCAL_CHUNK
            options = task.options
            indexer = ArchiveIndexer(counted(read_at), filename, options.captures, options.line_format, chunk)
            findings = indexer.findings
            for lines in indexer:
                sorter.add(lines)
    except InputError as failure:
        error = failure
    result = IndexResult(size or file_size(path), findings, error, [])
    if task.output is None:
        runs = [run._replace(name=f"{task.scratch.name}/{run.name}") for run in sorter.finish()]
        return result._replace(runs=runs)
    if error is None:
        _write(task, task.output, sorter, scratch, result)
    else:
        _list_failures(task, task.output, result.failures(path))
    return result


def _write(task: IndexTask, output: str, sorter: LineSorter, scratch: Scratch, result: IndexResult) -> None:
    """Write the output. It gets its name only after it is recorded and its failures are listed.

    Its name is synced at the end of the run.
    """
    failed = result.failures(task.archive.path)
    with write_atomic(output, sync_name=False) as raw:
        file = Fingerprinted(raw)
        lists = with_header(task.options.line_format, sorted_lists(sorter, scratch))
        write_gzip_lines(lists, cast("IO[bytes]", file), Compressor())
        _list_failures(task, output, failed)
        if task.folder is not None:
            append_made(task.folder, _made(task, task.folder, result.size, file.fingerprint()))
    if task.folder is not None or not failed:
        remove(failures_beside(output))
    scratch.remove()


def _made(task: IndexTask, folder: Path, size: int, fingerprint: str) -> Made:
    name = Path(task.output or "").relative_to(folder).as_posix()
    settings = task.options.settings().digest(task.archive.filename)
    return Made(name, identity(task.archive.path), settings, size, fingerprint)


def _list_failures(task: IndexTask, output: str, failed: Sequence[Failure]) -> None:
    if task.folder is not None:
        list_in(task.folder, failed)
    elif failed:
        list_beside(output, failed)


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
