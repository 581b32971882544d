"""index: archives -> one CDX file each, or one sorted file or stream."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from cdxmill.commands.per_archive.index_one import (
    IndexOptions,
    IndexResult,
    IndexTask,
    index_one,
    with_header,
)
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.formats.own_records import BESIDE, FAILURES, OUTPUTS
from cdxmill.inputs.named import Input, check_archives
from cdxmill.outputs.existing import Rule, plan_outputs
from cdxmill.outputs.failure_list import forget
from cdxmill.outputs.names import identity
from cdxmill.outputs.record import end_last_row
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.lines.merge_runs import merge_runs
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.stages.lines.write_lines import write_gzip_lines
from cdxmill.storage.choose import (
    PathOrUrl,
    check_absent,
    check_libraries,
    check_writable,
    is_remote,
    join,
    local_path,
    total_size,
    write_atomic,
)
from cdxmill.storage.local.files import sync_folders
from cdxmill.storage.scratch import Scratch, temporary_folder


class IndexSummary(NamedTuple):
    """What `index` did. `kept` is the number of outputs that were kept, `kept_as` why. `bytes` is the size of the archives."""

    files: int
    kept: int
    captures: int
    bytes: int
    kept_as: str = "up to date"

    def report(self, failures: Failures, output: str) -> str:
        """Return the closing lines of an index in the folder `output`, a path or URL; "" if it is one file or stream."""
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
    if is_remote(output):
        return f", listed in {join(output, f'_...{BESIDE}')} beside each output"
    return f", listed in {join(local_path(output), FAILURES)}"


def index_to_folder(
    names: Mapping[Input, str], folder: PathOrUrl, options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index each archive to the file of its name below `folder`, a path or URL.

    Failures are reported and listed: in a file in the folder, or, if it is remote, in files beside the outputs.
    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    check_archives(names)
    check_writable(folder)
    if is_remote(str(folder)):
        outputs = {archive: join(folder, name) for archive, name in names.items()}
        with temporary_folder() as scratch:
            return _index_to(outputs, None, scratch, options, failures)
    path = Path(local_path(str(folder)))
    outputs = {archive: str(path / name) for archive, name in names.items()}
    with hold(path, failures.note), tempfile.TemporaryDirectory(prefix=".scratch-", dir=path) as scratch:
        return _index_to(outputs, path, scratch, options, failures)


def _index_to(
    outputs: Mapping[Input, str],
    folder: Path | None,
    scratch: str,
    options: IndexOptions,
    failures: Failures,
) -> IndexSummary:
    """Index each archive to its output; without the local folder `folder`, failures are listed beside the outputs."""
    archives, kept = plan_outputs(outputs, options.settings(), options.existing, folder)
    tasks = [
        IndexTask(archive, outputs[archive], folder, Path(scratch) / str(number), options)
        for number, archive in enumerate(archives)
    ]
    with forgetting(folder, archives):
        summary, _ = _run(tasks, options, failures)
        if folder is not None:
            sync_folders(outputs[archive] for archive in archives)
    if options.existing is Rule.UPDATE:
        summary = summary._replace(kept_as="skipped")
    return summary._replace(kept=len(kept))


@contextmanager
def forgetting(folder: Path | None, archives: Sequence[Input]) -> Iterator[None]:
    """Index `archives` to a local folder: afterwards, their failures in earlier runs are no longer listed."""
    if folder is None:
        yield
        return
    listed = folder / FAILURES
    for path in (listed, folder / OUTPUTS):
        end_last_row(path)
    size = listed.stat().st_size if listed.exists() else 0
    yield
    forget(folder, size, {identity(archive.path) for archive in archives})


def index_to_stream(
    archives: Sequence[Input], out: IO[bytes], options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index all archives to one sorted stream of lines. Raises UsageError if there are none."""
    with _index_together(archives, options, failures) as (summary, lists):
        for lines in lists:
            out.write(text_of(lines))
    return summary


def index_to_file(
    archives: Sequence[Input], path: str, options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index all archives to one sorted file at a path or URL. It is gzipped if its name ends in `.gz`.

    Raises UsageError if there are no archives, or if the file exists and `options` do not replace it. Raises
    InputError if there are failures and no line: then no file is written.
    """
    check_writable(path)
    if options.existing is not Rule.REPLACE:
        check_absent(path)
    with _index_together(archives, options, failures) as (summary, lists):
        if failures.count and not summary.captures:
            raise InputError(path, "was not written, because no archive gave a line")
        with write_atomic(path) as file:
            if path.lower().endswith(".gz"):
                write_gzip_lines(lists, file, Compressor())
            else:
                for lines in lists:
                    file.write(text_of(lines))
    return summary


@contextmanager
def _index_together(
    archives: Sequence[Input], options: IndexOptions, failures: Failures
) -> Iterator[tuple[IndexSummary, Iterator[list[bytes]]]]:
    """Index all archives. Yields the summary, and their lines: sorted, distinct, after the header of their format."""
    check_archives(archives)
    with temporary_folder() as folder:
        tasks = [
            IndexTask(archive, None, None, Path(folder) / str(number), options)
            for number, archive in enumerate(archives)
        ]
        summary, runs = _run(tasks, options, failures)
        scratch = Scratch(Path(folder))
        merged = merge_runs(runs, scratch.create, scratch.reader)
        yield summary, with_header(options.line_format, merged)


def _run(
    tasks: Sequence[IndexTask], options: IndexOptions, failures: Failures
) -> tuple[IndexSummary, list[Run]]:
    check_libraries(task.archive.path for task in tasks)
    total = total_size(task.archive.path for task in tasks)
    runs: list[Run] = []
    captures = done = 0
    with _without_collecting(), Progress("indexing", len(tasks), total, options.quiet) as progress:
        failures.show_on(progress)
        for index, result in options.run(index_one, tasks, options.processes, progress.tick):
            _report(tasks[index], result, failures)
            captures += result.findings.captures
            done += result.size
            runs += result.runs
            progress.advance()
        failures.close_notes()
    return IndexSummary(files=len(tasks), kept=0, captures=captures, bytes=done), runs


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Keep the garbage collector from scanning all modules again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _report(task: IndexTask, result: IndexResult, failures: Failures) -> None:
    label = task.archive.label
    found = sorted(
        result.failures(label), key=lambda failure: failure.offset is not None
    )  # the whole file first
    if task.output is None:  # this is the only list of them
        for failure in found:
            failures.report(failure)
    else:
        failures.report_listed(label, found)
    for note in result.findings.notes:
        failures.note_one(f"{label}@{note.offset}", note.reason)
