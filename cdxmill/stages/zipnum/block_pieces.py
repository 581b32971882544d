"""A block of a shard -> its text in pieces, from its start or from one of its sections.

compressed   ##########|##########|##########      its sections, or all of it
text         [........................]...         inflated piece by piece, only as far as pieces are taken
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from threading import Lock
from typing import ClassVar

from isal import isal_zlib

from cdxmill.formats.clusters.sections import HEAD, Sections, header_bytes, parse_sections
from cdxmill.formats.clusters.zipnum import MAX_BLOCK, BlockRef
from cdxmill.stages.zipnum.kept_keys import key_digests, may_have, plain_key
from cdxmill.stages.zipnum.kept_texts import BlockMemory
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

ReadShard = Callable[[bytes, int, int], bytes]
"""(shard, offset, size) -> bytes of the shard, fewer at its end."""

JOINED = 8 << 20
"""Maximum bytes of sections or neighboring blocks in one read, about 30 blocks of 3000 lines. A larger block is read alone."""
_PIECE = 1 << 14
"""Compressed bytes per piece, about 80 KiB of text. 8 to 16 KiB take the same time. Smaller pieces need more calls, and
larger ones inflate more text after the answer (24 KiB: 2 %, 32 KiB: 5 % more time)."""
_SECTION_PIECE = 1 << 12
"""The same for the last section of an answer, of which half is needed on average."""
_WHOLE_SECTION = 1 << 17
"""The same for the other sections: usual ones are inflated at once, and none can fill the memory."""
_SMALL = 1 << 15
"""Bytes of a block that is read whole: over a network, that takes less time than a second request."""


_WHOLE = -1
"""In place of the number of a section: all of the block."""
_MOST_TABLES = 4096
"""Tables that are kept, of up to 2 KiB each as a rule."""


_MOST_KEPT = 1 << 20
"""Compressed bytes of a block or section whose text may be kept."""


class Tables:
    """What is known of the blocks of a cluster: their tables of sections, and which shards have blocks without one.

    With `memory`, what is needed again of the blocks is kept there. Threads may share it.
    """

    def __init__(self, memory: BlockMemory | None = None) -> None:
        self.of_blocks: dict[BlockRef, Sections] = {}
        self.without: set[bytes] = set()
        self.memory = memory
        self._lock = Lock()

    def add(self, block: BlockRef, sections: Sections) -> None:
        """Remember the table of a block, in place of an older one if there are too many."""
        with self._lock:
            while len(self.of_blocks) >= _MOST_TABLES:
                del self.of_blocks[next(iter(self.of_blocks))]
            self.of_blocks[block] = sections

    def kept(self, block: BlockRef, part: int = _WHOLE) -> bytes | None:
        """The text of a section of a block, or of all of it, if it was needed twice."""
        return None if self.memory is None else self.memory.texts.get((self, block, part))

    def lacks(self, block: BlockRef, key: bytes, part: int = _WHOLE) -> bool:
        """Whether it is known that a section of a block, or all of it, has no line of a key."""
        digests = None if self.memory is None else self.memory.keys.get((self, block, part))
        return digests is not None and not may_have(digests, key)

    def keep(
        self, block: BlockRef, size: int, pieces: Iterator[bytes], part: int = _WHOLE
    ) -> Iterator[bytes]:
        """The pieces of a text of `size` compressed bytes. One that is needed often is kept, or its keys, and comes in one piece."""
        memory, key = self.memory, (self, block, part)
        if memory is None or size > _MOST_KEPT:
            return pieces
        wants_text, wants_keys = memory.texts.is_wanted(key), memory.keys.is_wanted(key)
        if not (wants_text or wants_keys):
            return pieces
        made, length = [], 0
        for piece in pieces:
            made.append(piece)
            length += len(piece)
            if length > memory.texts.largest:
                break
        text = b"".join(made)
        if wants_text:
            memory.texts.add(key, text)
        if wants_keys:
            memory.keys.add(key, key_digests(text) if length <= memory.texts.largest else None)
        return chain((text,), pieces)


class BlockPieces:
    """The pieces of `block`, read by `read`. A corrupt block raises DamagedCluster, here or while pieces are taken.

    If each read costs a request, a block without sections is best read `at_once`. What is found out is added to `tables`.
    """

    may_have_sections: ClassVar[bool] = True

    def __init__(self, block: BlockRef, read: ReadShard, tables: Tables, at_once: bool = False) -> None:
        check_length(block)
        self.block = block
        self._read, self._tables, self._at_once = read, tables, at_once
        self._size = 0
        self.sections: Sections | None = None
        self.section = 0
        """The number of the section that the last piece is of."""
        self.is_whole = False
        """Whether the last piece ends the block."""
        self.beyond = b""
        """If the last piece ends a section that is not the last one, the key of the next."""

    def is_beyond(self, low: bytes, high: bytes) -> bool | None:
        """None, unless it is known that the block has no line >= `low` and < `high`: then, whether it has one >= `high`."""
        key = None if self._tables.memory is None else plain_key(low, high)
        if key is None:
            return None
        sections = self._tables.of_blocks.get(self.block)
        if sections is None:
            return False if self._tables.lacks(self.block, key) else None
        first, end = sections.containing(low, high)
        if not all(self._tables.lacks(self.block, key, part) for part in range(first, end)):
            return None
        return end < len(sections.keys)

    def opened(self, low: bytes, high: bytes) -> Iterator[bytes]:
        """The first pieces for a search. Reads the table of sections, if there is one and it is not known."""
        length = self.block.length
        self.sections = self._tables.of_blocks.get(self.block)
        if self.sections is not None:
            return self.from_section(self.sections, *self.sections.containing(low, high))
        if (text := self._tables.kept(self.block)) is not None:
            self.is_whole = True
            return iter((text,))
        first = HEAD if self._at_once else _PIECE  # without sections, a piece is needed next
        head = self._read_exactly(0, length if length <= _SMALL else first)
        size = header_bytes(head)
        if len(head) < size <= length:
            head += self._read_exactly(len(head), size - len(head))
        with suppress(ValueError):  # the lines do not depend on the table; `verify` reports it
            self.sections = parse_sections(head, length)
        if self.sections is None:
            self._tables.without.add(self.block.shard)
            pieces = self._checked(self._inflated(head), self.block.key)
            return self._tables.keep(self.block, length, pieces)
        key, listed = self.block.key, self.sections.keys[0]
        if not (key.startswith(listed) or listed.startswith(key)):
            raise self._wrong_key(key)
        self._tables.add(self.block, self.sections)
        return self.from_section(self.sections, *self.sections.containing(low, high), head)

    def from_section(self, sections: Sections, first: int, end: int, head: bytes = b"") -> Iterator[bytes]:
        """The text from section `first`. Those up to `end` are read together. `head` is the start of the block."""
        data, begin = memoryview(head), 0
        for number in range(first, len(sections.keys)):
            self.section, self.beyond = number, b""
            start, stop = sections.starts[number : number + 2]
            if (text := self._tables.kept(self.block, number)) is not None:
                self._end_section(sections, number)
                yield text
                continue
            if begin + len(data) < stop:
                until = sections.starts[max(end, number + 1)]
                data, begin = (
                    memoryview(self._read_exactly(start, max(stop, min(until, start + JOINED)) - start)),
                    start,
                )
            section = data[start - begin : stop - begin]
            if isal_zlib.crc32(section) != sections.checksums[number]:
                raise self.corrupt(f"the CRC32 of its section {number + 1} does not match")
            step = min(len(section), _WHOLE_SECTION) if number + 1 < end else _SECTION_PIECE
            pieces = self._section_text(sections, number, section, step)
            yield from self._tables.keep(self.block, len(section), pieces, number)

    def _section_text(self, sections: Sections, number: int, data: memoryview, step: int) -> Iterator[bytes]:
        """The text of a section, in pieces of `step` compressed bytes. Runs for every lookup."""
        inflater, key = isal_zlib.decompressobj(wbits=-15), sections.keys[number]
        size, is_last = len(data), number + 1 == len(sections.keys)
        for pos in range(0, size, step):
            piece = self._piece(inflater, data[pos : pos + step])
            if pos == 0 and piece[: len(key)] != key[: len(piece)]:
                raise self._wrong_key(key)
            if pos + step >= size:
                if inflater.eof != is_last or inflater.unused_data:
                    raise self.corrupt(f"its section {number + 1} does not end where its table says")
                self._end_section(sections, number)
            yield piece

    def _end_section(self, sections: Sections, number: int) -> None:
        """The last piece ends a section."""
        self.is_whole = number + 1 == len(sections.keys)
        self.beyond = b"" if self.is_whole else sections.keys[number + 1]

    def _checked(self, pieces: Iterator[bytes], key: bytes) -> Iterator[bytes]:
        """The text in pieces. Raises DamagedCluster if it does not begin with the key of the block."""
        start = b""
        for piece in pieces:
            start += piece
            if len(start) > len(key):
                break
        if not start.startswith(key):
            raise self._wrong_key(key)
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
            self.is_whole = inflater.eof
            if self.is_whole != (pos + wanted == length) or inflater.unused_data:
                raise self.corrupt(f"its {length} bytes are not one gzip member")
            yield piece

    def _piece(self, inflater: isal_zlib.Decompress, data: bytes | memoryview) -> bytes:
        try:
            piece: bytes = inflater.decompress(data)
        except isal_zlib.IsalError as error:  # type: ignore[misc]
            raise self.corrupt(str(error)) from None
        self._size += len(piece)
        if self._size > MAX_BLOCK:
            raise self.corrupt("it has more than 1 GiB of lines")
        return piece

    def _read_exactly(self, start: int, size: int) -> bytes:
        """The `size` bytes from `start` of the block."""
        _, shard, offset, length = self.block
        data = self._read(shard, offset + start, size)
        if len(data) < size:
            raise self.corrupt(f"the shard ends before its {length} bytes")
        return data

    def _wrong_key(self, key: bytes) -> DamagedCluster:
        why = f"the block does not begin with its key {key[:80]!r}"
        return _damaged(self.block, f"{why}; index and shard are from different clusters")

    def corrupt(self, reason: str) -> DamagedCluster:
        """The error for the block."""
        return _damaged(self.block, f"the block is corrupt ({reason})")


def check_length(block: BlockRef) -> None:
    """Raise DamagedCluster if the length of a block is impossible, before it is read."""
    if block.length > MAX_BLOCK:
        raise _damaged(block, f"the block is corrupt ({block.length} bytes are too many for a block)")


def _damaged(block: BlockRef, why: str) -> DamagedCluster:
    return DamagedCluster(f"{block.shard.decode(errors='replace')}@{block.offset}: {why}", why)
