"""The sections of a ZipNum block: parts of a gzip member that can be decompressed alone.

A block is one gzip member, which every reader can read from its start. Where a section begins, the compressor has
forgotten all text before (a full flush of deflate), so a reader that knows the place can begin there. The places are in
the "extra field" of the member's header (RFC 1952), in a subfield of its own:

    1f 8b 08 04 00 00 00 00 00 ff | XLEN 2 | "ZS" LEN 2 table | section | section | ... | CRC-32 4 | ISIZE 4

    table     COUNT 2 | for each section: SIZE 4, CRC-32 4 | key LF key ... | CRC-32 of the table up to here 4

All numbers are little-endian. SIZE is the number of compressed bytes of a section, and the CRC-32 is that of these
bytes. The first key is that of the block. Each other key is the shortest text that is greater than the last line before
the section, and not greater than its first line. A key of more than 255 bytes is cut, if it is the first one; before any
other, no section begins.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

SECTION_LINES = 500
"""Lines of a section. With 300 lines, shards are 0.8 % larger, and half as much is decompressed too much."""
MOST_SECTIONS = 64
"""Sections of a block, at most. So a table has at most 17 KiB, and an extra field cannot have more than 64 KiB."""
HEAD = 1 << 12
"""Bytes from the start of a block that have nearly every table."""

_HEADER = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff"
_FLAGGED, _PLAIN = _HEADER[:4], 12
_NAME = b"ZS"
_LONGEST_KEY = 255
TRAILER = 8
"""Bytes after the last section."""
FLUSHED = b"\0\0\xff\xff"
"""The end of every section but the last."""


class Sections(NamedTuple):
    """Where the sections of a block begin, and where the last one ends: offsets in the block.

    No line of a section is less than its key, and all lines before it are.
    """

    keys: list[bytes]
    starts: list[int]
    checksums: Sequence[int]

    def containing(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The first section that may have lines >= `low` and < `high`, and the one after the last.

        >>> Sections([b"a", b"d", b"g"], [0, 1, 2, 3], [0, 0, 0]).containing(b"e", b"g")
        (1, 2)
        """
        first = max(bisect_right(self.keys, low) - 1, 0)
        return first, max(bisect_left(self.keys, high), first + 1)


def cut_sections(text: bytes | bytearray, lines: int, section_lines: int) -> list[int]:
    r"""Where sections of about `section_lines` lines begin in a text of `lines` lines: offsets, the first of which is 0.

    >>> cut_sections(b"a\nb\nc\nd\n", 4, 2), cut_sections(b"a\nb\n", 2, 2), cut_sections(b"a\nb\n", 2, 0)
    ([0, 4], [0], [0])
    """
    count = min(-(-lines // section_lines), MOST_SECTIONS) if section_lines else 1
    starts = [0]
    for number in range(1, count):
        start = text.find(b"\n", len(text) * number // count - 1) + 1
        if starts[-1] < start < len(text) and len(_key_at(text, start)) <= _LONGEST_KEY:
            starts.append(start)
    return starts


def section_keys(text: bytes | bytearray, starts: Sequence[int], key: bytes) -> list[bytes]:
    r"""The keys of sections that begin at `starts` of the text of a block with this `key`.

    >>> section_keys(b"com,a)/x\ncom,a)/y\ncom,b)/\n", [0, 9, 18], b"com,a)/x")
    [b'com,a)/x', b'com,a)/y', b'com,b']
    """
    return [key[:_LONGEST_KEY], *(_key_at(text, start) for start in starts[1:])]


def _key_at(text: bytes | bytearray, start: int) -> bytes:
    """The shortest start of the line at `start` that is greater than the line before."""
    before = text[text.rfind(b"\n", 0, start - 1) + 1 : start - 1]
    line = text[start : text.find(b"\n", start)]
    for size, (byte, other) in enumerate(zip(line, before)):  # noqa: B905 - nodes may have Python 3.9
        if byte != other:
            return bytes(line[: size + 1])
    return bytes(line[: len(before) + 1])


def format_header(sections: Sequence[bytes], keys: Sequence[bytes], checksums: Sequence[int]) -> bytes:
    """The header of a member with these compressed sections."""
    numbers = [number for pair in zip(map(len, sections), checksums) for number in pair]  # noqa: B905 - as above
    table = struct.pack(f"<H{len(numbers)}I", len(sections), *numbers) + b"\n".join(keys)
    field = struct.pack("<2sH", _NAME, len(table) + 4) + table + struct.pack("<I", crc32(table))
    return _HEADER + struct.pack("<H", len(field)) + field


def format_trailer(checksum: int, size: int) -> bytes:
    """The trailer of a member whose text has this CRC-32 and size."""
    return struct.pack("<II", checksum, size % (1 << 32))


def header_bytes(head: bytes) -> int:
    """The bytes of a header with an extra field that begins with `head`; 0 for other members, or for less than 12 bytes."""
    return (
        _PLAIN + int.from_bytes(head[10:12], "little") if head[:4] == _FLAGGED and len(head) >= _PLAIN else 0
    )


def parse_sections(head: bytes, length: int | None = None) -> Sections | None:
    """The sections of a block of `length` bytes, if that is known, from its start; None if it has no table.

    Requires: `head` has the `header_bytes`. Raises ValueError if the table is corrupt.

    >>> header = format_header([b"abcd", b"efg"], [b"a", b"b"], [1, 2])
    >>> size = len(header)
    >>> parse_sections(header, size + 7 + TRAILER) == Sections([b"a", b"b"], [size, size + 4, size + 7], (1, 2))
    True
    """
    end = header_bytes(head)
    name, size = struct.unpack_from("<2sH", head, _PLAIN) if _PLAIN + 4 <= end <= len(head) else (b"", 0)
    if name != _NAME or _PLAIN + 4 + size != end:
        return None
    table, checksum = head[_PLAIN + 4 : end - 4], head[end - 4 : end]
    if len(table) < 2 or crc32(table) != int.from_bytes(checksum, "little"):
        raise ValueError("the CRC32 of its table of sections does not match")
    return _parse_table(table, end, length)


def _parse_table(table: bytes, end: int, length: int | None) -> Sections:
    count = int.from_bytes(table[:2], "little")
    if len(table) < 2 + 8 * count:
        raise ValueError("its table of sections is truncated")
    numbers = struct.unpack_from(f"<{2 * count}I", table, 2)
    keys = table[2 + 8 * count :].split(b"\n")
    starts = list(accumulate(numbers[::2], initial=end))
    is_right = len(keys) == count and keys == sorted(keys) and all(numbers[::2])
    if not count or not is_right or length not in (None, starts[-1] + TRAILER):
        raise ValueError("its table of sections is invalid")
    return Sections(keys, starts, numbers[1::2])
