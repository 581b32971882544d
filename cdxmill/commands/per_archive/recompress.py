"""recompress: archives -> the same records, compressed in another way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cdxmill.commands.per_archive.beside import NewBeside, all_beside
from cdxmill.commands.per_archive.check_proofs import ProofTask, check_proofs
from cdxmill.commands.per_archive.recompress_one import (
    INDEX,
    RecompressedArchive,
    RecompressOptions,
    RecompressTask,
    recompress_one,
)
from cdxmill.commands.per_archive.task import (
    KEPT_AS,
    OutputDirectory,
    note,
    open_directory,
    outputs_in,
    report,
    run_each,
    showing,
)
from cdxmill.inputs.named import Input
from cdxmill.messages import count, human_bytes
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.record import OutputRecord
from cdxmill.running.failures import Failures
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.storage.location import Location, PathOrUrl


class RecompressSummary(NamedTuple):
    """What `recompress` did. The sizes, in bytes, are those of the archives that were written."""

    archives: int
    written: int
    kept: int
    records: int
    before: int
    after: int
    captures: int
    kept_as: str

    def __str__(self) -> str:
        """Return the closing line: records, files, and the saving."""
        kept = f", {self.kept} {self.kept_as}" if self.kept else ""
        none = self.archives - self.written
        without = f", {none} without a record that can be read" if none else ""
        captures = f", {count(self.captures, 'capture')} indexed" if self.captures else ""
        text = (
            f"{count(self.records, 'record')} of {count(self.archives, 'archive')}{captures}{without}{kept}"
        )
        if not self.before or not self.after:
            return text
        change = 100 * (self.after - self.before) / self.before
        how = f"{abs(change):.1f} % {'larger' if change > 0 else 'smaller'}"
        return f"{text}: {human_bytes(self.before)} before, {human_bytes(self.after)} after ({how})"


class Recompression:
    """A run of `recompress` while its output directory is open: what is to be done, and what came of it."""

    def __init__(
        self, tasks: Sequence[RecompressTask], kept: int, options: RecompressOptions, failures: Failures
    ) -> None:
        self.tasks = tasks
        self._kept, self._options, self._failures = kept, options, failures
        self._results: list[RecompressedArchive] = []

    def add(self, task: RecompressTask, result: RecompressedArchive) -> None:
        """Report what came of an archive."""
        failures = self._failures
        report(task.archive, result.failures, failures)
        note(task.archive.label, result.old_notes, failures)
        note(task.output, result.notes, failures)
        self._results.append(result._replace(failures=[], notes=[], old_notes=[]))

    def summary(self) -> RecompressSummary:
        """Print what the user should know about all archives together, and sum them up."""
        for text in () if self._options.quiet else _notes(self._results, self._options):
            self._failures.note(text)
        return _summary(self._results, self._kept, self._options)


@contextmanager
def recompression(
    names: Mapping[Input, str], target: PathOrUrl, options: RecompressOptions, failures: Failures
) -> Iterator[Recompression]:
    """Open the directory `target`, a path or URL, to write each archive again to the file of its name.

    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    settings = options.settings()  # makes the packer, for all processes
    with open_directory(names, target, failures) as directory:
        outputs, kept, found, *_ = directory.plan(names, settings, options.existing)
        all_outputs = outputs_in(directory.place, names)
        beside = all_beside(names, all_outputs, directory.place)
        unknown = set(found)
        known = [one for one in kept if all_outputs[one] not in unknown]
        outputs |= {one: all_outputs[one] for one in _incomplete(known, beside, directory, options)}
        if options.existing is Rule.REFUSE:
            proven = [ProofTask(one, all_outputs[one]) for one in known if one not in outputs]
            check_proofs(proven, options.processes, options.quiet)
        _check_beside(outputs, beside, directory, options)
        tasks = _tasks(outputs, beside, directory, options)
        for text in _removed(tasks) if options.group else ():
            failures.note(text)
        with directory.writing(outputs):
            yield Recompression(tasks, len(names) - len(outputs), options, failures)


def recompress(
    names: Mapping[Input, str],
    target: PathOrUrl,
    options: RecompressOptions,
    failures: Failures,
    run: RunTasks | None = None,
) -> RecompressSummary:
    """Write each archive again. `run` is another engine. Raises as `recompression`."""
    with (
        recompression(names, target, options, failures) as made,
        showing("recompressing", made.tasks, options.quiet, failures) as progress,
    ):
        for task, result in run_each(
            recompress_one, made.tasks, options.processes, progress, run or run_tasks
        ):
            made.add(task, result)
    return made.summary()


def _check_beside(
    outputs: Mapping[Input, Location],
    beside: Mapping[Input, NewBeside],
    directory: OutputDirectory,
    options: RecompressOptions,
) -> None:
    """Raise UsageError if a file beside an output exists that may not be replaced."""
    if outputs and options.existing is not Rule.REPLACE:
        record = OutputRecord(directory.directory)
        for archive in outputs:
            beside[archive].check(archive.filename, options, record)


def _tasks(
    outputs: Mapping[Input, Location],
    beside: Mapping[Input, NewBeside],
    directory: OutputDirectory,
    options: RecompressOptions,
) -> list[RecompressTask]:
    tasks = []
    for fields in directory.each(outputs, options.settings()):
        archive = fields[0]
        found = beside[archive]
        sides = found.to_write(archive.filename, options)
        tasks.append(RecompressTask(*fields, options, found.new.filename, found.proof, *sides))
    return tasks


def _removed(tasks: Sequence[RecompressTask]) -> Iterator[str]:
    for task in tasks:
        for place in filter(None, (task.index, task.table)):
            yield f"{place}: note: removed, because records that are compressed together have none"


def _notes(results: Sequence[RecompressedArchive], options: RecompressOptions) -> Iterator[str]:
    """What the user should know about all archives together."""
    if number := sum(result.lacks_dictionary for result in results):
        yield f"note: {count(number, 'archive')} got no dictionary, because it takes more bytes than it saves there"
    if number := sum(result.other_name for result in results):
        yield (
            f"note: the first record of {count(number, 'archive')} still has the old file name (WARC-Filename);"
            " the proofs beside the archives have both names"
        )
    if options.any_digest and (number := sum(result.wrong_digests for result in results)):
        yield f"note: {count(number, 'record')} with another digest in the header than the bytes have (--any-digest)"


def _incomplete(
    kept: Iterable[Input],
    beside: Mapping[Input, NewBeside],
    directory: OutputDirectory,
    options: RecompressOptions,
) -> Iterator[Input]:
    """The archives whose outputs could be kept, but that lack their proof, or an index or table that is wanted.

    One that exists, but is of another output, is lacking, too.
    """
    record = OutputRecord(directory.directory)
    indexes = {beside[one].new: beside[one].index_name for one in kept} if options.index else {}
    rule = Rule.MEND if options.existing is Rule.REFUSE else options.existing
    current = set(directory.plan(indexes, INDEX, rule).kept)
    for one in kept:
        found = beside[one]
        is_without = (options.index and found.new not in current) or (
            options.offsets and not found.table.exists()
        )
        is_without = is_without or (rule is not Rule.UPDATE and not found.is_proven(record))
        if is_without or found.retired:
            yield one


def _summary(
    results: Sequence[RecompressedArchive], kept: int, options: RecompressOptions
) -> RecompressSummary:
    written = [result for result in results if result.after]
    return RecompressSummary(
        archives=len(results),
        written=len(written),
        kept=kept,
        records=sum(result.records for result in results),
        before=sum(result.before for result in written),
        after=sum(result.after for result in written),
        captures=sum(result.captures for result in results),
        kept_as=KEPT_AS[options.existing],
    )
