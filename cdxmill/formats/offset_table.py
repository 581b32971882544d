"""A table of the records of an archive that was written again: where each was, and where it is now.

A row per record, tab-separated, after a row of COLUMNS. The names of the two archives are the same in all rows. Records
are in the order of the archive, so old offsets ascend.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain, pairwise

from cdxmill.formats.own_records import format_row, parse_row

COLUMNS = ["filename", "offset", "length", "new filename", "new offset", "new length"]
HEADER = format_row(COLUMNS)


def row_format(filename: str, new: str) -> bytes:
    """The format of the rows of an archive: for `%`, with the four numbers of a row.

    >>> row_format("a.warc.gz", "a.warc.zst") % (0, 12, 0, 10)
    b'a.warc.gz\\t0\\t12\\ta.warc.zst\\t0\\t10\\n'
    """
    names = (format_row([name])[:-1].replace(b"%", b"%%") for name in (filename, new))
    return b"%b\t%%d\t%%d\t%b\t%%d\t%%d\n" % tuple(names)


class OffsetTable:
    """The rows of a table, 32 bytes of memory each."""

    def __init__(self, lists: Iterable[list[bytes]]) -> None:
        """Take the rows, in lists. Raises ValueError if they are no such table of one archive."""
        self._names: tuple[bytes, bytes] | None = None
        self._numbers = tuple(array("q") for _ in range(4))
        rows = iter(lists)
        first = next(rows, [])
        if first[:1] != [HEADER[:-1]]:
            raise ValueError("is not a table of offsets")
        for some in chain((first[1:],), rows):
            if some:
                self._take(some)
        if any(one >= two for one, two in pairwise(self._numbers[0])):
            raise ValueError("is a corrupt table of offsets: they do not ascend")

    def _take(self, rows: list[bytes]) -> None:
        fields = b"\t".join(rows).split(b"\t")
        if len(fields) != len(COLUMNS) * len(rows):
            raise ValueError("is a corrupt table of offsets: a row has too few or too many fields")
        names, offsets, lengths, new_names, *new = (fields[column :: len(COLUMNS)] for column in range(6))
        self._names = self._names or (names[0], new_names[0])
        if ({*names}, {*new_names}) != ({self._names[0]}, {self._names[1]}):
            raise ValueError("is a table of offsets of several archives")
        try:
            for numbers, column in zip(self._numbers, (offsets, lengths, *new), strict=True):
                numbers.extend(map(int, column))
        except (ValueError, OverflowError):
            raise ValueError("is a corrupt table of offsets: a field is not a number") from None

    def find(self, offset: int, length: int | None) -> tuple[int, int] | None:
        """The new offset and length of the record at `offset`; None if there is none, or if it has another length.

        If `length` is None, it may have any.
        """
        offsets, lengths, new_offsets, new_lengths = self._numbers
        row = bisect_left(offsets, offset)
        if row == len(offsets) or offsets[row] != offset or length not in (None, lengths[row]):
            return None
        return new_offsets[row], new_lengths[row]


def names_of(row: bytes) -> tuple[bytes, bytes]:
    """The name of the archive, and of the new archive, in a row. Raises ValueError."""
    fields = parse_row(row)
    if len(fields) != len(COLUMNS):
        raise ValueError("is not a table of offsets")
    filename, new = fields[0], fields[3]
    return filename.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape")
