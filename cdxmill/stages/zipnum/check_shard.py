"""A shard of a ZipNum cluster -> its contents and the faults of its blocks.

Only the shard is read, from its first byte to its last. The index serves only to continue after a corrupt block.
Memory: one block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple

from cdxmill.formats.archives.small_member import inflate_member, inflate_next
from cdxmill.formats.clusters.sections import cut_sections
from cdxmill.formats.clusters.zipnum import MAX_BLOCK, BlockRef, format_part_line, key_of
from cdxmill.messages import count
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.window import CHUNK, MemberError, ReadAt, SummedReads, Window, inflate
from cdxmill.stages.zipnum.sectioned_block import SectionedBlock, read_sectioned

_QUICK_MEMBER, _QUICK_AHEAD = 1 << 20, 64 << 20
"""Compressed bytes read at once: usually, and at most if the index has a longer block there."""
_QUICK_CONTENT = 256 << 20


class Fault(NamedTuple):
    """A fault at an offset of a file, or with None a fault of the whole file."""

    offset: int | None
    reason: str


class CheckedBlock(NamedTuple):
    """A valid block: its number from 1, its byte range, its lines without line ends, where its sections begin in the text."""

    number: int
    offset: int
    length: int
    lines: list[bytes]
    sections: Sequence[int]


class CheckedShard(NamedTuple):
    """The contents of a shard. `part` is the part that a correct cluster has for it.

    `block_lines` is the number of lines in each block before the last, 0 if there is only one block. With `faults`
    the other values may be incomplete.
    """

    faults: list[Fault]
    size: int = 0
    lines: int = 0
    blocks: int = 0
    sha256: str = ""
    part: bytes = b""
    block_lines: int = 0
    last_lines: int = 0
    first: bytes = b""
    last: bytes = b""


class BlockRule(NamedTuple):
    """How long blocks must be: `lines` lines each, but the last, or as many as the first if that is None.

    Unless they are `even`, any number of lines up to `lines`, if that is given, will do. With `section_lines`, each has the sections that its
    compressor makes.
    """

    lines: int | None = None
    section_lines: int = 0
    even: bool = True


def check_shard(
    read_at: ReadAt,
    name: str,
    lengths: Mapping[int, int],
    rule: BlockRule = BlockRule(),  # noqa: B008 - it is immutable
    chunk: int = CHUNK,
) -> CheckedShard:
    """Read the shard `name` and check everything that does not need another file.

    `lengths` has the length of each block by its offset, as an index has them; they may be wrong.
    """
    summed = SummedReads(read_at)
    walk = _BlockWalk(name, rule)
    for found in read_blocks(summed, lengths, chunk):
        if isinstance(found, Fault):
            walk.faults.append(found)
        else:
            walk.take(found)
    return walk.report(summed)


def read_blocks(
    read_at: ReadAt, lengths: Mapping[int, int], chunk: int = CHUNK
) -> Iterator[CheckedBlock | Fault]:
    """The blocks of a shard in order, and a Fault for each corrupt one. After it, the next offset in `lengths` is tried."""
    for found in read_texts(read_at, lengths, chunk):
        if isinstance(found, Fault):
            yield found
            continue
        number, offset, length, text, sections = found
        yield CheckedBlock(number, offset, length, bytes(text).split(b"\n")[:-1], sections)


class ShardBlock(NamedTuple):
    """A block as in CheckedBlock, with its whole text, which ends with a line end."""

    number: int
    offset: int
    length: int
    text: bytes | bytearray
    sections: Sequence[int]


def read_texts(
    read_at: ReadAt, lengths: Mapping[int, int], chunk: int = CHUNK, check_sections: bool = True
) -> Iterator[ShardBlock | Fault]:
    """The texts of the blocks of a shard, and faults, as `read_blocks` finds them.

    Without `check_sections`, a valid gzip member is read as one section, which takes two thirds of the time.
    """
    window = Window(read_at, chunk)
    starts = sorted(lengths)
    pos = number = 0
    while window.get(pos, 1):
        number += 1
        try:
            content, end, sections = _block_at(window, pos, lengths.get(pos, 0), check_sections)
        except MemberError as error:
            yield Fault(pos, f"block {number}: {error}")
            following = bisect_right(starts, pos)
            if following == len(starts):
                return
            pos, number = starts[following], following
            continue
        if content and not content.endswith(b"\n"):
            yield Fault(pos, f"block {number}: its last line has no line end")
        elif content:
            yield ShardBlock(number, pos, end - pos, content, sections)
        elif pos or window.get(end, 1):  # a shard without lines is one empty member
            yield Fault(pos, f"block {number}: has no lines")
        pos = end


def _block_at(window: Window, pos: int, length: int, check_sections: bool) -> SectionedBlock:
    """The block at `pos`. Raises MemberError."""
    if not check_sections and (quick := _quick_block(window, pos, length)):
        return quick
    return read_sectioned(window, pos) or _quick_block(window, pos, length) or _slow_block(window, pos)


def _quick_block(window: Window, pos: int, length: int) -> SectionedBlock | None:
    """The block at `pos` as one section; None if it cannot be read the quick way. `length` may be wrong."""
    if 0 < length <= _QUICK_AHEAD:
        data = inflate_member(window.get(pos, length), _QUICK_CONTENT)
        if data is not None:
            return SectionedBlock(data, pos + length, [0])
    buffer, index = window.at(pos, max(_QUICK_MEMBER, min(length, _QUICK_AHEAD)))
    found = inflate_next(buffer, index, _QUICK_CONTENT)
    return None if found is None else SectionedBlock(found[0], pos + found[1] - index, [0])


def _slow_block(window: Window, pos: int) -> SectionedBlock:
    member = inflate(window, pos)
    pieces, size = [], 0
    for piece in member:
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BLOCK:
            raise MemberError(f"it has more than {MAX_BLOCK >> 30} GiB, which readers refuse", pos)
    return SectionedBlock(b"".join(pieces), member.end, [0])


class _BlockWalk:
    """Takes the blocks of a shard one by one and adds them up."""

    def __init__(self, name: str, rule: BlockRule) -> None:
        self._name = name.encode()
        self._wanted, self._section_lines, self._is_even = rule
        self._part: list[bytes] = []
        self._lines = self._block_lines = 0
        self._before: CheckedBlock | None = None
        self._first = self._last = b""
        self.faults: list[Fault] = []

    def take(self, block: CheckedBlock) -> None:
        """Take the next block."""
        if self._before is not None:
            self._count(self._before)
        self._check_order(block)
        if self._section_lines:
            self._check_sections(block)
        if not self._part:
            self._first = block.lines[0]
        ref = BlockRef(key_of(block.lines[0]), self._name, block.offset, block.length)
        self._part.append(format_part_line(ref))
        self._lines += len(block.lines)
        self._last = block.lines[-1]
        self._before = block

    def _count(self, block: CheckedBlock) -> None:
        """Check the number of lines of a block that is not the last."""
        count = len(block.lines)
        self._block_lines = self._block_lines or count
        if self._is_even:
            self._wanted = self._wanted or count
        if self._wanted and (count > self._wanted or (self._is_even and count != self._wanted)):
            most = "" if self._is_even else "at most "
            self._report(block, f"has {count} lines, expected {most}{self._wanted}")

    def _check_order(self, block: CheckedBlock) -> None:
        lines = block.lines
        if not lines[0]:
            self._report(block, "line 1 is empty")
        elif self._part and lines[0] <= self._last:
            self._report(block, f"line 1 {_disorder(self._last, lines[0])}")
        if not all(map(lt, lines, islice(lines, 1, None))):
            number = next(number for number in range(1, len(lines)) if lines[number - 1] >= lines[number])
            self._report(block, f"line {number + 1} {_disorder(lines[number - 1], lines[number])}")

    def _check_sections(self, block: CheckedBlock) -> None:
        text = text_of(block.lines)
        wanted = len(cut_sections(text, len(block.lines), self._section_lines))
        if len(block.sections) != wanted:
            self._report(block, f"has {count(len(block.sections), 'section')}, expected {wanted}")

    def _report(self, block: CheckedBlock, reason: str) -> None:
        self.faults.append(Fault(block.offset, f"block {block.number}: {reason}"))

    def report(self, read: SummedReads) -> CheckedShard:
        """The contents of all blocks taken."""
        last_lines = len(self._before.lines) if self._before is not None else 0
        if self._before is not None and self._wanted and last_lines > self._wanted:
            self._report(self._before, f"has {last_lines} lines, expected at most {self._wanted}")
        return CheckedShard(
            self.faults,
            read.size,
            self._lines,
            len(self._part),
            read.sha256_so_far(),
            b"".join(self._part),
            self._block_lines,
            last_lines,
            self._first,
            self._last,
        )


def _disorder(before: bytes, line: bytes) -> str:
    """What is wrong with a line that is not greater than the one before it."""
    if line == before:
        return f"repeats the previous line, {line[:80]!r}"
    return f"is out of order: {line[:80]!r} after {before[:80]!r}"
