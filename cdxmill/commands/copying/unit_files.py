"""What came of one unit of a copy: its result, and its records in scratch files.

Offsets in a result are those in these files. Whoever joins the files completes the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cdxmill.capture import Capture, CommonLine, Record
from cdxmill.formats.lines.cdx_lines import format_placeless
from cdxmill.formats.own_records import parse_row, row_text
from cdxmill.running.failures import Failure
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.write_record import NewMember
from cdxmill.storage.local import stopping
from cdxmill.storage.own import create_own

WARC, ARC = "warc", "arc"
"""The kinds of files that a copy consists of."""
_DEFAULT = CaptureOptions()
_ADDS_TO_LINE = (b"metadata", b"request")
"""Types of records whose content may be part of the line of the record before them."""


OTHER_DIGEST = "other-digest"
"""What follows `yes` or `no` in the column `related` for a record that has another digest than its index line."""
CopiedRecord = tuple[str, int, str, str]
"""What tells a copied record from others: the file name and the offset that it had, its timestamp and its URL."""


@dataclass
class Part:
    """The records of one kind, one after the other in their file.

    For each record: where it is from, as the first columns of a row; its bytes; and its index line or "".
    """

    rows: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return sum(self.sizes)

    def records(self) -> Iterator[CopiedRecord]:
        """What tells the records from others."""
        for row in self.rows:
            filename, offset, _, timestamp, url, *_ = parse_row(row.encode("utf-8", "surrogateescape"))
            yield filename, int(offset), timestamp, url


@dataclass
class UnitResult:
    """What came of a unit."""

    captures: int = 0
    parts: dict[str, Part] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    revisits: list[list[Any]] = field(default_factory=list)
    """Of each revisit: its source, URL, timestamp and digest, and the URL and date that it refers to."""
    requests: int = 0
    fetched: int = 0

    def as_json(self) -> dict[str, Any]:
        """The form in which a result is kept."""
        parts = {kind: vars(part) for kind, part in self.parts.items()}
        return {**vars(self), "parts": parts, "failures": [list(one) for one in self.failures]}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> UnitResult:
        """The result again. Raises TypeError, KeyError or ValueError if it has another form."""
        parts = {kind: Part(**part) for kind, part in found["parts"].items()}
        return cls(**{**found, "parts": parts, "failures": [Failure(*one) for one in found["failures"]]})


def unit_name(number: int) -> str:
    """The name under which a unit's result is kept, and that of its files."""
    return f"unit-{number:06d}"


def unit_file(directory: Path, number: int, kind: str) -> Path:
    """The scratch file with a unit's records of one kind."""
    return directory / f"{unit_name(number)}.{kind}"


class UnitFiles:
    """The scratch files of a unit, one per kind, opened when a record is written; and its result."""

    def __init__(self, directory: Path, number: int, is_related: bool) -> None:
        self._directory, self._number, self._related = directory, number, "yes" if is_related else "no"
        self.result = UnitResult()
        self._open: dict[str, IO[bytes]] = {}
        self._sizes = dict.fromkeys((WARC, ARC), 0)
        self._group: dict[int, Record | CommonLine] = {}
        self._kind = WARC
        self.mark = ""
        """What is added to the rows: OTHER_DIGEST or nothing."""
        self.written: set[tuple[str, int]] = set()
        """The archives and offsets of the records that were written."""

    def close(self) -> None:
        """Close all files. Raises StoppedError."""
        self._add_lines()
        for file in self._open.values():
            with stopping(self._directory):
                file.close()

    def write_common(self, row: list[Any], member: bytes, made: CommonLine) -> None:
        """Append a gzip member whose line is made, and its row."""
        self._add_lines()
        self._kind = WARC
        self._group[self._write(WARC, row, (member,))] = made

    def write(self, kind: str, row: list[Any], member: NewMember) -> None:
        """Append a member and its row. Raises NoRecord, and nothing is appended then."""
        start = self._sizes[kind]
        number = self._write(kind, row, member.pieces)
        if member.record.headers.get(b"warc-type") not in _ADDS_TO_LINE or self._kind != kind:
            self._add_lines()
        self._kind = kind
        self._group[number] = member.record._replace(offset=start, length=self._sizes[kind] - start)

    def _write(self, kind: str, row: list[Any], pieces: Iterable[bytes]) -> int:
        """Append a member and its row, whose number is returned."""
        part = self.result.parts.setdefault(kind, Part())
        related = f"{self._related} {self.mark}".strip()
        size = self._append(kind, self._sizes[kind], pieces)
        self._sizes[kind] += size
        part.sizes.append(size)
        part.rows.append(row_text(["-" if value is None else str(value) for value in (*row, related)]))
        part.lines.append("")
        return len(part.rows) - 1

    def _add_lines(self) -> None:
        """Make the index lines of the group of records that ends here: a record, and those that say more about it.

        They lack their place: CopyOutput adds it (see `with_place`).
        """
        if not self._group:
            return
        part = self.result.parts[self._kind]
        number, first = next(iter(self._group.items()))
        if isinstance(first, CommonLine) and len(self._group) == 1:
            part.lines[number] = (first.start + first.end).decode("latin-1")
            self._group.clear()
            return
        places = {one.offset: number for number, one in self._group.items() if isinstance(one, Record)}
        for found in make_captures(iter(self._group.values()), b"", _DEFAULT):
            if isinstance(found, Capture):
                line = format_placeless(found)
                part.lines[places[found.offset]] = line.decode("latin-1")
            elif isinstance(found, bytes):  # of a common line, which only the first of a group has
                part.lines[number] = found.decode("latin-1")
        self._group.clear()

    def _append(self, kind: str, start: int, pieces: Iterable[bytes]) -> int:
        """Append a member to the file that has `start` bytes. Returns its size."""
        file = self._open.get(kind) or self._created(kind)
        size = 0
        try:
            for piece in pieces:
                file.write(piece)
                size += len(piece)
        except OSError as error:
            with stopping(unit_file(self._directory, self._number, kind)):
                raise error
        except BaseException:
            file.seek(start)
            file.truncate()
            raise
        return size

    def _created(self, kind: str) -> IO[bytes]:
        path = unit_file(self._directory, self._number, kind)
        with stopping(path):
            self._open[kind] = create_own(path)
        return self._open[kind]
