"""Index lines -> the same lines with the new places of their records, from tables of offsets."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cdxmill.formats.lines.cdx import safe
from cdxmill.formats.lines.moved_line import move_line
from cdxmill.formats.lines.record_location import RecordPlace
from cdxmill.formats.offset_table import OffsetTable

_SHOWN = 80


class Names(NamedTuple):
    """The name of an archive in index lines, and the name of the new archive."""

    old: bytes
    new: bytes


class Moved(NamedTuple):
    """The place of an archive's table, and the name that lines of it get."""

    table: str
    new: bytes


class Skip(NamedTuple):
    """Why lines are skipped; `table` is what they were looked up in, if anything."""

    reason: str
    table: str = ""


class _SkippedLineError(Exception):
    def __init__(self, skip: Skip) -> None:
        self.skip = skip
        super().__init__(skip.reason)


class TableNames:
    """The tables by the name of their archive: the whole name, or, if that is unique, its base name."""

    def __init__(self, tables: Mapping[str, Names]) -> None:
        """Take the names of each table, which is a path or URL. Raises ValueError if two are of one archive."""
        self._whole: dict[bytes, Moved] = {}
        self._base: dict[bytes, Moved | None] = {}
        for path, (old, new) in tables.items():
            for name in _spellings(old):
                other = self._whole.setdefault(name, Moved(path, new))
                if other.table != path:
                    raise ValueError(f"{other.table} and {path} are tables of the same archive")
                base = posixpath.basename(name)
                shared = base in self._base and self._base[base] != Moved(path, posixpath.basename(new))
                self._base[base] = None if shared else Moved(path, posixpath.basename(new))

    def find(self, filename: bytes) -> Moved | None:
        """The table of the archive that a line calls `filename`; None if there is none."""
        found = self._whole.get(filename)
        if found is not None:
            return found
        directory, slash, name = filename.rpartition(b"/")
        moved = self._base.get(name)
        return moved and moved._replace(new=directory + slash + moved.new)


def _spellings(filename: bytes) -> set[bytes]:
    """As CDXJ and CDX lines may have it: JSON has no bytes that are not UTF-8, and CDX no spaces."""
    return {filename, filename.decode("utf-8", "replace").encode(), safe(filename)}


class LineMover:
    """Moves lines. `load` reads the table at a path or URL; each is read once, when the first line needs it."""

    def __init__(self, names: TableNames, load: Callable[[str], OffsetTable]) -> None:
        self._names, self._load = names, load
        self._found: dict[bytes, Moved | None] = {}
        self._tables: dict[str, OffsetTable] = {}
        self.moved = 0
        self.copied = 0
        self.skipped: Counter[Skip] = Counter()
        self.examples: dict[Skip, bytes] = {}
        """The start of the first line that was skipped for each reason."""

    def move(self, lines: list[bytes]) -> list[bytes]:
        """The lines at their new places. Lines of other archives stay as they are; those that are skipped are counted."""
        return [new for line in lines if (new := self._move(line)) is not None]

    def _move(self, line: bytes) -> bytes | None:
        try:
            new = move_line(line, self._find)
        except _SkippedLineError as error:
            self._skip(line, error.skip)
            return None
        except ValueError as error:
            self._skip(line, Skip(str(error)))
            return None
        self.copied += new is line
        self.moved += new is not line
        return new

    def _skip(self, line: bytes, skip: Skip) -> None:
        self.skipped[skip] += 1
        self.examples.setdefault(skip, line[:_SHOWN])

    def _find(self, place: RecordPlace) -> RecordPlace:
        filename, offset, length = place
        if filename not in self._found:
            self._found[filename] = self._names.find(filename)
        moved = self._found[filename]
        if moved is None:
            return place
        table = self._tables.get(moved.table)
        if table is None:
            table = self._tables[moved.table] = self._load(moved.table)
        found = table.find(offset, length)
        if found is None:
            name = filename.decode("utf-8", "backslashreplace")
            raise _SkippedLineError(Skip(f"no record of {name} has this offset and length", moved.table))
        return RecordPlace(moved.new, *found)
