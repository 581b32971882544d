"""The files of a copy. Each is complete when it appears, and then it is never changed.

    NAME-00000.warc.gz     warcinfo, then one record per gzip member
    NAME-00000.cdxj        its sorted index lines
    NAME-00000.tsv         where its records are from

The two files beside an archive are written first. So an archive with a list beside it is finished, and the lists
of all archives tell which captures the copy has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import repeat
from pathlib import Path
from typing import IO, Any, NamedTuple

from cdxmill.commands.copying.plan import Planned, detailed
from cdxmill.commands.copying.unit_files import ARC, OTHER_DIGEST, CopiedRecord, Part
from cdxmill.errors import InputError, StoppedError
from cdxmill.formats.lines.capture_fields import ABSENT
from cdxmill.formats.lines.cdx_lines import quote, with_place
from cdxmill.formats.lines.surt import surt
from cdxmill.formats.own_records import format_row, parse_row
from cdxmill.inputs.joined_ranges import OpenRanges
from cdxmill.regex import regex
from cdxmill.running.lock import check_held
from cdxmill.search.originals import reference_in
from cdxmill.stages.captures.match_record import is_same_url
from cdxmill.stages.lines.line_lists import distinct, text_of
from cdxmill.stages.records.fetch_record import NoRecord
from cdxmill.stages.records.write_record import filedesc, packed, warcinfo
from cdxmill.storage.local import stopping
from cdxmill.storage.location import Location

ROW = ["filename", "offset", "length", "timestamp", "url", "related", "copied_offset", "copied_length"]
"""The first row of a list: the names of its columns. `related` is yes if the run also copied related records, else no; OTHER_DIGEST may follow."""
_FILE = regex(r"(.+)-(\d{5,})\.(?:warc|arc)\.gz")
_COPY_PIECE = 1 << 20


class FileHead(NamedTuple):
    """What the first record of each file says: when the copy was begun (14 digits), and fields of its warcinfo."""

    timestamp: str
    about: list[tuple[str, str]]


class Finished:
    """The files that earlier runs have written to the directory `target`. Raises InputError if they cannot be read.

    `captures` has the records that are copied from each place, which is a file name and an offset. Those of them in
    `unrelated` were copied without their related records.
    """

    def __init__(self, target: Location) -> None:
        self.target = target
        self.names = set(target.entries())
        self.captures: dict[tuple[str, int], list[CopiedRecord]] = {}
        self.unrelated: set[CopiedRecord] = set()
        self.other_digest: set[CopiedRecord] = set()
        """Those that have another digest than their index line."""
        for record, related, *_ in self._rows():
            self.captures.setdefault(record[:2], []).append(record)
            if not related.startswith("yes"):
                self.unrelated.add(record)
            if related.endswith(OTHER_DIGEST):
                self.other_digest.add(record)

    def __contains__(self, record: CopiedRecord) -> bool:
        return record in self.captures.get(record[:2], ())

    def copied(self, one: Planned) -> CopiedRecord | None:
        """The record that was copied for a capture; None if it is not copied."""
        filename, offset, timestamp, _ = one.identity
        for record in self.captures.get((filename, offset), ()):
            if timestamp in (record[2], ABSENT) and _has_url(one, os.fsencode(record[3])):
                return record
        return None

    def revisits(self, wanted: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
        """What `find_originals` takes, for revisits that are copied; their headers are read in the copy.

        `wanted` has for each the record that was copied, and what `revisit_of` returns.
        """
        found = {(filename, offset, time, url): rest for filename, offset, time, url, *rest in wanted}
        with closing(OpenRanges(lambda: None)) as archives:
            for copied, _, offset, length, archive in self._rows() if found else ():
                if copied not in found:
                    continue
                try:
                    record = archives.opened(archive).archive.record(offset, length).record
                except NoRecord as error:
                    hint = "move this file and its index away"
                    raise InputError(archive.text, f"{error} at {offset}", hint) from None
                yield [*found[copied], *reference_in(record.headers)]

    def _rows(self) -> Iterator[tuple[CopiedRecord, str, int, int, Location]]:
        """The rows of all lists, each with the archive of the copy that has the record."""
        for name in sorted(self.names):
            beside = _list_of(name)
            if beside in self.names:
                for row in _list(self.target / beside):
                    yield *row, self.target / name


def _has_url(one: Planned, url: bytes) -> bool:
    """Whether a capture is of the URL of a record. Keys of 2012 are no SURT, and have no timestamp either."""
    if b'"url": "%b"' % url in one.line or surt(url) == one.key:
        return True
    return one.location.timestamp == ABSENT and is_same_url(url, detailed(one).location.url)


def _list_of(name: str) -> str:
    """The name of the list beside an archive of a copy; "" for other files."""
    return name.removesuffix(".gz").rpartition(".")[0] + ".tsv" if _FILE.fullmatch(name) else ""


def _list(file: Location) -> Iterator[tuple[CopiedRecord, str, int, int]]:
    """The rows of a list: a record, its column `related`, and its place in the copy. Raises InputError."""
    names, *rows = file.read_bytes().split(b"\n")[:-1] or [b""]
    if parse_row(names) != ROW:
        return  # of another tool
    for row in rows:
        try:
            filename, offset, _, timestamp, url, related, at, size = parse_row(row)
            yield (filename, int(offset), timestamp, url), related, int(at), int(size)
        except ValueError:
            hint = "move it and the archive beside it away, and copy again"
            raise InputError(file.text, "is corrupt", hint) from None


class CopyOutput:
    """Writes the records of units to files of at most `most` bytes, unless a single record is larger.

    Use it as a context manager: with an error, an unfinished file is deleted. Raises StoppedError before a file gets its
    name if another run has taken the directory.
    """

    def __init__(self, finished: Finished, most: int, head: FileHead) -> None:
        self._target, self._finished, self._most, self._head = finished.target, finished, most, head
        name = Location(self._target.absolute()).name
        self._stem = re.sub(r"[^\w.+-]+", "_", name).strip("_.") or "copy"
        self._used = {int(found[2]) for name in finished.names if (found := _FILE.fullmatch(name))}
        self._used |= set(self._foreign())
        self._open: dict[str, _OpenFile] = {}
        self.files = self.bytes = 0

    def _foreign(self) -> Iterator[int]:
        """The numbers of indexes and lists that have names of ours, and are somebody else's: no list of ours is there."""
        names = self._finished.names
        for name in names:
            found = re.fullmatch(re.escape(self._stem) + r"-(\d{5,})\.(?:cdxj|tsv)", name)
            if found is None or int(found[1]) in self._used:
                continue
            beside = name.rpartition(".")[0] + ".tsv"
            if beside not in names or not _is_own(self._target / beside):
                yield int(found[1])

    def __enter__(self) -> CopyOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        for file in self._open.values():
            file.abort()

    def add(self, kind: str, data: Path, part: Part) -> int:
        """Append a unit's records of a kind, which are in the file `data`; not those that are finished.

        Returns their number. Raises StoppedError.
        """
        have = {one for one in part.records() if one in self._finished} if self._finished.captures else set()
        records = part.records() if have else repeat(None)
        added = start = first = 0
        with stopping(data), data.open("rb") as source:
            for record, row, line, size in zip(records, part.rows, part.lines, part.sizes, strict=False):
                file = self._open.get(kind)
                if record in have or file is None or not file.has_room(size, self._most):
                    self._copy(kind, source, first, start)
                    first = start
                if record in have:
                    first += size
                else:
                    self._file_for(kind, size).append(row, line, size)
                    added += 1
                start += size
            self._copy(kind, source, first, start)
        if kind in self._open:
            self._open[kind].units.append(data)
        return added

    def _copy(self, kind: str, source: IO[bytes], start: int, end: int) -> None:
        """Copy the records from `start` to `end` that were appended to the open file."""
        if end > start:
            self._open[kind].copy(source, start, end)

    def _file_for(self, kind: str, size: int) -> _OpenFile:
        """The file to which a record of `size` bytes is written."""
        file = self._open.get(kind)
        if file is not None and not file.has_room(size, self._most):
            self._finish(kind)
            file = None
        if file is None:
            file = self._open[kind] = _OpenFile(self._target / self._next_name(kind), self._head)
        return file

    def finish(self) -> None:
        """Finish the open files."""
        for kind in list(self._open):
            self._finish(kind)

    def _finish(self, kind: str) -> None:
        file = self._open[kind]
        check_held()
        file.finish()
        del self._open[kind]
        self.files += 1
        self.bytes += file.size

    def _next_name(self, kind: str) -> str:
        number = next(number for number in range(len(self._used) + 1) if number not in self._used)
        self._used.add(number)
        return f"{self._stem}-{number:05d}.{kind}.gz"


def _is_own(file: Location) -> bool:
    try:
        return file.read_bytes().startswith(format_row(ROW))
    except InputError:
        return False


class _OpenFile:
    """One file that is being written."""

    def __init__(self, place: Location, head: FileHead) -> None:
        self._place, name = place, place.name
        self._lines: list[bytes] = []
        self._rows: list[bytes] = []
        self._filename = quote(name.encode())[1:-1]
        self.units: list[Path] = []
        """The scratch files whose last record is here. Until the end, a killed run can continue with them."""
        self._stack = ExitStack()
        self._file: IO[bytes] = self._stack.enter_context(place.write_atomic())
        timestamp, is_arc = head.timestamp.encode(), name.endswith(f".{ARC}.gz")
        first = filedesc(name, timestamp) if is_arc else warcinfo(name, timestamp, head.about)
        start = b"".join(packed([first]))
        self._write(start)
        self.size = len(start)

    def has_room(self, size: int, most: int) -> bool:
        """Whether one more record, of `size` bytes, can be appended."""
        return self.size + size <= most

    def append(self, row: str, line: str, size: int) -> None:
        """Append a record, whose bytes are written later."""
        self._rows.append(f"{row}\t{self.size}\t{size}\n".encode("utf-8", "surrogateescape"))
        if line:
            self._lines.append(with_place(line.encode("latin-1"), self.size, self._filename))
        self.size += size

    def _write(self, data: bytes) -> None:
        with stopping(Path(self._place.name)):
            self._file.write(data)

    def copy(self, source: IO[bytes], start: int, end: int) -> None:
        """Write the bytes of records that were appended."""
        with suppress(OSError, AttributeError):  # another file system, no Linux, or no local file
            self._file.flush()
            while done := os.copy_file_range(source.fileno(), self._file.fileno(), end - start, start):
                start += done
        source.seek(start)
        while piece := source.read(min(_COPY_PIECE, end - start)):
            self._write(piece)
            start += len(piece)

    def finish(self) -> None:
        """Write the files beside it, then give it its name."""
        beside = self._place.with_name(_list_of(self._place.name))
        with beside.write_atomic() as file:
            file.writelines([format_row(ROW), *self._rows])
        self._lines.sort()
        with beside.with_name(beside.name.removesuffix(".tsv") + ".cdxj").write_atomic() as file:
            file.write(text_of(distinct(self._lines)))
        self._stack.close()
        for unit in self.units:
            unit.unlink(missing_ok=True)

    def abort(self) -> None:
        """Delete what was written."""
        with suppress(_Aborted, StoppedError), self._stack:
            raise _Aborted


class _Aborted(Exception):
    pass
