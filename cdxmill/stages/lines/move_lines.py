"""Index lines -> the same lines with the new places of their records, from tables of offsets."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cdxmill.formats.lines.capture_fields import (
    ALSO,
    COLUMNS,
    USUAL_LINE,
    RecordPlace,
    is_cdxj,
    text_to_bytes,
)
from cdxmill.formats.lines.cdx_lines import quote, safe
from cdxmill.formats.offset_table import OffsetTable
from cdxmill.regex import regex
from cdxmill.stages.lines.archive_names import ArchiveNames

_TOKEN = regex(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = regex(rb"[0-9]{1,18}")
_PLACE = ("filename", "offset", "length")
_ORIGINAL = "orig."
"""The start of the names of the fields with the place of the record that a revisit refers to."""


Find = Callable[[RecordPlace], RecordPlace]
"""The new place of a record, with its length. The same place, if its archive was not written again."""


class _Value(NamedTuple):
    """A field of a line: its byte range, and its text."""

    start: int
    end: int
    text: bytes


def move_line(line: bytes, find: Find) -> bytes:
    """The line of a record at its new place. A length or an original that the line does not have is not added.

    Raises ValueError if the line has no valid place, and what `find` raises.

    >>> find = lambda place: RecordPlace(b"a.zst", 7, 10)
    >>> move_line(b'com,a)/ 2020 {"offset": 0, "filename": "a.gz", "length": "12"}', find)
    b'com,a)/ 2020 {"offset": 7, "filename": "a.zst", "length": "10"}'
    >>> move_line(b"com,a)/ 2020 http://a.com/ - 200 X - - 12 0 a.gz", find)
    b'com,a)/ 2020 http://a.com/ - 200 X - - 10 7 a.zst'
    """
    found = USUAL_LINE.fullmatch(line)
    if found is None:
        return _move_any(line, find)
    _, length, offset, filename = found.groups()
    old = RecordPlace(filename, int(offset), int(length))
    new = find(old)
    if new == old:
        return line
    place = b'%d", "offset": "%d", "filename": %b' % (new.length or 0, new.offset, quote(new.filename))
    return b"%b%b%b" % (line[: found.start(2)], place, line[found.end(4) + 1 :])


def _move_any(line: bytes, find: Find) -> bytes:
    body = line.rstrip(b"\r\n")
    is_json = is_cdxj(body)
    values = dict(_json_values(body) if is_json else _columns(body))
    changes: dict[_Value, bytes] = {}
    for prefix in ("", _ORIGINAL):
        filename, offset, length = (values.get(prefix + name) for name in _PLACE)
        if prefix and (filename is None or filename.text in (b"", b"-")):
            continue
        if filename is None or offset is None or not _NUMBER.fullmatch(offset.text):
            raise ValueError("the line has no valid filename and offset")
        old = RecordPlace(filename.text, int(offset.text), _length(length))
        new = find(old)
        if new == old:
            continue
        changes[filename] = quote(new.filename) if is_json else safe(new.filename)
        changes[offset] = _like(line, offset, new.offset)
        if length is not None and old.length is not None:
            changes[length] = _like(line, length, new.length or 0)
    for value in sorted(changes, reverse=True):
        line = line[: value.start] + changes[value] + line[value.end :]
    return line


def _length(value: _Value | None) -> int | None:
    return int(value.text) if value is not None and _NUMBER.fullmatch(value.text) else None


def _like(line: bytes, value: _Value, number: int) -> bytes:
    """A number, with quotation marks if the value that it replaces has them."""
    return (b'"%d"' if line[value.start : value.start + 1] == b'"' else b"%d") % number


def _columns(line: bytes) -> Iterator[tuple[str, _Value]]:
    fields = line.split(b" ")
    start = 0
    for name, field in zip(COLUMNS.get(len(fields), ()), fields, strict=False):
        yield name, _Value(start, start + len(field), field)
        start += len(field) + 1


def _json_values(line: bytes) -> Iterator[tuple[str, _Value]]:
    """The texts and numbers of the JSON object of a line. Raises ValueError if a name occurs twice."""
    depth, key, names = 0, "", set()
    tokens = _TOKEN.finditer(line, line.index(b" {") + 1)
    before = b""
    for token in tokens:
        text = token[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and text.startswith(b'"') and before in (b"{", b","):
            key = _text(text)
            key = ALSO.get(key, key)
            if key in names:
                raise ValueError(f"the line has two fields {key}")
            names.add(key)
        elif depth == 1 and before == b":":
            value = text_to_bytes(_text(text)) if text.startswith(b'"') else text
            yield key, _Value(token.start(), token.end(), value)
        before = text
    if depth:
        raise ValueError("the line has no valid JSON")


def _text(token: bytes) -> str:
    import json

    return str(json.loads(token.decode("utf-8", "surrogateescape"), strict=False))


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


class _NoRecordError(ValueError):
    def __init__(self, reason: str, table: str) -> None:
        super().__init__(reason)
        self.table = table


class TableNames:
    """The tables by the name of their archive: the whole name, or, if that is unique, its base name."""

    def __init__(self, tables: Mapping[str, Names]) -> None:
        """Take the names of each table, which is a path or URL. Raises ValueError if two are of one archive."""
        self._names = ArchiveNames[Moved]()
        for path, (old, new) in tables.items():
            for other in self._names.whole(old):
                raise ValueError(f"{other.table} and {path} are tables of the same archive")
            self._names.add(old, Moved(path, new))

    def find(self, filename: bytes) -> Moved | None:
        """The table of the archive that a line calls `filename`; None if there is none.

        Raises ValueError if several archives may be meant.
        """
        found = self._names.find(filename)
        if not found:
            return None
        if len(found) > 1:
            tables = " and ".join(sorted(one.table for one in found))
            raise ValueError(f"{shown(filename)} is the base name of several archives, those of {tables}")
        if self._names.whole(filename):
            return found[0]
        directory, slash, _ = filename.rpartition(b"/")
        return found[0]._replace(new=directory + slash + posixpath.basename(found[0].new))


def shown(filename: bytes) -> str:
    """The name of an archive, for a message."""
    return filename.decode("utf-8", "backslashreplace")


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
        except ValueError as error:
            skip = Skip(str(error), error.table if isinstance(error, _NoRecordError) else "")
            self.skipped[skip] += 1
            self.examples.setdefault(skip, line[:_SHOWN])
            return None
        self.copied += new is line
        self.moved += new is not line
        return new

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
            raise _NoRecordError(f"no record of {shown(filename)} has this offset and length", moved.table)
        return RecordPlace(moved.new, *found)
