"""Lines of an index -> columns in Arrow's layout, which pyarrow takes without a copy. `native/columns.c` does the same."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cdxmill.formats.lines.table_row import COLUMNS, TEXTS, Row, read_row
from cdxmill.stages import native


class ColumnBuffers(NamedTuple):
    """A column. A bit of `valid` says whether a row has a value (None: all have one), the first row in the lowest bit.

    A text is in `values` between two of the `offsets`, which are int32. A column without offsets has numbers, int64.
    """

    valid: bytes | None
    offsets: bytes | None
    values: bytes


class LineColumns:
    """Makes columns of lines, and counts the values in `lost` that a table cannot have, by column."""

    def __init__(self, compiled: bool = True) -> None:
        self.lost = Counter[str]()
        self.lines = 0
        """Lines with such values."""
        self._make = native.capture_columns if compiled else None

    def columns_of(self, lines: list[bytes]) -> dict[str, ColumnBuffers]:
        """The columns by name, those of COLUMNS. Requires: the lines have less than 2 GiB."""
        if self._make is None:
            return _columns([self._row(line) for line in lines])
        made = self._make(lines, self._row)
        return {name: ColumnBuffers(*found) for name, found in zip(COLUMNS, made, strict=True)}

    def _row(self, line: bytes) -> Row:
        row, lost = read_row(line)
        if lost:
            self.lines += 1
            self.lost.update(lost)
        return row


def _columns(rows: list[Row]) -> dict[str, ColumnBuffers]:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    return {
        name: text_column(column) if name in TEXTS else _numbers(column)
        for name, column in zip(COLUMNS, values, strict=True)
    }


def text_column(column: Sequence[bytes | int | None]) -> ColumnBuffers:
    """A column of texts, of less than 2 GiB."""
    offsets, end = array("i", [0]), 0
    found = [value if isinstance(value, bytes) else b"" for value in column]
    for text in found:
        end += len(text)
        offsets.append(end)
    return ColumnBuffers(_valid(column), offsets.tobytes(), b"".join(found))


def _numbers(column: tuple[bytes | int | None, ...]) -> ColumnBuffers:
    numbers = array("q", [value if isinstance(value, int) else 0 for value in column])
    return ColumnBuffers(_valid(column), None, numbers.tobytes())


def _valid(column: Sequence[bytes | int | None]) -> bytes | None:
    if None not in column:
        return None
    bits = bytearray((len(column) + 7) // 8)
    for row, value in enumerate(column):
        bits[row // 8] |= (value is not None) << row % 8
    return bytes(bits)
