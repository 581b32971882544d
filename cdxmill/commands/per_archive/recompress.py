"""recompress: archives -> the same records, compressed in another way."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.per_archive.index import forgetting
from cdxmill.commands.per_archive.recompress_one import (
    INDEX,
    RecompressOptions,
    RecompressResult,
    RecompressTask,
    packer_of,
    recompress_one,
)
from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input, check_archives, named_input
from cdxmill.outputs.existing import Rule, check_inputs_stay, plan_outputs
from cdxmill.outputs.names import output_name
from cdxmill.outputs.offset_tables import is_table_of, table_beside
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.lock import hold
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.storage.choose import (
    PathOrUrl,
    check_libraries,
    check_writable,
    exists,
    is_remote,
    join,
    local_path,
    total_size,
)
from cdxmill.storage.local.files import sync_folders
from cdxmill.storage.scratch import temporary_folder

_KEEP = (
    "{}: is not {} of {} that recompress writes; use --replace to write it again, or another output directory"
)


class RecompressSummary(NamedTuple):
    """What `recompress` did. The sizes, in bytes, are those of the archives that were written."""

    files: int
    written: int
    kept: int
    records: int
    before: int
    after: int
    captures: int = 0
    kept_as: str = "up to date"

    def __str__(self) -> str:
        """Return the closing line: records, files, and the saving."""
        kept = f", {self.kept} {self.kept_as}" if self.kept else ""
        none = self.files - self.written
        without = f", {none} without a record that can be read" if none else ""
        captures = f", {count(self.captures, 'capture')} indexed" if self.captures else ""
        text = f"{count(self.records, 'record')} of {count(self.files, 'archive')}{captures}{without}{kept}"
        if not self.before or not self.after:
            return text
        change = 100 * (self.after - self.before) / self.before
        how = f"{abs(change):.1f} % {'larger' if change > 0 else 'smaller'}"
        return f"{text}: {human_bytes(self.before)} before, {human_bytes(self.after)} after ({how})"


def recompress(
    names: Mapping[Input, str], folder: PathOrUrl, options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    """Write each archive again to the file of its name below `folder`, a path or URL.

    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    check_archives(names)
    check_writable(folder)
    packer_of(options)  # for all processes
    is_local = not is_remote(str(folder))
    base = local_path(str(folder)) if is_local else str(folder)
    check_inputs_stay(names, base)
    if not is_local:
        with temporary_folder() as scratch:
            return _run(names, base, Path(scratch), options, failures)
    path = Path(base)
    with hold(path, failures.note), tempfile.TemporaryDirectory(prefix=".scratch-", dir=path) as scratch:
        return _run(names, base, Path(scratch), options, failures)


def _run(
    names: Mapping[Input, str],
    base: str,
    scratch: Path,
    options: RecompressOptions,
    failures: Failures,
) -> RecompressSummary:
    folder = None if is_remote(base) else Path(base)
    outputs = {archive: join(base, name) for archive, name in names.items()}
    archives, kept = plan_outputs(outputs, options.settings(), options.existing, folder)
    beside = {archive: _Beside.of(output) for archive, output in outputs.items()}
    archives += [archive for archive in kept if beside[archive].is_missing(options)]
    if options.existing is not Rule.REPLACE:
        for archive in archives:
            beside[archive].check(archive.filename, names[archive], options)
    tasks = [
        RecompressTask(
            archive,
            outputs[archive],
            beside[archive].index_path if options.index else "",
            beside[archive].table_to_write(options),
            names[archive],
            folder,
            scratch / str(number),
            options,
        )
        for number, archive in enumerate(archives)
    ]
    new = [archive._replace(path=outputs[archive]) for archive in archives]
    with forgetting(folder, [*archives, *new]):
        summary = _run_tasks(tasks, options, failures)
        if folder is not None:
            sync_folders(outputs[archive] for archive in archives)
    kept_as = "skipped" if options.existing is Rule.UPDATE else "up to date"
    return summary._replace(kept=len(outputs) - len(archives), kept_as=kept_as)


class _Beside(NamedTuple):
    """The places of what may stand beside a new archive."""

    index_path: str
    table: str

    @classmethod
    def of(cls, output: str) -> _Beside:
        """Beside a path or URL. The index has the name that `index` gives."""
        folder, slash, name = output.rpartition("/")
        return cls(f"{folder}{slash}{output_name(name)}", table_beside(output))

    def is_missing(self, options: RecompressOptions) -> bool:
        """Whether something is wanted and does not exist."""
        return (options.index and not exists(self.index_path)) or (options.offsets and not exists(self.table))

    def table_to_write(self, options: RecompressOptions) -> str:
        """The table, if it is wanted, or if that of an earlier archive would become wrong; else ""."""
        return self.table if options.offsets or exists(self.table) else ""

    def check(self, old: str, new: str, options: RecompressOptions) -> None:
        """Raise UsageError if what would be written exists, and is not of the archive with the names `old` and `new`."""
        if options.index and exists(self.index_path):
            seen = INDEX.look(self.index_path, named_input(self.index_path, new))
            if not (seen.is_of_archive and seen.has_settings):
                raise UsageError(_KEEP.format(self.index_path, "an index", new))
        if exists(self.table) and not is_table_of(self.table, old, new):
            raise UsageError(_KEEP.format(self.table, "a table of offsets", new))


def _run_tasks(
    tasks: Sequence[RecompressTask], options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    check_libraries(task.archive.path for task in tasks)
    total = total_size(task.archive.path for task in tasks)
    results: list[RecompressResult] = []
    with Progress("recompressing", len(tasks), total, options.quiet) as progress:
        failures.show_on(progress)
        for index, result in run_tasks(recompress_one, tasks, options.processes, progress.tick):
            label = tasks[index].archive.label
            failures.report_listed(label, [_labelled(one, tasks[index]) for one in result.failures])
            for note in result.notes:
                failures.note_one(f"{tasks[index].output}@{note.offset}", note.reason)
            results.append(result._replace(failures=[], notes=[]))
            progress.advance()
        failures.close_notes()
    return _summary(results)


def _labelled(failure: Failure, task: RecompressTask) -> Failure:
    """A failure with the name of the archive in messages."""
    return failure._replace(path=task.archive.label) if failure.path == task.archive.path else failure


def _summary(results: Sequence[RecompressResult]) -> RecompressSummary:
    written = [result for result in results if result.after]
    return RecompressSummary(
        files=len(results),
        written=len(written),
        kept=0,
        records=sum(result.records for result in results),
        before=sum(result.before for result in written),
        after=sum(result.after for result in written),
        captures=sum(result.captures for result in results),
    )
