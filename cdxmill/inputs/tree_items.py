"""Sorted CDX or CDXJ lines, or lines of keys and pointers -> items for a prefix B-tree."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from zlib import crc32

import orjson

from cdxmill.formats.capture_fields import is_cdxj, stored_fields
from cdxmill.formats.convert import FIELDS, convert_line
from cdxmill.formats.pointer_layout import Layout, capture_tails, split_tails
from cdxmill.stages.lines.check_lines import MAX_LINE

Items = tuple[Sequence[bytes], Sequence[bytes]]
"""Keys, and their pointers, each after a NUL."""

_NUMBER = re.compile(rb"0|[1-9]\d{0,18}")
_STATUS_MOST = 65535
_SHOWN = 80
_ABSENT = ("", "-")
_COMMAS = bytes.maketrans(b" \t", b",,")
_LONGEST = 20
"""Digits of a number of 64 bits."""


class LineError(ValueError):
    """A line has no item. The text names the line."""


class Archives:
    """The names of archives, numbered in the order in which they first appear."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.checks: list[int] = []

    def number(self, name: bytes) -> int:
        """The number of a name. Raises LineError if it cannot be in the side file."""
        known = self.numbers.get(name)
        if known is None:
            if not name or b"\n" in name or b"\0" in name:
                raise LineError(f"the file name {name[:_SHOWN]!r} cannot be stored")
            known = self.numbers[name] = len(self.checks)
            self.checks.append(crc32(name))
        return known

    def text(self) -> bytes:
        """The content of the side file: one name per line."""
        return b"".join(b"%b\n" % name for name in self.numbers)


class CaptureItems:
    """CDX and CDXJ lines -> items of the layout `capture`. `without_status` counts those whose status is no number."""

    def __init__(self, archives: Archives) -> None:
        self._archives = archives
        self.without_status = 0

    def of_lines(self, lists: Iterable[list[bytes]]) -> Iterator[Items]:
        """The items of lines. Raises LineError, ValueError."""
        for lines in lists:
            yield self._items([self._row(line) for line in lines])

    def of_rows(self, texts: Iterable[bytes]) -> Iterator[Items]:
        """The items of lines `key TAB file name TAB offset TAB length TAB timestamp TAB status`."""
        for lines in texts:
            yield self._items([self._row_of_columns(line) for line in lines.split(b"\n")])

    def _row_of_columns(self, line: bytes) -> tuple[bytes, bytes, int, int, int, int]:
        columns = line.split(b"\t")
        if len(columns) != 6:
            raise LineError(
                f"expected key, file name, offset, length, timestamp and status, with tabs between them: {line[:_SHOWN]!r}"
            )
        key, name, *numbers = columns
        return (key, name, *(_number(value, line) for value in numbers))  # type: ignore[return-value]

    def _row(self, line: bytes) -> tuple[bytes, bytes, int, int, int, int]:
        """Key, file name, offset, length, timestamp, status."""
        parts = line.split(b" ", 2)
        try:
            fields = orjson.loads(parts[2])
            name, offset, length = fields["filename"], fields["offset"], fields["length"]
            status = fields.get("status", "-")
            if type(name) is str and offset.isdecimal() and length.isdecimal() and parts[1].isdigit():
                return parts[0], name.encode(), int(offset), int(length), int(parts[1]), self._status(status)
        except (ValueError, KeyError, AttributeError, IndexError, TypeError):
            pass
        return self._careful_row(line)

    def _careful_row(self, line: bytes) -> tuple[bytes, bytes, int, int, int, int]:
        if line.count(b" ") == FIELDS - 1 and not is_cdxj(line):
            line = convert_line(line)
        fields = {name: str(value) for name, value in stored_fields(line).items()}
        key, _, rest = line.partition(b" ")
        timestamp = rest.partition(b" ")[0]
        numbers = [fields.get(name, "").encode("utf-8", "surrogateescape") for name in ("offset", "length")]
        name = fields.get("filename", "").encode("utf-8", "surrogateescape")
        if name in (b"", b"-") or not all(map(_NUMBER.fullmatch, numbers)):
            raise LineError(f"the line has no valid filename, offset and length: {line[:_SHOWN]!r}")
        offset, length = map(int, numbers)
        return key, name, offset, length, _number(timestamp, line), self._status(fields.get("status", "-"))

    def _status(self, value: object) -> int:
        if value in _ABSENT:
            return 0
        text = str(value)
        if text.isascii() and text.isdigit() and int(text[:6]) <= _STATUS_MOST:
            return int(text)
        self.without_status += 1
        return 0

    def _items(self, rows: list[tuple[bytes, bytes, int, int, int, int]]) -> Items:
        keys, names, *columns = zip(*rows, strict=True)
        known = self._archives.numbers
        numbers = [known[name] if name in known else self._archives.number(name) for name in names]
        checks = self._archives.checks
        return keys, capture_tails(keys, [numbers, *columns], [checks[number] for number in numbers])


def _number(value: bytes, line: bytes) -> int:
    if value in (b"", b"-"):
        return 0
    if not _NUMBER.fullmatch(value):
        raise LineError(f"{value[:_SHOWN]!r} is not a number that can be stored: {line[:_SHOWN]!r}")
    return int(value)


def pointer_items(texts: Iterable[bytes], layout: Layout) -> Iterator[Items]:
    """Lines `key TAB pointer` -> items. A pointer is its bytes in hexadecimal digits, or a number per field of `layout`.

    The numbers have tabs, spaces or commas between them. Raises LineError, ValueError.
    """
    for text in texts:
        yield _hex_items(text, layout) or _number_items(text, layout)


def _hex_items(text: bytes, layout: Layout) -> Items | None:
    """The items if all pointers are hexadecimal; None if some are not. A layout of one field has numbers only."""
    if len(layout.fields) == 1:
        return None
    parts = text.replace(b"\t", b"\n").split(b"\n")
    keys, pointers = parts[::2], parts[1::2]
    if text.count(b"\t") != len(keys) or set(map(len, pointers)) != {2 * layout.size}:
        return None
    try:
        data = unhexlify(b"00".join((b"", *pointers)))
    except ValueError:
        return None
    return keys, split_tails(data, layout.size)


def _number_items(text: bytes, layout: Layout) -> Items:
    """The items if each pointer is a number per field of the layout. Raises LineError."""
    width, lines = len(layout.fields), text.split(b"\n")
    tabs = set(map(bytes.count, lines, repeat(b"\t")))
    if tabs == {width}:
        parts = text.replace(b"\n", b"\t").split(b"\t")
        keys, values = parts[:: width + 1], [parts[place :: width + 1] for place in range(1, width + 1)]
        columns = [_integers(b",".join(column)) for column in values]
    else:
        parts = text.replace(b"\n", b"\t").split(b"\t") if tabs == {1} else []
        keys, rests = parts[::2], [rest.translate(_COMMAS) for rest in parts[1::2]]
        counts = set(map(bytes.count, rests, repeat(b",")))
        flat = _integers(b",".join(rests)) if counts == {width - 1} else None
        columns = [flat and flat[place::width] for place in range(width)]
    if {None if column is None else len(column) for column in columns} == {len(lines)}:
        return keys, layout.tails([column for column in columns if column is not None])
    rows = [_row(line, width) for line in lines]
    return [key for key, _ in rows], layout.tails([*zip(*(numbers for _, numbers in rows), strict=True)])


def _integers(text: bytes) -> list[int] | None:
    """Numbers with commas between them; None if there is anything else. orjson is several times as fast as `int`."""
    try:
        found = orjson.loads(b"[%b]" % text)
    except orjson.JSONDecodeError:
        return None
    return found if set(map(type, found)) == {int} else None


def _row(line: bytes, width: int) -> tuple[bytes, list[int]]:
    """The key and the numbers of one line, which may have leading zeros. Raises LineError."""
    key, _, rest = line.partition(b"\t")
    values = rest.translate(_COMMAS).split(b",")
    if not rest or len(values) != width or not all(value.isdigit() for value in values):
        raise LineError(f"expected key, tab and {width} numbers or hexadecimal digits: {line[:_SHOWN]!r}")
    return key, [int(value[:_LONGEST]) if len(value) <= _LONGEST else 1 << 64 for value in values]


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A text in pieces -> the same text in pieces that end with a line, without the last line end. Raises LineError."""
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
            raise LineError(f"a line is longer than {MAX_LINE >> 20} MiB")
    if rest := b"".join(begun):
        yield rest
