"""The inputs of a prefix B-tree, checked to be sorted -> its items.

A step of Python per line would take most of the time of a build. So compiled code takes lines apart, but stops at an unusual one,
which Python parses. Lines of other columns than numbers are taken apart in columns, many lines at once.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

import orjson

from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import stored_fields
from cdxmill.formats.tree.name_groups import MOST_NAMES
from cdxmill.formats.tree.pointer_layout import CAPTURE, Layout
from cdxmill.formats.tree.prefix_btree import out_of_order
from cdxmill.inputs.pipes import STDIN, is_pipe, open_pipe
from cdxmill.regex import regex
from cdxmill.running.processes import counted
from cdxmill.stages.lines import cdx_text
from cdxmill.stages.lines.cdx_text import MAX_LINE, REBUILD, read_content
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines
from cdxmill.stages.native import capture_items, pointer_rows
from cdxmill.stages.window import MemberError, Window, chunk_of
from cdxmill.storage.location import locate
from cdxmill.storage.reading import open_unchanged

Items = tuple[Sequence[bytes], Sequence[bytes]]
"""Keys, and their pointers, each after a NUL."""

_SEPARATORS = b"\t\n "
_OTHER = bytes(byte for byte in range(256) if byte not in _SEPARATORS)
_NO_TABS = _OTHER + b" "
_COMMAS = bytes.maketrans(b" \t", b",,")
_DIGITS = b"0123456789,"
_NUMBER = regex(rb"\d{1,20}")
_LONGEST = 20
_STATUS_MOST = 65535
_SHOWN = 80
_ABSENT = b"", b"-"
_CAPTURE_COLUMNS = 6
_FEW = 16
"""Lines that Python parses from an unusual one on: to pack pointers has a cost per call, too."""


class NoItemError(ValueError):
    """A line has no item. The text names the line."""


class Archives(dict[bytes, int]):
    """The names of archives, numbered in the order in which they are first asked for.

    NoItemError is raised for a name that cannot be stored.
    """

    _size = 0

    def __missing__(self, name: bytes) -> int:
        if name in _ABSENT or b"\n" in name or b"\0" in name:
            raise NoItemError(f"the file name {name[:_SHOWN]!r} cannot be stored")
        self._size += len(name) + 1
        if self._size > MOST_NAMES:
            raise NoItemError(f"the names of the archives have more than {MOST_NAMES >> 20} MiB")
        self[name] = number = len(self)
        return number


class _Columns(NamedTuple):
    """The values of captures, in text. A status or timestamp of `-` or "" is absent."""

    keys: Sequence[bytes]
    names: Sequence[bytes]
    offsets: Sequence[bytes]
    lengths: Sequence[bytes]
    timestamps: Sequence[bytes]
    statuses: Sequence[bytes]


class CaptureItems:
    """CDX and CDXJ lines -> items of the layout `capture`. `odd_statuses` counts statuses that are no number, and not stored."""

    def __init__(self, archives: Archives) -> None:
        self._archives = archives
        self.odd_statuses = 0

    def of_lines(self, lists: Iterable[list[bytes]]) -> Iterator[Items]:
        """The items of CDX or CDXJ lines. Raises NoItemError."""
        for lines in lists:
            yield self._items_of(lines)

    def _items_of(self, lines: list[bytes]) -> Items:
        if capture_items is None:
            return self._items(_any_columns(lines))
        keys: list[bytes] = []
        tails: list[bytes] = []
        start = 0
        while (start := capture_items(lines, start, self._archives, keys, tails)) < len(lines):
            few = self._items(_any_columns(lines[start : start + _FEW]))
            keys += few[0]
            tails += few[1]
            start += _FEW
        return keys, tails

    def of_rows(self, texts: Iterable[bytes]) -> Iterator[Items]:
        """The items of lines `key TAB file name TAB offset TAB length TAB timestamp TAB status`. Raises NoItemError."""
        for text in texts:
            parts = text.replace(b"\n", b"\t").split(b"\t")
            if len(parts) % _CAPTURE_COLUMNS or not _are_rows(text, _CAPTURE_COLUMNS):
                raise NoItemError(_odd_row(text))
            key, *values = (parts[place::_CAPTURE_COLUMNS] for place in range(_CAPTURE_COLUMNS))
            yield self._items(_Columns(key, *values))

    def _items(self, columns: _Columns) -> Items:
        numbers = [self._archives[name] for name in columns.names]
        ranges = [_numbers_of(column) for column in columns[2:4]]
        times = _numbers_of(columns.timestamps, _ABSENT)
        statuses = _integers(b",".join(columns.statuses), len(columns.keys))
        if statuses is None or max(statuses) > _STATUS_MOST:
            statuses = [self._status(status) for status in columns.statuses]
        return columns.keys, CAPTURE.tails([numbers, *ranges, times, statuses])

    def _status(self, status: bytes) -> int:
        if status in _ABSENT:
            return 0
        if status.isdigit() and len(status) <= _LONGEST and int(status) <= _STATUS_MOST:
            return int(status)
        self.odd_statuses += 1
        return 0


def _any_columns(lines: Iterable[bytes]) -> _Columns:
    return _Columns(*zip(*map(_careful_row, lines), strict=True))


def _careful_row(line: bytes) -> tuple[bytes, ...]:
    """Key, file name, offset, length, timestamp, status. Raises NoItemError."""
    try:
        fields = {name: str(value) for name, value in stored_fields(line).items()}
        values = [
            fields.get(name, "").encode("utf-8", "surrogateescape")
            for name in ("filename", "offset", "length")
        ]
        status = fields.get("status", "").encode("utf-8", "surrogateescape")
    except (ValueError, RecursionError) as error:
        raise NoItemError(str(error)) from None
    if values[0] in _ABSENT or not all(map(_NUMBER.fullmatch, values[1:])):
        raise NoItemError(f"the line has no valid filename, offset and length: {line[:_SHOWN]!r}")
    key, _, rest = line.partition(b" ")
    return key, *values, rest.partition(b" ")[0], status


def _numbers_of(column: Sequence[bytes], absent: Container[bytes] = ()) -> list[int]:
    """Numbers of up to 20 digits; values in `absent` are 0. Raises NoItemError."""
    found = _integers(b",".join(column), len(column))
    if found is not None:
        return found
    for value in column:
        if value not in absent and not _NUMBER.fullmatch(value):
            raise NoItemError(f"expected a number: {value[:_SHOWN]!r}")
    return [0 if value in absent else int(value) for value in column]


def _integers(text: bytes, count: int) -> list[int] | None:
    """Numbers with commas between them; None if there is anything else. orjson is several times as fast as `int`."""
    if text.translate(None, _DIGITS):
        return None
    try:
        found: list[int] = orjson.loads(b"[%b]" % text)
    except orjson.JSONDecodeError:  # leading zeros, or nothing between two commas
        values = text.split(b",")
        found = list(map(int, values)) if all(values) and max(map(len, values)) <= _LONGEST else []
    return found if len(found) == count else None


def pointer_items(texts: Iterable[bytes], layout: Layout) -> Iterator[Items]:
    """Lines `key TAB pointer` -> items. A pointer is its bytes in hexadecimal digits, or a number per field of `layout`.

    The numbers have tabs or spaces between them. Raises NoItemError, ValueError.
    """
    for text in texts:
        key_size = text.find(b"\t")
        is_hex = len(layout.fields) > 1 and text[key_size + 2 * layout.size + 1 :][:1] in (b"", b"\n")
        found = _hex_items(text, layout) if is_hex else None
        yield found or _compiled_items(text, layout) or _number_items(text, layout)


def _compiled_items(text: bytes, layout: Layout) -> Items | None:
    """The items if compiled code takes all lines: those with a number per field that fits."""
    keys: list[bytes] = []
    tails: list[bytes] = []
    taken = pointer_rows is not None and pointer_rows(text, layout.sizes, keys, tails)
    return (keys, tails) if taken else None


def _hex_items(text: bytes, layout: Layout) -> Items | None:
    """The items if all pointers are hexadecimal; None if some are not."""
    parts = text.replace(b"\t", b"\n").split(b"\n")
    keys, pointers = parts[::2], parts[1::2]
    if set(map(len, pointers)) != {2 * layout.size} or not _are_rows(text, 2):
        return None
    try:
        data = unhexlify(b"00" + b"00".join(pointers))
    except ValueError:
        return None
    step = layout.size + 1
    return keys, [data[start : start + step] for start in range(0, len(data), step)]


def _are_rows(text: bytes, columns: int) -> bool:
    """Whether each line has this number of columns, with tabs between them."""
    found = text.translate(None, _NO_TABS) + b"\n"
    return found == (b"\t" * (columns - 1) + b"\n") * (len(found) // columns)


def _number_items(text: bytes, layout: Layout) -> Items:
    """The items if each pointer is a number per field of the layout. Raises NoItemError."""
    width = len(layout.fields)
    rows = [_row(line, width) for line in text.split(b"\n")]
    return [key for key, _ in rows], layout.tails([*zip(*(numbers for _, numbers in rows), strict=True)])


def _row(line: bytes, width: int) -> tuple[bytes, list[int]]:
    """The key and the numbers of one line. Raises NoItemError."""
    key, _, rest = line.partition(b"\t")
    values = rest.translate(_COMMAS).split(b",")
    if b"," in rest or len(values) != width or not all(map(_NUMBER.fullmatch, values)):
        raise NoItemError(f"expected key, tab and {width} numbers or hexadecimal digits: {line[:_SHOWN]!r}")
    return key, [int(value) for value in values]


def _odd_row(text: bytes) -> str:
    odd = next(line for line in text.split(b"\n") if line.count(b"\t") != _CAPTURE_COLUMNS - 1)
    return f"expected key, file name, offset, length, timestamp and status, with tabs between them: {odd[:_SHOWN]!r}"


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A text in pieces -> the same text in pieces that end with a line, without the last line end. Raises NoItemError."""
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        end = piece.rfind(b"\n")
        if end >= 0:
            yield b"".join((*begun, piece[:end]))
            begun, size = [], 0
        begun.append(piece[end + 1 :])
        size += len(begun[-1])
        if size > MAX_LINE:
            raise NoItemError(f"a line is longer than {MAX_LINE >> 20} MiB")
    if rest := b"".join(begun):
        yield rest


_SORT = "sort it with LC_ALL=C sort, or build a cluster of it with cdxmill zipnum and use that"
_PIPED = 1 << 18
"""Bytes per read of a pipe."""
_T = TypeVar("_T")


class TreeSource(NamedTuple):
    """An input: its name in messages, its first line, and its text in pieces."""

    label: str
    first: bytes
    pieces: Iterator[bytes]

    @property
    def has_pointers(self) -> bool:
        """Whether its lines are keys and pointers, with a tab after the key, and no CDX lines."""
        return b"\t" in self.first.partition(b" ")[0]

    def lists(self) -> Iterator[list[bytes]]:
        """Its lines, checked to be sorted, in lists. CDX lines are checked, too. Raises InputError."""
        pieces = self.pieces if self.has_pointers else cdx_text.checked(self.pieces)
        return in_order(self.label, _with_errors(self.label, split_lines(pieces)))

    def texts(self) -> Iterator[bytes]:
        """Its text in pieces that end with a line. Raises InputError."""
        return _with_errors(self.label, whole_lines(self.pieces))


def open_source(path: str) -> TreeSource:
    """Open a file, URL, named pipe or standard input. Raises InputError if it cannot be read or is empty."""
    label = "standard input" if path == STDIN else path
    pieces = _with_errors(label, _piped(path) if is_pipe(path) else _content(path))
    head: list[bytes] = []
    for piece in pieces:
        head.append(piece)
        lines = b"".join(head).split(b"\n")
        first = next(filter(is_capture_line, lines[:-1]), b"")
        if first or len(head) > 64:  # a file of other things than lines
            return TreeSource(label, first, chain(head, pieces))
    first = next(filter(is_capture_line, b"".join(head).split(b"\n")), b"")
    return TreeSource(label, first, iter(head))


def _piped(path: str) -> Iterator[bytes]:
    """The content of a pipe, gzip or plain. It is read once, from its start to its end."""
    with open_pipe(path) as read:
        yield from read_content(Window(lambda offset, size: read(size), _PIPED))


def _content(path: str) -> Iterator[bytes]:
    with open_unchanged(path) as read_at:
        window = Window(counted(read_at), chunk_of(locate(path).is_remote))
        if not window.get(0, 1):
            raise InputError(path, "the file is empty", REBUILD)
        yield from read_content(window)


def _with_errors(label: str, values: Iterable[_T]) -> Iterator[_T]:
    try:
        yield from values
    except (MemberError, NoItemError, cdx_text.LineError) as error:
        raise InputError(label, str(error), REBUILD) from None


def in_order(label: str, lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The same lists. Raises InputError at a line that is less than the one before."""
    last = b""
    for lines in lists:
        if (found := out_of_order(last, lines)) is not None:
            raise not_sorted(label, *found)
        last = lines[-1]
        yield lines


def not_sorted(label: str, before: bytes, line: bytes) -> InputError:
    """The error for a line that is less than the one before."""
    return InputError(label, f"not sorted: {line[:_SHOWN]!r} comes after {before[:_SHOWN]!r}", _SORT)
