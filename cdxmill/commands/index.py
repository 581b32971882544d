"""index: archives -> one CDX file each, or one sorted stream."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.zipnum_block import Compressor
from cdxmill.inputs.named import Input
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.lock import hold
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import LINE_FORMATS, ArchiveIndexer, Findings
from cdxmill.stages.lines.line_lists import distinct, text_of
from cdxmill.stages.lines.merge_runs import merge_runs
from cdxmill.stages.lines.sort_lines import LineSorter, sort_captures
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.stages.lines.write_lines import write_gzip_lines
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK
from cdxmill.storage.choose import (
    PathOrUrl,
    ask_all,
    check_libraries,
    check_writable,
    exists,
    file_size,
    is_newer,
    is_remote,
    join,
    local_path,
    remove,
    total_size,
    write_atomic,
)
from cdxmill.storage.local import append_line, format_line
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.unchanged import open_unchanged

FAILURES = "failures.tsv"


BESIDE = ".failures"
"""Ending of the list of failures beside a remote output: several machines cannot append to one file there."""


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """How archives are indexed."""

    captures: CaptureOptions = field(default_factory=CaptureOptions)
    line_format: str = "cdxj"
    processes: int = 1
    skip_existing: bool = False
    quiet: bool = False


class IndexSummary(NamedTuple):
    """What `index` did. `bytes` is the size of the archives."""

    files: int
    skipped: int
    captures: int
    bytes: int

    def report(self, failures: Failures, output: str) -> str:
        """Return the closing lines of an index in `output`: a path, a URL, or - for stdout."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        what = f"{count(self.captures, 'capture')} of {count(self.files, 'archive')}"
        lines = [f"{what} ({human_bytes(self.bytes)}){skipped}"]
        if self.files + self.skipped == 0:
            lines.insert(0, "no archives found; nothing to index")
        if failures.count:
            found = f"{count(failures.count, 'failure')} in {count(len(failures.inputs), 'input')}"
            rest = "; the rest is indexed" if self.captures else ""
            lines.append(f"{found}{_listed_in(output)}{rest}")
        return "\n".join(lines)


def _listed_in(output: str) -> str:
    if output == "-":
        return ""
    if is_remote(output):
        return f", listed in {join(output, f'_...{BESIDE}')} beside each output"
    return f", listed in {join(local_path(output), FAILURES)}"


class IndexTask(NamedTuple):
    """An archive to index to the path or URL `output`; without one, its runs stay in `scratch`.

    Its failures are appended to the list `failures`; without one, see `failures_beside`.
    """

    archive: Input
    output: str | None
    failures: Path | None
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


def index_to_folder(
    names: Mapping[Input, str], folder: PathOrUrl, options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index each archive to the file of its name below `folder`, a path or URL.

    Failures are reported and listed: in a file in the folder, or, if it is remote, in files beside the outputs.
    Raises UsageError if such URLs cannot be written to.
    """
    check_writable(folder)
    if is_remote(str(folder)):
        outputs = {archive: join(folder, name) for archive, name in names.items()}
        with tempfile.TemporaryDirectory(prefix="cdxmill-") as scratch:
            return _index_to(outputs, None, scratch, options, failures)
    path = Path(local_path(str(folder)))
    outputs = {archive: str(path / name) for archive, name in names.items()}
    with hold(path, failures.note):
        forget_failed(path / FAILURES, names, path, options.skip_existing)
        with tempfile.TemporaryDirectory(prefix=".scratch-", dir=path) as scratch:
            return _index_to(outputs, path / FAILURES, scratch, options, failures)


def _index_to(
    outputs: Mapping[Input, str],
    failed: Path | None,
    scratch: str,
    options: IndexOptions,
    failures: Failures,
) -> IndexSummary:
    """Index each archive to its output; without the list `failed`, failures are listed beside the outputs."""
    archives = list(outputs)
    if options.skip_existing:
        sources = {output: archive.path for archive, output in outputs.items()}
        is_done = is_finished if failed is None else is_newer
        done = ask_all(lambda output: is_done(output, sources[output]), sources)
        archives = [archive for archive, skip in zip(archives, done, strict=True) if not skip]
    tasks = [
        IndexTask(archive, outputs[archive], failed, Path(scratch) / str(number), options)
        for number, archive in enumerate(archives)
    ]
    summary, _ = _run(tasks, options, failures)
    return summary._replace(skipped=len(outputs) - len(tasks))


def is_finished(output: PathOrUrl, archive: str) -> bool:
    """Whether the index of `archive` exists at the URL `output`, is newer, and has no list of failures beside it.

    For local outputs see `forget_failed`. Raises InputError if the storage cannot tell.
    """
    return is_newer(output, archive) and not exists(failures_beside(output))


def failures_beside(output: PathOrUrl) -> str:
    """The URL of the list of failures beside the output of an archive. Hadoop ignores files with such names.

    >>> failures_beside("s3://bucket/x/a.cdx.gz")
    's3://bucket/x/_a.cdx.gz.failures'
    """
    folder, slash, name = str(output).rpartition("/")
    return f"{folder}{slash}_{name}{BESIDE}"


def index_to_stream(
    archives: Sequence[Input], out: IO[bytes], options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index all archives to one sorted stream of lines."""
    with tempfile.TemporaryDirectory(prefix="cdxmill-") as folder:
        tasks = [
            IndexTask(archive, None, None, Path(folder) / str(number), options)
            for number, archive in enumerate(archives)
        ]
        summary, runs = _run(tasks, options, failures)
        scratch = Scratch(Path(folder))
        merged = merge_runs(runs, scratch.create, scratch.reader)
        for lines in _with_header(options.line_format, merged):
            out.write(text_of(lines))
    return summary


def forget_failed(record: Path, names: Mapping[Input, str], folder: Path, keep_others: bool) -> None:
    """Delete the list of failures; with `keep_others`, also the outputs of the archives in it, to be indexed again."""
    if keep_others and record.exists():
        failed = {line.split("\t")[0] for line in record.read_text("utf-8", "surrogateescape").splitlines()}
        for archive, name in names.items():
            if archive.path in failed:
                (folder / name).unlink(missing_ok=True)
    record.unlink(missing_ok=True)


def _run(
    tasks: Sequence[IndexTask], options: IndexOptions, failures: Failures
) -> tuple[IndexSummary, list[Run]]:
    check_libraries(task.archive.path for task in tasks)
    total = total_size(task.archive.path for task in tasks)
    runs: list[Run] = []
    captures = done = 0
    with _without_collecting(), Progress("indexing", len(tasks), total, options.quiet) as progress:
        failures.show_on(progress)
        for index, result in run_tasks(index_one, tasks, options.processes, progress.tick):
            _report(tasks[index].archive, result, failures)
            captures += result.findings.captures
            done += result.size
            runs += result.runs
            progress.advance()
    return IndexSummary(files=len(tasks), skipped=0, captures=captures, bytes=done), runs


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Keep the garbage collector from scanning all modules again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _report(archive: Input, result: IndexResult, failures: Failures) -> None:
    found = result.failures(archive.label)
    whole_file_first = sorted(found, key=lambda failure: failure.offset is not None)
    for failure in whole_file_first:
        failures.report(failure)
    for note in result.findings.notes:
        failures.note(f"{archive.label}@{note.offset}: note: {note.reason}")


def index_one(task: IndexTask) -> IndexResult:
    """Index one archive. Its failures are in the result; they are listed before its output appears."""
    scratch = Scratch(task.scratch)
    sorter = LineSorter(scratch.create, "lines")
    error = None
    findings = Findings()
    try:
        with open_unchanged(task.archive.path) as read_at:
            filename = os.fsencode(task.archive.filename)
            chunk = CHUNK if is_remote(task.archive.path) else LOCAL_CHUNK
            options = task.options
            indexer = ArchiveIndexer(counted(read_at), filename, options.captures, options.line_format, chunk)
            findings = indexer.findings
            for lines in indexer:
                sorter.add(lines)
    except InputError as failure:
        error = failure
    result = IndexResult(file_size(task.archive.path), findings, error, [])
    if task.output is None:
        runs = [run._replace(name=f"{task.scratch.name}/{run.name}") for run in sorter.finish()]
        return result._replace(runs=runs)
    failed = result.failures(task.archive.path)
    if error is None:
        _write(task, task.output, sorter, scratch, failed)
    else:
        remove(task.output)
        _list_failures(task, task.output, failed[-1:])
    return result


def _write(
    task: IndexTask, output: str, sorter: LineSorter, scratch: Scratch, failed: Sequence[Failure]
) -> None:
    """Write the output. It gets its name only after its failures are listed."""
    with write_atomic(output) as file:
        lists = _with_header(task.options.line_format, _sorted(sorter, scratch))
        write_gzip_lines(lists, file, Compressor())
        _list_failures(task, output, failed)
    if task.failures is None and not failed:
        remove(failures_beside(output))
    scratch.remove()


def _list_failures(task: IndexTask, output: str, failed: Sequence[Failure]) -> None:
    """Write the failures to their list, or to a file beside the output (docs/formats/failures.md)."""
    rows = [[one.path, "" if one.offset is None else str(one.offset), one.reason, one.hint] for one in failed]
    if task.failures is not None:
        for row in rows:
            append_line(task.failures, row)
    elif rows:
        with write_atomic(failures_beside(output)) as file:
            file.writelines(map(format_line, rows))


def _sorted(sorter: LineSorter, scratch: Scratch) -> Iterator[list[bytes]]:
    if sorter.runs:
        return merge_runs(sorter.finish(), scratch.create, scratch.reader)
    lines = distinct(sort_captures(sorter.take()))
    return iter((lines,) if lines else ())


def _with_header(line_format: str, lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    header = LINE_FORMATS[line_format][1]
    if header:
        yield [header]
    yield from lists
