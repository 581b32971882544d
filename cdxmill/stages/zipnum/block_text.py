"""The text of one block of a shard, inflated only where it is needed.

    compressed   ##########|##########|####......      its sections, or all of it; inflated piece by piece
    text                   [........................]  kept from the last line start that may still be needed

Searches come in ascending order. Text before the start of the last search is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from isal import isal_zlib

from cdxmill.formats.clusters.sections import HEAD, Sections, header_bytes, parse_sections
from cdxmill.formats.clusters.zipnum import MAX_BLOCK, BlockRef
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

ReadShard = Callable[[bytes, int, int], bytes]
"""(shard, offset, size) -> bytes of the shard, fewer at its end."""
Tables = MutableMapping[tuple[bytes, int, int], Sections]
"""The tables of blocks, by shard, offset and length."""

JOINED = 8 << 20
"""Maximum bytes of sections or neighboring blocks in one read, about 30 blocks of 3000 lines. A larger block is read alone."""
_PIECE = 1 << 14
"""Compressed bytes per piece, about 80 KiB of text. 8 to 16 KiB take the same time. Smaller pieces need more calls, and
larger ones inflate more text after the answer (24 KiB: 2 %, 32 KiB: 5 % more time)."""
_SECTION_PIECE = 1 << 12
"""The same for the last section of an answer, of which half is needed on average."""
_SMALL = 1 << 15
"""Bytes of a block that is read whole: over a network, that takes less time than a second request."""


class BlockText:
    """The text of `block`, read by `read`. A corrupt block raises DamagedCluster, here or while it is read.

    If each read costs a request, a block without sections is best read `at_once`. `tables` has the tables of sections
    that were read before.
    """

    def __init__(
        self, block: BlockRef, read: ReadShard, tables: Tables | None = None, at_once: bool = False
    ) -> None:
        check_length(block)
        self.block = block
        self._read, self._at_once = read, at_once
        self._tables: Tables = {} if tables is None else tables
        self._pieces: Iterator[bytes] | None = None
        self._sections: Sections | None = None
        self._section = self._size = 0
        self._text = bytearray()
        self._is_whole = False
        self._floor = b""
        self._beyond = b""  # if all lines before a section are inflated, and none of it, the section's key
        self._first_read = HEAD

    def expect_no_sections(self) -> None:
        """Read a whole piece first: other blocks of the shard have no sections."""
        self._first_read = _PIECE

    @property
    def is_without(self) -> bool:
        """Whether a search has found that the block has no sections."""
        return self._pieces is not None and self._sections is None

    @property
    def has_sections(self) -> bool:
        """Whether a search has found that the block has sections."""
        return self._sections is not None

    def can_answer(self, low: bytes) -> bool:
        """Whether the text from `low` was not dropped yet."""
        return low >= self._floor

    def between(self, low: bytes, high: bytes) -> tuple[list[bytes], bool]:
        """The lines >= `low` and < `high`, and whether the block contains a line >= `high`.

        Requires: `low` is not less than in any earlier search.
        """
        first, last = self._find(low, high)
        lines = bytes(self._text[first:last]).split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines, self._has_after(last, high)

    def count(self, low: bytes, high: bytes) -> tuple[int, bool]:
        """Like `between`, but only the number of lines."""
        first, last = self._find(low, high)
        end = last == len(self._text) and last > first and not self._text.endswith(b"\n")
        return self._text.count(b"\n", first, last) + end, self._has_after(last, high)

    def _has_after(self, last: int, high: bytes) -> bool:
        """Whether there are lines >= `high`, which begin at `last` in the text or are not inflated."""
        return last < len(self._text) or self._beyond >= high

    def _find(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The start and end of the lines >= `low` and < `high` in the text."""
        self._floor = low
        if not self._is_whole and not self._reaches(high):
            self._inflate_to(low, high)
        first = self._first_at(low, 0)
        return first, self._first_at(high, first)

    def _inflate_to(self, low: bytes, high: bytes) -> None:
        """Inflate up to a whole line >= `high`. Drop pieces whose lines are all < `low`."""
        for piece in self._pieces_for(low, high):
            end = piece.rfind(b"\n")
            start = piece.rfind(b"\n", 0, end) + 1 if end > 0 else 0
            if start and piece[start:end] < low:
                self._text = bytearray(piece[end + 1 :])
            else:
                self._text += piece
            if self._reaches(high):
                return
        if not self._is_whole:
            raise self._corrupt("as reported before")

    def _reaches(self, high: bytes) -> bool:
        """Whether all lines < `high` are inflated: a whole line >= `high` is in the text, or a section's key follows it."""
        end = self._text.rfind(b"\n")
        is_in_text = end >= 0 and self._text[self._text.rfind(b"\n", 0, end) + 1 : end] >= high
        return is_in_text or self._beyond >= high

    def _pieces_for(self, low: bytes, high: bytes) -> Iterator[bytes]:
        """The next pieces of the text. Sections whose lines are all < `low` are skipped."""
        if self._pieces is None:
            self._pieces = self._opened(low, high)
        elif self._sections is not None:
            first, end = self._sections.containing(low, high)
            if first > self._section:
                self._text.clear()
                self._pieces = self._from_section(self._sections, first, end)
        return self._pieces

    def _opened(self, low: bytes, high: bytes) -> Iterator[bytes]:
        """The first pieces for a search. Reads the table of sections, if there is one and it is not known."""
        _, shard, offset, length = self.block
        self._sections = self._tables.get((shard, offset, length))
        if self._sections is not None:
            return self._from_section(self._sections, *self._sections.containing(low, high))
        head = self._read_exactly(0, length if length <= _SMALL else self._first_read)
        size = header_bytes(head)
        if len(head) < size <= length:
            head += self._read_exactly(len(head), size - len(head))
        try:
            self._sections = parse_sections(head, length)
        except ValueError as error:
            raise self._corrupt(str(error)) from None
        if self._sections is None:
            return self._checked(self._inflated(head), self.block.key)
        self._tables[shard, offset, length] = self._sections
        return self._from_section(self._sections, *self._sections.containing(low, high), head)

    def _from_section(self, sections: Sections, first: int, end: int, head: bytes = b"") -> Iterator[bytes]:
        """The text from section `first`. Those up to `end` are read together. `head` is the start of the block."""
        data, begin = memoryview(head), 0
        for number in range(first, len(sections.keys)):
            self._section, self._beyond = number, b""
            start, stop = sections.starts[number : number + 2]
            if begin + len(data) < stop:
                until = sections.starts[max(end, number + 1)]
                data, begin = (
                    memoryview(self._read_exactly(start, max(stop, min(until, start + JOINED)) - start)),
                    start,
                )
            section = data[start - begin : stop - begin]
            if isal_zlib.crc32(section) != sections.checksums[number]:
                raise self._corrupt(f"the CRC32 of its section {number + 1} does not match")
            pieces = self._section_text(sections, number, section, number + 1 < end)
            yield from self._checked(pieces, sections.keys[number])

    def _section_text(
        self, sections: Sections, number: int, data: memoryview, at_once: bool
    ) -> Iterator[bytes]:
        """The text of a section, in pieces or `at_once`."""
        inflater = isal_zlib.decompressobj(wbits=-15)
        is_last = number + 1 == len(sections.keys)
        step = len(data) if at_once else _SECTION_PIECE
        for pos in range(0, len(data), step):
            piece = self._piece(inflater, data[pos : pos + step])
            if pos + step >= len(data):
                if inflater.eof != is_last or inflater.unused_data:
                    raise self._corrupt(f"its section {number + 1} does not end where its table says")
                self._is_whole = is_last
                self._beyond = b"" if is_last else sections.keys[number + 1]
            yield piece

    def _checked(self, pieces: Iterator[bytes], key: bytes) -> Iterator[bytes]:
        """The text in pieces. Raises DamagedCluster if it does not begin with the key of the block or section."""
        start = b""
        for piece in pieces:
            start += piece
            if len(start) > len(key):
                break
        if not start.startswith(key):
            why = f"the block does not begin with its key {key[:80]!r}"
            raise _damaged(self.block, f"{why}; index and shard are from different clusters")
        yield start
        yield from pieces

    def _inflated(self, head: bytes) -> Iterator[bytes]:
        """The text of a block without sections, in pieces. `head` is its start."""
        inflater, length = isal_zlib.decompressobj(wbits=31), self.block.length
        if self._at_once and len(head) < length:
            head += self._read_exactly(len(head), length - len(head))
        for pos in range(0, max(length, 1), _PIECE):
            data = head[pos : pos + _PIECE]
            wanted = min(_PIECE, length - pos)
            if len(data) < wanted:
                data += self._read_exactly(pos + len(data), wanted - len(data))
            piece = self._piece(inflater, data)
            self._is_whole = inflater.eof
            if self._is_whole != (pos + wanted == length) or inflater.unused_data:
                raise self._corrupt(f"its {length} bytes are not one gzip member")
            yield piece

    def _piece(self, inflater: isal_zlib.Decompress, data: bytes | memoryview) -> bytes:
        try:
            piece: bytes = inflater.decompress(data)
        except isal_zlib.IsalError as error:  # type: ignore[misc]
            raise self._corrupt(str(error)) from None
        self._size += len(piece)
        if self._size > MAX_BLOCK:
            raise self._corrupt("it has more than 1 GiB of lines")
        return piece

    def _read_exactly(self, start: int, size: int) -> bytes:
        """The `size` bytes from `start` of the block."""
        _, shard, offset, length = self.block
        data = self._read(shard, offset + start, size)
        if len(data) < size:
            raise self._corrupt(f"the shard ends before its {length} bytes")
        return data

    def _first_at(self, key: bytes, left: int) -> int:
        """The offset of the first line >= `key`, searched from `left`. The end of the text if there is none."""
        text, size = self._text, len(key)
        right = len(text)  # lines before `left` are < `key`, lines from `right` are not
        while left < right:
            start = text.rfind(b"\n", left, (left + right) // 2) + 1 or left
            end = text.find(b"\n", start, start + size)
            if text[start : end if end >= 0 else start + size] < key:
                left = text.find(b"\n", start) + 1 or len(text)
            else:
                right = start
        return left

    def _corrupt(self, reason: str) -> DamagedCluster:
        return _damaged(self.block, f"the block is corrupt ({reason})")


def check_length(block: BlockRef) -> None:
    """Raise DamagedCluster if the length of a block is impossible, before it is read."""
    if block.length > MAX_BLOCK:
        raise _damaged(block, f"the block is corrupt ({block.length} bytes are too many for a block)")


def _damaged(block: BlockRef, why: str) -> DamagedCluster:
    return DamagedCluster(f"{block.shard.decode(errors='replace')}@{block.offset}: {why}")
