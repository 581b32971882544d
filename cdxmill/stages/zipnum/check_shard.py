"""A shard of a ZipNum cluster -> what it holds, and what is wrong with its blocks.

The shard alone is read, from its first byte to its last: what an index says serves only to
go on behind a damaged block. Memory is one block.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import lt
from typing import NamedTuple

from cdxmill.formats.gzip_member import inflate_next
from cdxmill.formats.zipnum_index import BlockRef, format_part_line, key_of
from cdxmill.stages.inflate import MemberError, inflate
from cdxmill.stages.window import ReadAt, Window

MAX_BLOCK = 1 << 30
"""Bytes of a block: readers refuse more."""

_QUICK_MEMBER, _QUICK_AHEAD = 1 << 20, 64 << 20
"""Compressed bytes that are looked at at once, and those where an index says that a block has more."""
_QUICK_CONTENT = 256 << 20


class Fault(NamedTuple):
    """Something wrong at an offset of a file; None where it is wrong as a whole."""

    offset: int | None
    reason: str


class CheckedBlock(NamedTuple):
    """A sound block: its number from 1, its range, its lines without their line ends."""

    number: int
    offset: int
    length: int
    lines: list[bytes]


class CheckedShard(NamedTuple):
    """What is in a shard. `part` is what its part has to be.

    `block_lines` is the number of lines of the blocks before the last, 0 where there is only one.
    Where `faults` are told, the rest may not be all.
    """

    size: int
    lines: int
    blocks: int
    sha256: str
    part: bytes
    block_lines: int
    last_lines: int
    first: bytes
    last: bytes
    faults: list[Fault]


def check_shard(
    read_at: ReadAt, name: str, lengths: Mapping[int, int], block_lines: int | None = None
) -> CheckedShard:
    """Read the shard `name` and check all that can be told of it alone.

    `lengths` has the blocks that an index has for it, by offset; they need not be right. Blocks
    have `block_lines` lines, those of the first where that is not known.
    """
    hashed = _Hashed(read_at)
    walk = _Walk(name, block_lines)
    for found in read_blocks(hashed.read_at, lengths):
        if isinstance(found, Fault):
            walk.faults.append(found)
        else:
            walk.take(found)
    return walk.report(hashed)


def read_blocks(read_at: ReadAt, lengths: Mapping[int, int]) -> Iterator[CheckedBlock | Fault]:
    """The blocks of a shard in order; a Fault for each that is damaged, behind which the index shows the way."""
    window = Window(read_at)
    starts = sorted(lengths)
    pos = number = 0
    while window.get(pos, 1):
        number += 1
        try:
            content, end = _block_at(window, pos, lengths.get(pos, 0))
        except MemberError as error:
            yield Fault(pos, f"block {number}: {error}")
            following = bisect_right(starts, pos)
            if following == len(starts):
                return
            pos, number = starts[following], following
            continue
        yield from _as_block(number, pos, end, content, not pos and not window.get(end, 1))
        pos = end


def _as_block(
    number: int, pos: int, end: int, content: bytes, is_all: bool
) -> Iterator[CheckedBlock | Fault]:
    lines = content.split(b"\n")
    if not lines.pop():
        if lines:
            yield CheckedBlock(number, pos, end - pos, lines)
        elif not is_all:  # a shard without lines is an empty member
            yield Fault(pos, f"block {number}: holds no lines")
    else:
        yield Fault(pos, f"block {number}: its last line has no line end")


def _block_at(window: Window, pos: int, length: int) -> tuple[bytes, int]:
    """The content of the block at `pos` and the offset behind it. Raises MemberError."""
    buffer, index = window.at(pos, max(_QUICK_MEMBER, min(length, _QUICK_AHEAD)))
    found = inflate_next(buffer, index, _QUICK_CONTENT)
    if found is not None:
        return bytes(found[0]), pos + found[1] - index
    member = inflate(window, pos)
    pieces, size = [], 0
    for piece in member:
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BLOCK:
            raise MemberError(f"it holds more than {MAX_BLOCK >> 30} GiB, which readers refuse", pos)
    return b"".join(pieces), member.end


class _Hashed:
    """Reads, with the SHA-256 and the number of all bytes as they come, each once and in order."""

    def __init__(self, read_at: ReadAt) -> None:
        self._read_at = read_at
        self.digest = hashlib.sha256()
        self.size = 0

    def read_at(self, offset: int, size: int) -> bytes:
        data = self._read_at(offset, size)
        if offset <= self.size < offset + len(data):
            self.digest.update(memoryview(data)[self.size - offset :])
            self.size = offset + len(data)
        return data


class _Walk:
    """Takes the blocks of a shard one after the other, and sums them up."""

    def __init__(self, name: str, block_lines: int | None) -> None:
        self._name = name.encode()
        self._wanted = block_lines
        self._part: list[bytes] = []
        self._lines = self._block_lines = 0
        self._before: CheckedBlock | None = None
        self._first = self._last = b""
        self.faults: list[Fault] = []

    def take(self, block: CheckedBlock) -> None:
        """The next block."""
        if self._before is not None:
            self._count(self._before)
        self._check_order(block)
        if not self._part:
            self._first = block.lines[0]
        ref = BlockRef(key_of(block.lines[0]), self._name, block.offset, block.length)
        self._part.append(format_part_line(ref))
        self._lines += len(block.lines)
        self._last = block.lines[-1]
        self._before = block

    def _count(self, block: CheckedBlock) -> None:
        """A block before the last has as many lines as all others."""
        count = len(block.lines)
        self._block_lines = self._block_lines or count
        self._wanted = self._wanted or count
        if count != self._wanted:
            self._tell(block, f"has {count} lines, not {self._wanted}")

    def _check_order(self, block: CheckedBlock) -> None:
        lines = block.lines
        if not lines[0]:
            self._tell(block, "begins with an empty line")
        elif self._part and lines[0] <= self._last:
            self._tell(block, f"begins with {_told(self._last, lines[0])}")
        if not all(map(lt, lines, islice(lines, 1, None))):
            number = next(number for number in range(1, len(lines)) if lines[number - 1] >= lines[number])
            self._tell(block, f"line {number + 1} is {_told(lines[number - 1], lines[number])}")

    def _tell(self, block: CheckedBlock, reason: str) -> None:
        self.faults.append(Fault(block.offset, f"block {block.number}: {reason}"))

    def report(self, read: _Hashed) -> CheckedShard:
        """All that was taken."""
        last_lines = len(self._before.lines) if self._before is not None else 0
        if self._before is not None and self._wanted and last_lines > self._wanted:
            self._tell(self._before, f"has {last_lines} lines, not {self._wanted} or fewer")
        return CheckedShard(
            read.size,
            self._lines,
            len(self._part),
            read.digest.hexdigest(),
            b"".join(self._part),
            self._block_lines,
            last_lines,
            self._first,
            self._last,
            self.faults,
        )


def _told(before: bytes, line: bytes) -> str:
    """What is wrong with a line behind another."""
    if line == before:
        return f"the same line as the one before it, {line[:80]!r}"
    return f"out of order: {line[:80]!r} behind {before[:80]!r}"
