"""Scan one archive: the task that `scan` runs in its processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

from cdxmill.capture import Damage, Note
from cdxmill.commands.per_archive.task import ArchiveTask, OneOutput
from cdxmill.commands.scanning.options import ScanOptions, compiled
from cdxmill.commands.scanning.rows import WARC, WET, row_writer
from cdxmill.errors import AbsentError, InputError, RefusedError, UntriedError
from cdxmill.formats.archives.warc_header import HeaderMatch, HeaderShapes
from cdxmill.running.failures import Failure
from cdxmill.running.watched import NO_LOSSES, Losses, mark, unmark, unmarked
from cdxmill.stages.pages.detectors import detecting
from cdxmill.stages.pages.full_record import CUT_RECORD, FullRecord
from cdxmill.stages.records.parse_header import RecordError
from cdxmill.stages.records.read_contents import Content, Refusals, choose_at, choose_contents
from cdxmill.stages.records.unexpected import HINT, SKIPPED, blame_record
from cdxmill.stages.scan.fields import CallError, Row, has_text
from cdxmill.stages.scan.plan import Measured
from cdxmill.stages.scan.sampling import Smallest, sample_field
from cdxmill.stages.window import ReadAt
from cdxmill.storage.scratch import Scratch

if TYPE_CHECKING:
    from cdxmill.commands.scanning.captures import NamedRecords

Given = TypeVar("Given")


@dataclass(frozen=True)
class ScanTask(ArchiveTask):
    """An archive to scan.

    If records are `named`, only these are scanned. Records that cost a process are in `losses` by their numbers, and are
    listed with the reason. Unless it `is_last`, the archive is tried again if its storage gives no answer. If
    `ranks` is not 0, no output is written: the task finds the smallest numbers of the sample.
    """

    options: ScanOptions
    named: NamedRecords | None = None
    losses: Losses = NO_LOSSES
    is_last: bool = True
    ranks: int = 0


class ScannedArchive(NamedTuple):
    """What came of an archive. `is_written` is False if it could not be read to its end.

    `again` is why it has to be tried again; then nothing else counts. `smallest` are the smallest numbers of its records
    in the sample.
    """

    records: int
    matches: int
    is_written: bool
    failures: list[Failure]
    notes: list[Note]
    measured: list[Measured]
    again: str = ""
    smallest: Sequence[float] = ()


def scan_one(task: ScanTask) -> ScannedArchive:
    """Scan one archive. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, nothing is written, and an output of an earlier run stays.
    """
    with detecting(task.options.detector):
        return _rank_one(task) if task.ranks else _scan_one(task)


def _scan_one(task: ScanTask) -> ScannedArchive:
    output, scan, error = OneOutput(task), _Scan(task), None
    try:
        with output.writing(lambda: scan.failures) as file:
            scan.run(file)
    except InputError as failure:
        error = failure
    if error is not None and not task.is_last and _may_pass(error, task):
        output.discard()
        return ScannedArchive(0, 0, False, [], [], [], f"{error.path}: {error.reason}")
    failures = scan.failures + task.failures_of([], error)
    output.finish(failures)
    return ScannedArchive(
        scan.records, scan.matches, output.is_written, failures, scan.notes, scan.measured()
    )


def _rank_one(task: ScanTask) -> ScannedArchive:
    """Find the smallest numbers of the sample in one archive. What is wrong with it is reported when it is scanned."""
    scan, smallest, again = _Scan(task), Smallest(task.ranks), ""
    try:
        scan.rank(smallest)
    except InputError as error:
        again = "" if task.is_last or not _may_pass(error, task) else f"{error.path}: {error.reason}"
    return ScannedArchive(scan.records, scan.matches, False, [], [], [], again, smallest.numbers())


class _Scan:
    """An archive that is scanned: the steps, and what was found."""

    def __init__(self, task: ScanTask) -> None:
        self._task, self._scratch = task, Scratch(task.scratch)
        self._plan, self._extractor, _ = compiled(task.options)
        self._skip, self._passes = task.losses.skip, self._plan.passes
        self._shapes = HeaderShapes()
        self._filename = os.fsencode(task.archive.filename).decode("utf-8", "replace")
        self._has_records = task.options.to in (*WARC, *WET)
        self.failures: list[Failure] = []
        self.notes: list[Note] = []
        self._before = self._plan.measured()
        self.records = self.matches = 0

    def run(self, file: IO[bytes]) -> None:
        """Write the output to `file`. Raises InputError."""
        to = self._task.options.to
        with self._task.open_archive() as read_at:
            found = self._matching(unmarked(read_at))
            if self._has_records:
                from cdxmill.commands.scanning.archives import write_warc  # slow to import, as below

                write_warc(file, to, self._task.output.name, (content for content, _ in found))
                return
            writer = row_writer(to, file, self._extractor.columns)
            for content, row in found:
                with self._listing(content.offset):
                    writer.write(row)
                    self.matches += 1
            writer.close()

    def rank(self, smallest: Smallest) -> None:
        """Add the numbers of the records that pass. Raises InputError."""
        passes, number = self._passes, sample_field(self._task.options.seed).read
        self._passes = lambda record: smallest.takes(number(record)) and passes(record)
        with self._task.open_archive() as read_at:
            for _, record in self._chosen(unmarked(read_at)):
                with self._listing(record.offset):
                    if self._has_text(record) and (
                        not self._has_calls() or self._extractor.row(record) is not None
                    ):
                        smallest.add(number(record))

    def _matching(self, read_at: ReadAt) -> Iterator[tuple[Content, Row]]:
        """Each record that passes, with its row."""
        for content, record in self._chosen(read_at):
            with self._listing(record.offset):
                row = self._row(record)
                if row is None:
                    continue
                self._note_problems(record)
                if self._has_records:
                    content = self._written(record, content, row)
                self.matches += self._has_records
                yield content, row

    def _has_calls(self) -> bool:
        """Whether functions of the user may reject a record."""
        return bool(self._task.options.calls or self._task.options.page_calls)

    def _chosen(self, read_at: ReadAt) -> Iterator[tuple[Content, FullRecord]]:
        """Each record that passes. Damage is listed."""
        for item in self._items(read_at):
            if isinstance(item, Damage):
                self._fail(item.offset, item.reason, item.hint)
            else:
                yield item

    def _row(self, record: FullRecord) -> Row | None:
        """The row of a record; None if it is not written."""
        if not self._has_text(record):
            return None
        is_whole = self._task.options.to in WARC and not self._has_calls()
        return {} if is_whole else self._extractor.row(record)

    def _has_text(self, record: FullRecord) -> bool:
        """Whether a record has a text, if only texts are written."""
        return self._task.options.to not in WET or has_text(record)

    def _written(self, record: FullRecord, content: Content, row: Row) -> Content:
        """What an archive has of a record: as it is, or its text."""
        from cdxmill.commands.scanning.archives import as_text, as_warc

        options, name = self._task.options, self._task.archive.filename
        if options.to in WARC:
            return as_warc(record, content, name)
        return as_text(record, content, name, row[options.extract])

    def _items(self, read_at: ReadAt) -> Iterator[tuple[Content, FullRecord] | Damage]:
        """The records that pass: of the whole archive, or those that are named."""
        named = self._task.named
        if named is not None:
            return self._of_lines(read_at, named)
        return choose_contents(
            read_at, self._scratch, self._choose, self._task.chunk, self._refusals(), self.notes.append
        )

    def _of_lines(self, read_at: ReadAt, named: NamedRecords) -> Iterator[tuple[Content, FullRecord]]:
        """The records that index lines name and that pass. Lines that no record matches are listed."""
        from cdxmill.commands.scanning.captures import LineMatches
        from cdxmill.inputs.joined_ranges import JoinedRanges, is_one_request  # network code
        from cdxmill.stages.records.fetch_record import NoRecord

        joined = JoinedRanges(read_at, unmark, self._task.archive.location)
        matches, passes, last = LineMatches(self._fail), self._passes, -1
        self._passes = lambda record: matches.has(record) and passes(record)
        choose = choose_at(self._choose)
        for run in named.runs(is_one_request):
            start = run[0].offset
            joined.fetch(start, max(one.end for one in run) - start, self._scratch.directory)
            for (offset, length), lines in groupby(run, lambda one: (one.offset, one.length)):
                matches.lines = list(lines)
                try:
                    found = choose(joined.archive, joined.held(offset, length or 0), offset, length)
                except NoRecord as error:
                    matches.miss(f"no record here: {error}")
                    continue
                if found is not None and offset != last:  # lines with other lengths may name it, too
                    last = offset
                    yield found
        matches.report_rest()

    def _choose(self, content: Content, found: HeaderMatch | None) -> tuple[Content, FullRecord] | None:
        """A record that passes; None for all others. Runs for every record."""
        number = self.records
        mark(number, self.matches)
        self.records = number + 1
        if number in self._skip:
            self._fail(content.offset, self._skip[number], SKIPPED)
            return None
        try:
            record = FullRecord(content, number, self._shapes, found)
            record.filename = self._filename
            if self._passes(record):
                return content, record
            self._note_problem_of_page(record)
        except RecordError as error:
            self._fail(content.offset, error.reason, error.hint)
        except Exception as error:  # whatever a strange record leads to
            self._fail(content.offset, *_blamed(error))
        return None

    def _refusals(self) -> Refusals:
        plan = self._plan
        content = self._counting(plan.refuses_content) if plan.can_refuse_content else None
        return Refusals(self._counting(plan.refuses) if plan.can_refuse else None, content)

    def _counting(self, refuses: Callable[[Given], bool]) -> Callable[[Given], bool]:
        """`refuses`, which counts the records that do not pass. Runs for every record."""

        def counted(given: Given) -> bool:
            try:
                if refuses(given):
                    self.records += 1
                    return True
            except Exception as error:
                blame_record(error)  # the whole record is tested next, and then it is reported
            return False

        return counted

    @contextmanager
    def _listing(self, offset: int | None) -> Iterator[None]:
        """List a record whose row cannot be made or written."""
        try:
            yield
        except CallError as error:
            self._fail(offset, str(error))
        except Exception as error:  # whatever a strange record leads to
            self._fail(offset, *_blamed(error))

    def _note_problems(self, record: FullRecord) -> None:
        """Note a matching record whose body could be decoded only in part."""
        body = record.__dict__.get("body")
        problems = [] if body is None or not body.problem else [body.problem]
        if record.is_large:
            problems.append(CUT_RECORD)
        self.notes += [Note(record.offset, problem) for problem in problems]
        self._note_problem_of_page(record)

    def _note_problem_of_page(self, record: FullRecord) -> None:
        """Note a page that was parsed only in part, also if it does not match: the rest might."""
        page = record.__dict__.get("page")
        if page is not None and page.problem:
            self.notes.append(Note(record.offset, page.problem))

    def _fail(self, offset: int | None, reason: str, hint: str = "") -> None:
        self.failures.append(Failure(self._task.archive.path, offset, reason, hint))

    def measured(self) -> list[Measured]:
        """What the conditions cost for this archive."""
        return [
            one._replace(
                tested=one.tested - old.tested, held=one.held - old.held, seconds=one.seconds - old.seconds
            )
            for one in self._plan.measured()
            for old in self._before
            if old[:2] == one[:2]
        ]


def _may_pass(error: InputError, task: ScanTask) -> bool:
    """Whether another try may help: the storage is remote, is not given up, and did not say that the archive is missing or refused."""
    return task.archive.location.is_remote and not isinstance(
        error, AbsentError | RefusedError | UntriedError
    )


def _blamed(error: Exception) -> tuple[str, str]:
    """Reason and hint. Raises the error again if the machine is to blame."""
    from cdxmill.stages.records.decode_payload import PayloadError  # needed for bodies only

    if isinstance(error, MemoryError):
        return "not enough memory for this record", ""
    if isinstance(error, PayloadError):  # a library is missing
        return str(error), ""
    return blame_record(error), HINT
