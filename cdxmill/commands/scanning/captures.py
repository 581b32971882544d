"""The index lines of `scan --captures`: sorted by archive and offset on the disk, and read again archive by archive.

    row    number of the archive NUL offset NUL length NUL index line

So memory does not grow with the number of lines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import RecordLocation, place_in, record_location
from cdxmill.formats.lines.surt import surt
from cdxmill.inputs.named import Input
from cdxmill.inputs.pipes import unpiped
from cdxmill.messages import count
from cdxmill.outputs.names import identity
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.captures.capture_options import clean_url
from cdxmill.stages.captures.match_record import other_capture
from cdxmill.stages.lines.archive_names import ArchiveNames
from cdxmill.stages.lines.cdx_text import MAX_LINE, read_content
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines
from cdxmill.stages.lines.merge_lines import sort_lists
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.window import MemberError, ReadAt, Window
from cdxmill.storage.scratch import Scratch

_ROW = b"%08d\0%020d\0%020d\0%b"
_ROWS = "captures.rows"
_PIECE = 1 << 20
_NAMES = 1 << 16
"""Names of archives whose inputs are kept in memory."""
_LISTED = 1000
"""Names of archives that are counted one by one; and lines of an archive that do not match."""
_MOST = 1000
"""Lines that are compared after one request: those of one record may be any number."""
_SHOWN = 80
_LONGEST = 1 << 20
"""Bytes that are assumed for a record whose length is unknown."""

_MISMATCH = "index the archive again, or name the archive that was indexed"

IsNear = Callable[[int, int, tuple[int, int]], bool]


class NamedRecord(NamedTuple):
    """The place of a record, and the index line that names it."""

    offset: int
    length: int | None
    line: bytes

    @property
    def end(self) -> int:
        """The offset after the record."""
        return self.offset + (self.length or _LONGEST)

    def location(self) -> RecordLocation:
        """All that the line says of the record."""
        return record_location(self.line)


class LineMatches:
    """Compares the records of an archive with the index lines that name them.

    `lines` are those of the next record. `fail` takes each that does not match: its offset, the reason, and advice.
    """

    def __init__(self, fail: Callable[[int | None, str, str], object]) -> None:
        self.lines: Sequence[NamedRecord] = ()
        self._fail, self._missed = fail, 0

    def has(self, record: FullRecord) -> bool:
        """Whether one of the lines is of this record. Those that are not are reported."""
        url, time = clean_url(record.header(b"warc-target-uri")) or b"", record.time.encode() or b"-"
        differ = [_difference(url, time, one) for one in self.lines]
        for one, reason in zip(self.lines, differ, strict=True):
            if reason is not None:
                self._report(one, reason)
        return None in differ

    def miss(self, reason: str) -> None:
        """Report all of the lines."""
        for one in self.lines:
            self._report(one, f"{reason} ({_what(one)})")

    def _report(self, one: NamedRecord, reason: str) -> None:
        self._missed += 1
        if self._missed <= _LISTED:
            self._fail(one.offset, reason, _MISMATCH)

    def report_rest(self) -> None:
        """Report how many lines were not reported one by one."""
        if self._missed > _LISTED:
            more = count(self._missed - _LISTED, "more index line")
            self._fail(None, f"{more} without a record that matches", _MISMATCH)


def _difference(url: bytes, time: bytes, one: NamedRecord) -> str | None:
    """How the URL or the time of a record differs from a line. Lines without a URL have its key."""
    place = one.location()
    reason = other_capture(url, time, place)
    if reason is None and not place.url and not one.line.startswith(surt(url) + b" "):
        reason = f"the record is of {url.decode('utf-8', 'replace')}, the index line is of {_what(one)}"
    return reason


def _what(one: NamedRecord) -> str:
    """The URL or key of a line, and the time, for messages."""
    place = one.location()
    return f"{place.url or one.line.split(b' ', 1)[0].decode('utf-8', 'replace')} {place.timestamp}"


class NamedRecords(NamedTuple):
    """The records of one archive: the range of their rows in a file below `scratch`."""

    scratch: Scratch
    start: int
    size: int

    def runs(self, is_near: IsNear) -> Iterator[list[NamedRecord]]:
        """Records in the order of their offsets, those together that one request fetches.

        `is_near(start, end, range)` says whether a range is fetched with those from `start` to `end`.
        """
        run: list[NamedRecord] = []
        end = 0
        for one in self._records():
            if run and (len(run) == _MOST or not is_near(run[0].offset, end, (one.offset, one.end))):
                yield run
                run, end = [], 0
            run.append(one)
            end = max(end, one.end)
        if run:
            yield run

    def _records(self) -> Iterator[NamedRecord]:
        read_at, stop = self.scratch.reader(_ROWS), self.start + self.size
        pieces = (read_at(at, min(_PIECE, stop - at)) for at in range(self.start, stop, _PIECE))
        for rows in split_lines(pieces):
            for row in rows:
                _, offset, length, line = row.split(b"\0", 3)
                yield NamedRecord(int(offset), int(length) or None, line)


class NamedIn(NamedTuple):
    """The records that a file with index lines names, by archive; and a hash of the lines."""

    records: dict[Input, NamedRecords]
    digest: str


@contextmanager
def open_lines(path: str) -> Iterator[ReadAt]:
    """Open a file, URL or pipe with index lines; - is standard input. Raises InputError, StoppedError."""
    with unpiped(path) as place, place.open_ranges() as read_at:
        yield read_at


def sort_captures(
    path: str, read_at: ReadAt, archives: Sequence[Input], scratch: Scratch, failures: Failures
) -> NamedIn:
    """Sort the CDXJ or CDX lines that `read_at` reads, gzipped or not, by archive: its name in lines, or its base name.

    Lines that are invalid, whose archive is not among `archives`, or whose archive is not certain, are reported.
    Raises UsageError if there are no lines, InputError if they are corrupt, and StoppedError.
    """
    lines = _LineRows(path, archives, failures)
    records, last, position = dict[Input, NamedRecords](), -1, 0
    rows = sort_lists(lines.rows(read_at), "captures", scratch.create, scratch.reader)
    with scratch.create(_ROWS) as file:
        for batch in rows:
            for row in batch:
                number, size = int(row[:8]), len(row) + 1
                if number != last:
                    records[archives[number]] = NamedRecords(scratch, position, 0)
                    last = number
                one = records[archives[number]]
                records[archives[number]] = one._replace(size=one.size + size)
                position += file.write(row + b"\n")
    lines.report()
    return NamedIn(records, lines.digest())


class _LineRows:
    """The lines of the file `path`, while they are read: a row for each, and what is wrong with the others."""

    def __init__(self, path: str, archives: Sequence[Input], failures: Failures) -> None:
        self._label, self._archives, self._failures = f"--captures {path}", archives, failures
        self._names = ArchiveNames[int]()
        seen = dict[str, int]()
        for number, archive in enumerate(archives):
            number = seen.setdefault(identity(archive.location), number)  # an archive may be named twice
            self._names.add(os.fsencode(archive.filename), number)
        self._find = lru_cache(_NAMES)(self._names.find)
        self._others = Counter[bytes]()
        self._rest = self._captures = 0
        self._hash = sha256()

    def digest(self) -> str:
        """A hash of the lines."""
        return self._hash.hexdigest()

    def rows(self, read_at: ReadAt) -> Iterator[list[bytes]]:
        """The rows of valid lines of known archives. Raises InputError, UsageError."""
        first = 1
        for lines in split_lines(self._pieces(read_at)):
            yield [
                row
                for number, line in enumerate(lines, first)
                if line.strip() and is_capture_line(line) and (row := self._row(number, line.rstrip(b"\r")))
            ]
            first += len(lines)
        if not self._captures:
            raise UsageError(f"{self._label}: has no lines")

    def _pieces(self, read_at: ReadAt) -> Iterator[bytes]:
        """The text, hashed. A line that does not end must not fill the memory."""
        size = 0
        try:
            for piece in read_content(Window(read_at)):
                self._hash.update(piece)
                cut = piece.rfind(b"\n")
                size = size + len(piece) if cut < 0 else len(piece) - cut - 1
                if size > MAX_LINE:
                    raise InputError(self._label, f"has a line of more than {MAX_LINE >> 20} MiB")
                yield piece
        except MemberError as error:
            raise InputError(self._label, str(error), "fetch the file again") from None

    def _row(self, number: int, line: bytes) -> bytes | None:
        self._captures += 1
        try:
            name, offset, length = place_in(line)[0]
        except ValueError:
            reason = f"line {number} is not an index line with filename, offset and length: {line[:_SHOWN]!r}"
            self._failures.report_one_listed(Failure(self._label, None, reason), "invalid lines")
            return None
        found = self._find(name)
        if len(found) == 1:
            return _ROW % (found[0], offset, length or 0, line)
        if name in self._others or len(self._others) < _LISTED:
            self._others[name] += 1
        else:
            self._rest += 1
        return None

    def report(self) -> None:
        """Report the lines without a row."""
        for name, number in sorted(self._others.items()):
            shown, of_lines = name.decode("utf-8", "backslashreplace"), count(number, "index line")
            found = [self._archives[one].path for one in self._find(name)]
            if found:
                reason = f"is the base name of {' and '.join(found[:2])}: {of_lines} skipped"
                self._fail(
                    shown, reason, "is the base name of several archives", "scan these archives one by one"
                )
            else:
                reason = f"is the archive of {of_lines}, but no INPUT"
                self._fail(shown, reason, "is no INPUT", "name it, or a directory with it")
        if self._rest:
            reason = (
                f"{count(self._rest, 'line')} of other archives, which are no INPUT or not certain, skipped"
            )
            self._failures.add(self._label, None, reason)

    def _fail(self, name: str, reason: str, kind: str, hint: str) -> None:
        self._failures.report_one_listed(Failure(name, None, reason, hint), kind, self._label)
