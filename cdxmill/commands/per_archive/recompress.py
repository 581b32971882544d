"""recompress: archives -> the same records, compressed in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cdxmill.commands.per_archive.recompress_one import (
    INDEX,
    RecompressOptions,
    RecompressResult,
    RecompressTask,
    packer_of,
    recompress_one,
)
from cdxmill.commands.per_archive.task import note, open_directory, outputs_in, report, run_each, showing
from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input, check_archives, named_input
from cdxmill.outputs.existing import Rule, check_inputs_stay
from cdxmill.outputs.names import output_name
from cdxmill.outputs.offset_tables import is_table_of, table_beside
from cdxmill.running.failures import Failures
from cdxmill.running.quantities import count, human_bytes
from cdxmill.storage.location import Location, PathOrUrl, locate

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
    names: Mapping[Input, str], target: PathOrUrl, options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    """Write each archive again to the file of its name below `target`, a path or URL.

    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    check_archives(names)
    place = locate(target)
    place.check_writable()
    packer_of(options)  # for all processes
    check_inputs_stay(outputs_in(place, names))
    with open_directory(place, failures) as directory:
        outputs, kept = directory.plan(names, options.settings(), options.existing)
        beside = {
            archive: _Beside.of(output) for archive, output in outputs_in(directory.place, names).items()
        }
        outputs |= {
            archive: beside[archive].output for archive in kept if beside[archive].is_missing(options)
        }
        if options.existing is not Rule.REPLACE:
            for archive in outputs:
                beside[archive].check(archive.filename, names[archive], options)
        tasks = [
            RecompressTask(
                archive,
                output,
                directory.directory,
                directory.scratch / str(number),
                options.settings(),
                options,
                names[archive],
                beside[archive].index_file if options.index else None,
                beside[archive].table_to_write(options),
            )
            for number, (archive, output) in enumerate(outputs.items())
        ]
        with directory.writing(outputs):
            summary = _run_tasks(tasks, options, failures)
    kept_as = "skipped" if options.existing is Rule.UPDATE else "up to date"
    return summary._replace(kept=len(names) - len(outputs), kept_as=kept_as)


class _Beside(NamedTuple):
    """A new archive, and the places of what may stand beside it."""

    output: Location
    index_file: Location
    table: Location

    @classmethod
    def of(cls, output: Location) -> _Beside:
        """Beside an output. The index has the name that `index` gives."""
        return cls(output, output.with_name(output_name(output.name)), table_beside(output))

    def is_missing(self, options: RecompressOptions) -> bool:
        """Whether something is wanted and does not exist."""
        return (options.index and not self.index_file.exists()) or (
            options.offsets and not self.table.exists()
        )

    def table_to_write(self, options: RecompressOptions) -> Location | None:
        """The table, if it is wanted, or if that of an earlier archive would become wrong."""
        return self.table if options.offsets or self.table.exists() else None

    def check(self, old: str, new: str, options: RecompressOptions) -> None:
        """Raise UsageError if what would be written exists, and is not of the archive with the names `old` and `new`."""
        if options.index and self.index_file.exists():
            seen = INDEX.look(self.index_file, named_input(self.index_file, new))
            if not (seen.is_of_archive and seen.has_settings):
                raise UsageError(_KEEP.format(self.index_file, "an index", new))
        if self.table.exists() and not is_table_of(self.table, old, new):
            raise UsageError(_KEEP.format(self.table, "a table of offsets", new))


def _run_tasks(
    tasks: Sequence[RecompressTask], options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    results: list[RecompressResult] = []
    with showing("recompressing", tasks, options.quiet, failures) as progress:
        for task, result in run_each(recompress_one, tasks, options.processes, progress):
            report(task.archive, result.failures, failures)
            note(task.output, result.notes, failures)
            results.append(result._replace(failures=[], notes=[]))
    return _summary(results)


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
