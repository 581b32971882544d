"""recompress: archives -> the same records, compressed in another way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, NamedTuple

from cdxmill.capture import Damage, Note
from cdxmill.commands.per_archive.task import (
    KEPT_AS,
    ArchiveTask,
    OneOutput,
    OutputDirectory,
    OutputOptions,
    note,
    open_directory,
    outputs_in,
    report,
    run_each,
    showing,
)
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.offset_table import HEADER, row_format
from cdxmill.inputs.named import Input
from cdxmill.messages import count, human_bytes
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import apart, output_name
from cdxmill.outputs.offset_tables import is_table_of, table_beside
from cdxmill.outputs.record import OutputRecord, recorded
from cdxmill.outputs.settings import ArchiveSettings, LineSettings
from cdxmill.outputs.side_files import renewed, retire, retired_of
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import CaptureLines, Findings, read_packed
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.lines.line_lists import write_gzip_lines
from cdxmill.stages.lines.merge_lines import sorted_lists
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.records.pack_contents import (
    GzipPacker,
    Packed,
    Packer,
    ZstPacker,
    group_contents,
    write_contents,
)
from cdxmill.stages.records.read_contents import read_contents
from cdxmill.storage.location import Location, PathOrUrl
from cdxmill.storage.patience import stops
from cdxmill.storage.scratch import Scratch

_CAPTURES = CaptureOptions()
_INDEX = LineSettings(_CAPTURES, "cdxj")
"""The index has the lines that `index` writes without options."""
_ROWS = 10_000
"""Rows of a table of offsets that are compressed together."""
_KEEP = (
    "{}: is not {} of {} that recompress writes; use --replace to write it again, or another output directory"
)


@dataclass(frozen=True, kw_only=True)
class RecompressOptions(OutputOptions):
    """How archives are written again. `dictionary` is the content of the dictionary's file, b"" for none."""

    to: str = "zst"
    level: int = 6
    dictionary: bytes = field(default=b"", repr=False)
    group: bool = False
    max_window: int | None = None
    index: bool = False
    offsets: bool = False

    def settings(self) -> ArchiveSettings:
        """The options that decide how an archive looks."""
        return ArchiveSettings(packer_of(self).head, (self.to, self.level, self.group))


@dataclass(frozen=True)
class RecompressTask(ArchiveTask):
    """An archive to write again, and the places of its index and its table of offsets, None for none.

    Records that are compressed together have neither, and those of an earlier run are removed. Index lines have the
    name `filename`.
    """

    options: RecompressOptions
    filename: str
    index: Location | None
    table: Location | None

    def sides(self) -> Iterator[Location]:
        """The index and the table, those that are wanted."""
        return filter(None, (self.index, self.table))


class RecompressedArchive(NamedTuple):
    """What came of an archive: bytes before and after (0 if nothing was written), records, captures in its index.

    `notes` are about records of the new archive, `old_notes` about what the old one has besides records.
    """

    before: int
    after: int
    records: int
    captures: int
    failures: list[Failure]
    notes: list[Note]
    old_notes: list[Note] = []  # noqa: RUF012 - nobody changes it


class _NothingToWriteError(Exception):
    """The archive has no record that can be written."""


@lru_cache(maxsize=1)
def packer_of(options: RecompressOptions) -> Packer:
    """The packer of a process: its tables are made once."""
    return GzipPacker(options.level) if options.to == "gz" else ZstPacker(options.level, options.dictionary)


def recompress_one(task: RecompressTask) -> RecompressedArchive:
    """Write one archive again. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, or has no record, nothing is written, and an output of an earlier run stays.
    """
    output, error = OneOutput(task), None
    copy = _Copy(task)
    try:
        with _table(task) as add, output.writing(copy.failures) as file:
            copy.run(file, add)
        copy.write_index()
        for side in task.sides():
            renewed(side)
    except _NothingToWriteError:
        pass
    except InputError as failure:
        error = failure
    failures = copy.failures(error)
    output.finish(failures)
    if error is not None:
        return RecompressedArchive(output.size, 0, 0, 0, failures, [])
    found = copy.indexed
    notes = (found.notes, copy.findings.notes)
    return RecompressedArchive(output.size, output.bytes, copy.records, found.captures, failures, *notes)


@contextmanager
def _table(task: RecompressTask) -> Iterator[Callable[[Packed], object]]:
    """A function that adds a record to the table of offsets, if it is wanted. The table gets its name at the end."""
    if task.table is None or task.options.group:
        yield lambda packed: None
        return
    row, rows, compressor = row_format(task.archive.filename, task.filename), [HEADER], Compressor()
    with task.table.write_atomic(sync_name=False) as file:

        def add(packed: Packed) -> None:
            old = packed.content
            if old.line_length:  # else no index of the old archive has a line of it
                rows.append(row % (old.offset, old.line_length, packed.offset, packed.length))
            if len(rows) == _ROWS:
                flush()

        def flush() -> None:
            file.write(compressor.compress(b"".join(rows)))
            rows.clear()

        yield add
        flush()


class _Copy:
    """An archive that is written again: the steps, and what was found."""

    def __init__(self, task: RecompressTask) -> None:
        self._task, self._scratch = task, Scratch(task.scratch)
        self.findings, self.indexed, self.records = Findings(), Findings(), 0
        self._sorter = LineSorter(self._scratch.create, "lines")

    def run(self, file: IO[bytes], add: Callable[[Packed], object]) -> None:
        """Write the archive to `file`. Raises InputError, _NothingToWriteError. `add` gets each record."""
        task = self._task
        packed = self._packed(file, add)
        if task.index is not None and not task.options.group:
            filename = os.fsencode(task.filename)
            captures = make_captures(read_packed(packed, filename, _CAPTURES), filename, _CAPTURES)
            lines = CaptureLines(captures, "cdxj")
            self.indexed = lines.findings
            for some in lines:
                self._sorter.add(some)
        else:
            for _ in packed:
                pass
        if not self.records:
            raise _NothingToWriteError
        for side in task.sides():
            retire(side)  # it is of the archive that is replaced now

    def _packed(self, file: IO[bytes], add: Callable[[Packed], object]) -> Iterator[Packed]:
        task, options = self._task, self._task.options
        with task.open_archive() as read_at:
            contents = read_contents(read_at, self._scratch, task.chunk, options.max_window)
            if options.group:
                contents = group_contents(contents)
            for item in write_contents(contents, packer_of(options), file.write):
                if isinstance(item, Damage | Note):
                    self.findings.add(item)
                else:
                    self.records += item.content.records
                    add(item)
                    yield item

    def write_index(self) -> None:
        """Write the index of the new archive, if it is wanted. It is newer than the archive."""
        task = self._task
        if task.index is None or task.options.group:
            return
        new = Input(task.output, task.filename, task.output.text)
        index = ArchiveTask(new, task.index, task.directory, task.scratch, _INDEX)
        with stops(task.output.text, "read"), OneOutput(index).writing(list) as file:
            write_gzip_lines(sorted_lists(self._sorter, self._scratch.create, self._scratch.reader), file)

    def failures(self, error: InputError | None = None) -> list[Failure]:
        """What was found so far. `error` is why the archive cannot be read."""
        found = self._task.failures_of(self.findings.damage, error)
        if error is None:
            path = self._task.output.text
            found += [Failure(path, one.offset, one.reason, one.hint) for one in self.indexed.damage]
        return found


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


def recompress(
    names: Mapping[Input, str], target: PathOrUrl, options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    """Write each archive again to the file of its name below `target`, a path or URL.

    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    settings = options.settings()  # makes the packer, for all processes
    with open_directory(names, target, failures) as directory:
        outputs, kept, found = directory.plan(names, settings, options.existing)
        all_outputs = outputs_in(directory.place, names)
        beside = _all_beside(names, all_outputs, directory)
        unknown = set(found)
        known = [one for one in kept if all_outputs[one] not in unknown]
        outputs |= {one: all_outputs[one] for one in _incomplete(known, beside, directory, options)}
        if outputs and options.existing is not Rule.REPLACE:
            record = OutputRecord(directory.directory)
            for archive in outputs:
                beside[archive].check(archive.filename, options, record)
        tasks = [
            RecompressTask(
                *fields, options, names[fields[0]], *beside[fields[0]].to_write(fields[0].filename, options)
            )
            for fields in directory.each(outputs, settings)
        ]
        if options.group:
            for place in filter(None, [place for task in tasks for place in (task.index, task.table)]):
                failures.note(
                    f"{place}: note: removed, because records that are compressed together have none"
                )
        results = []
        with (
            directory.writing(outputs),
            showing("recompressing", tasks, options.quiet, failures) as progress,
        ):
            for task, result in run_each(recompress_one, tasks, options.processes, progress):
                report(task.archive, result.failures, failures)
                note(task.archive.label, result.old_notes, failures)
                note(task.output, result.notes, failures)
                results.append(result._replace(failures=[], notes=[], old_notes=[]))
    return _summary(results, len(names) - len(outputs), options)


class _Beside(NamedTuple):
    """A new archive, and what may stand beside it: an index, below the output directory, and a table of offsets.

    `retired` has those of both that a killed run has to write again.
    """

    new: Input
    index_name: str
    index_file: Location
    table: Location
    retired: set[Location]

    def to_write(self, old: str, options: RecompressOptions) -> tuple[Location | None, Location | None]:
        """The index and the table, each if it is wanted or that of an earlier archive would become wrong.

        The archive had the name `old`.
        """
        has_index = options.index or self.index_file in self.retired
        has_index = has_index or (self.index_file.exists() and self._has_own_index())
        has_table = options.offsets or self.table in self.retired
        has_table = has_table or (self.table.exists() and is_table_of(self.table, old, self.new.filename))
        return self.index_file if has_index else None, self.table if has_table else None

    def check(self, old: str, options: RecompressOptions, record: OutputRecord) -> None:
        """Raise UsageError if what would be written exists, and is not of the archive, which had the name `old`."""
        is_wrong = self.index_file.exists() and (
            not self._is_of_this_place(record) if self._has_own_index() else options.index
        )
        if is_wrong:
            raise UsageError(_KEEP.format(self.index_file, "an index", self.new.filename))
        if self.table.exists() and not is_table_of(self.table, old, self.new.filename):
            raise UsageError(_KEEP.format(self.table, "a table of offsets", self.new.filename))

    def _is_of_this_place(self, record: OutputRecord) -> bool:
        """Whether the index is of the archive that stands where the new one will be. The old one may have the same name."""
        row = None if self.index_file in self.retired else record.made_from(self.index_file)
        if row:
            return row.archive == recorded(self.new.location)
        return self.index_file in self.retired or self.new.location.exists()

    def _has_own_index(self) -> bool:
        return all(_INDEX.look(self.index_file, self.new))


def _all_beside(
    names: Mapping[Input, str], outputs: Mapping[Input, Location], directory: OutputDirectory
) -> dict[Input, _Beside]:
    """What may stand beside each output. An index has the name that `index` gives."""
    indexes = apart(
        {one: output_name(name) for one, name in names.items()}, lambda one: f"{names[one]}.cdx.gz"
    )
    places = {one: (directory.place / indexes[one], table_beside(new)) for one, new in outputs.items()}
    retired = retired_of(side for sides in places.values() for side in sides)
    return {
        one: _Beside(Input(new, names[one], new.text), indexes[one], *places[one], retired & set(places[one]))
        for one, new in outputs.items()
    }


def _incomplete(
    kept: Iterable[Input],
    beside: Mapping[Input, _Beside],
    directory: OutputDirectory,
    options: RecompressOptions,
) -> Iterator[Input]:
    """The archives whose outputs could be kept, but whose index or table is wanted, and absent or of another output."""
    indexes = {beside[one].new: beside[one].index_name for one in kept} if options.index else {}
    rule = Rule.MEND if options.existing is Rule.REFUSE else options.existing
    current = set(directory.plan(indexes, _INDEX, rule).kept)
    for one in kept:
        found = beside[one]
        is_without = (options.index and found.new not in current) or (
            options.offsets and not found.table.exists()
        )
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
