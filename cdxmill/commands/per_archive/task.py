"""One archive in, one output out: what index, recompress, reindex and scan have in common.

A command gives the tasks, and what its task does with the records; here is all else: the directory of the outputs and its
lock, which outputs have to be written, the progress, the report; and for one archive, how its output is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, TypeVar, cast

from cdxmill.capture import Damage, Note
from cdxmill.errors import InputError, RefusedError, StoppedError
from cdxmill.formats.own_records import TABLE
from cdxmill.inputs.named import Input, check_archives
from cdxmill.messages import say
from cdxmill.outputs.existing import OutputSettings, PlannedOutputs, Rule, plan_outputs
from cdxmill.outputs.names import check_archives_stay, identity
from cdxmill.outputs.record import (
    OutputRow,
    Summed,
    append_made,
    check_own_records,
    failures_beside,
    forgetting,
    keep_apart,
    list_beside,
    list_in,
    recorded,
    state_of,
)
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.lock import hold
from cdxmill.running.processes import RunTasks, counted, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.window import ReadAt, chunk_of
from cdxmill.storage import hosts
from cdxmill.storage.local import sync_directories
from cdxmill.storage.location import Location, PathOrUrl, locate, total_size
from cdxmill.storage.patience import stops
from cdxmill.storage.reading import open_unchanged, sha256_of
from cdxmill.storage.scratch import delete_tree, hidden_directory, temporary_directory

KEPT_AS = {rule: "skipped" if rule is Rule.UPDATE else "up to date" for rule in Rule}
"""What a summary says of outputs that were kept."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How a command that makes an output of each archive runs, and what happens to outputs that exist."""

    processes: int = 1
    existing: Rule = Rule.REFUSE
    quiet: bool = False


@dataclass(frozen=True)
class ArchiveTask:
    """An archive, and the output to make of it.

    An output in the local directory `directory` is recorded there, and failures are listed there. Without one, they are
    listed beside the output. `scratch` is a directory for temporary files, `settings` decides how the output looks.
    """

    archive: Input
    output: Location
    directory: Path | None
    scratch: Path
    settings: OutputSettings

    @property
    def chunk(self) -> int:
        """Bytes per read of the archive."""
        return chunk_of(self.archive.location.is_remote)

    @contextmanager
    def open_archive(self) -> Iterator[ReadAt]:
        """Open the archive. Raises InputError, at the end if it changed while it was read."""
        with open_unchanged(self.archive.location) as read_at:
            yield counted(read_at)

    def failures_of(self, damage: Sequence[Damage], error: InputError | None = None) -> list[Failure]:
        """The failures of the archive: by offset, and last that of the file as a whole."""
        path = self.archive.path
        found = [Failure(path, one.offset, one.reason, one.hint) for one in damage]
        if error is not None:
            found.append(Failure.from_error(error, path))
        return found

    def list_failures(self, failed: Sequence[Failure]) -> None:
        """Add failures to the list."""
        if self.directory is not None:
            list_in(self.directory, failed)
        elif failed:
            list_beside(self.output, failed)


class OneOutput:
    """The output of a task while it is made. Make it before the archive is read, and call `finish` in the end."""

    def __init__(self, task: ArchiveTask) -> None:
        self._task = task
        self._error: InputError | None = None
        found = None
        try:
            found = task.archive.location.status()  # if it changes from now on, it differs from the record
        except InputError as error:
            self._error = error
            if isinstance(
                error, RefusedError
            ):  # others ask for files that may be missing; S3 refuses those, too
                url = task.archive.location.text
                hosts.refused(hosts.host_of(url), url, 403)
        self._state, self.size = state_of(found), 0 if found is None else found.size
        self.is_written, self.bytes = False, 0

    def check(self) -> None:
        """Raise InputError if the storage of the archive gave no answer. So it is not waited for again."""
        if self._error is not None:
            raise self._error

    @contextmanager
    def writing(
        self, failures: Callable[[], Sequence[Failure]], proof: Callable[[Summed], object] | None = None
    ) -> Iterator[IO[bytes]]:
        """Write the output. It gets its name only after its failures are listed, it is recorded, and `proof` was called.

        With `proof`, the output is read back: from the disk before it gets its name, or after it was uploaded.

        Its name is synced at the end of the run. An exception leaves an output of an earlier run as it is. Raises as `check`.
        """
        self.check()
        task, made = self._task, list[OutputRow]()
        with task.output.write_atomic(sync_name=False, stamp=lambda: made[0].stamp()) as raw:
            file = Summed(raw)
            yield cast("IO[bytes]", file)
            self.bytes = file.size
            task.list_failures(failures())
            if proof is not None:
                self._check_written(file.is_on_disk)
                proof(file)
            made.append(self._row(file))
            if task.directory is not None:
                append_made(task.directory, *made)
        if proof is not None and task.output.is_remote:
            self._check_written(lambda: sha256_of(task.output) == made[0].sha256)
        self.is_written = True

    def _check_written(self, is_same: Callable[[], bool]) -> None:
        """Raise StoppedError if the output reads back with other bytes than were written."""
        place = self._task.output.text
        with stops(place, "read"):
            if not is_same():
                raise StoppedError(
                    f"{place}: has other bytes than were written; check the disk and the memory"
                )

    def _row(self, file: Summed) -> OutputRow:
        archive, directory = self._task.archive, self._task.directory
        name, time = "", 0
        if directory is not None:
            name, time = Path(self._task.output.local).relative_to(directory).as_posix(), file.time()
        settings = self._task.settings.digest(archive.filename)
        return OutputRow(
            name, recorded(archive.location), settings, self._state, file.size, file.sha256(), time
        )

    def finish(self, failures: Sequence[Failure]) -> None:
        """Without an output, list the failures; else delete what an earlier run listed beside it."""
        if not self.is_written:
            self._task.list_failures(failures)
        elif self._task.directory is not None or not failures:
            failures_beside(self._task.output).remove()
        self.discard()

    def discard(self) -> None:
        """Delete the temporary files."""
        delete_tree(self._task.scratch)


Settings = TypeVar("Settings", bound=OutputSettings)


class OutputDirectory(NamedTuple):
    """Where the outputs go. `directory` is the local directory, None if it is remote; `scratch` is for temporary files.

    `note` gets what the user should know.
    """

    place: Location
    directory: Path | None
    scratch: Path
    note: Callable[[str], None] = say

    def plan(self, names: Mapping[Input, str], settings: OutputSettings, rule: Rule) -> PlannedOutputs:
        """Which archives have to be read to write the outputs of these names. Raises UsageError, StoppedError.

        Outputs that are kept although other options were given, or nothing tells what they were made from, are reported.
        """
        try:
            planned = plan_outputs(outputs_in(self.place, names), settings, rule, self.directory)
        except InputError as error:  # the storage of the outputs does not answer
            raise StoppedError(str(error)) from None
        for note in planned.notes:
            self.note(note)
        return planned

    def each(
        self, outputs: Mapping[Input, Location], settings: Settings
    ) -> Iterator[tuple[Input, Location, Path | None, Path, Settings]]:
        """The fields of an ArchiveTask for each output."""
        for number, (archive, output) in enumerate(outputs.items()):
            yield archive, output, self.directory, self.scratch / str(number), settings

    @contextmanager
    def writing(self, outputs: Mapping[Input, Location]) -> Iterator[None]:
        """Write these outputs. Afterwards their names are on the disk, and failures of earlier runs are forgotten."""
        read = {identity(archive.location) for archive in outputs}
        with forgetting(self.directory, read | {identity(output) for output in outputs.values()}):
            yield
            if self.directory is not None:
                sync_directories(output.local for output in outputs.values())


def outputs_in(place: Location, names: Mapping[Input, str]) -> dict[Input, Location]:
    """The output of each archive: the file of its name below a directory."""
    return {archive: place / name for archive, name in names.items()}


def checked_place(names: Mapping[Input, str], target: PathOrUrl) -> Location:
    """The directory for outputs of these names.

    Raises UsageError if there are no archives, if cdxmill cannot write to such URLs, or if an output would replace an archive.
    """
    check_archives(names)
    place = locate(target)
    place.check_writable()
    if place.directory is not None:
        check_own_records(place.directory)
    check_archives_stay(outputs_in(place, names).values(), names)
    return place


@contextmanager
def open_directory(
    names: Mapping[Input, str], target: PathOrUrl, failures: Failures
) -> Iterator[OutputDirectory]:
    """Open a directory to write outputs of these names to. A local one is created. No other run may write to it meanwhile.

    Raises UsageError as `checked_place`; nothing is changed then.
    """
    place = checked_place(names, target)
    directory = place.directory
    if directory is None:
        with hold(place, failures.note), temporary_directory() as scratch:
            yield OutputDirectory(place, None, Path(scratch), failures.note)
        return
    with hold(directory, failures.note), hidden_directory(directory) as scratch:
        if any(name.endswith(TABLE) for name in names.values()):
            keep_apart(directory)
        yield OutputDirectory(Location(str(directory)), directory, scratch, failures.note)


@contextmanager
def showing(doing: str, tasks: Sequence[ArchiveTask], quiet: bool, failures: Failures) -> Iterator[Progress]:
    """Show the progress of tasks. Raises UsageError if a library that is needed to read an archive is not installed."""
    archives = [task.archive.location for task in tasks]
    for archive in archives:
        archive.require()
    with Progress(doing, len(tasks), total_size(archives), quiet) as progress:
        failures.show_on(progress)
        yield progress
        failures.close_notes()


Task = TypeVar("Task", bound=ArchiveTask)
Result = TypeVar("Result")


def run_each(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    progress: Progress,
    run: RunTasks = run_tasks,
) -> Iterator[tuple[Task, Result]]:
    """(task, result) for every task, in the order in which they end. The progress advances after each."""
    for index, result in run(work, tasks, processes, progress.tick):
        yield tasks[index], result
        progress.advance()


def report(archive: Input, found: Sequence[Failure], failures: Failures, is_listed: bool = True) -> None:
    """Report the failures of an archive under its name in messages, that of the whole file first.

    Many of a kind are only counted, if a file lists them, too.
    """
    label = archive.label
    paths = (archive.path, archive.location.absolute())  # a node of Spark gets the absolute path
    named = [one._replace(path=label) if one.path in paths else one for one in found]
    named.sort(key=lambda failure: failure.offset is not None)
    if is_listed:
        failures.report_listed(label, named)
    else:
        for failure in named:
            failures.report(failure)


def note(place: object, notes: Sequence[Note], failures: Failures) -> None:
    """Report notes about a file."""
    for one in notes:
        failures.note_one(f"{place}@{one.offset}", one.reason)
