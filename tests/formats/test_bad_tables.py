"""Tables of offsets and of sections that are corrupt: each is refused with its reason."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from cdxmill.formats.clusters.sections import format_header, parse_sections
from cdxmill.formats.offset_table import HEADER, OffsetTable, row_format

ROW = row_format("a.warc.gz", "a.warc.zst") % (10, 5, 20, 7)
NEXT = row_format("a.warc.gz", "a.warc.zst") % (15, 5, 27, 7)


def table(*rows: bytes) -> OffsetTable:
    return OffsetTable([[HEADER[:-1]], [row.rstrip(b"\n") for row in rows]])


def test_a_table_of_offsets_is_read() -> None:
    assert table(ROW, NEXT).find(15, 5) == (27, 7)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([ROW, b"a.warc.gz\t15"], "a row has too few or too many fields"),
        ([ROW, NEXT[:-1] + b"\tmore"], "a row has too few or too many fields"),
        ([ROW, NEXT.replace(b"a.warc.gz", b"b.warc.gz")], "of several archives"),
        ([ROW, NEXT.replace(b"a.warc.zst", b"b.warc.zst")], "of several archives"),
        ([ROW, NEXT.replace(b"15", b"1x5")], "a field is not a number"),
        ([ROW, NEXT.replace(b"15", b"9" * 20)], "a field is not a number"),
        ([NEXT, ROW], "do not ascend"),
        ([ROW, ROW], "do not ascend"),
    ],
)
def test_a_corrupt_table_of_offsets_is_refused(rows: list[bytes], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        table(*rows)


@pytest.mark.parametrize("count", [2, 0xFFFF])
def test_a_table_of_sections_that_counts_more_than_it_has_is_refused(count: int) -> None:
    header = format_header([b"abcd"], [b"k"], [1])
    table = struct.pack("<H", count) + header[18:-4]
    sealed = header[:16] + table + crc32(table).to_bytes(4, "little")
    assert len(sealed) == len(header)
    with pytest.raises(ValueError, match="sections is truncated"):
        parse_sections(sealed)
