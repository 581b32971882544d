"""The lines of one block, inflated only as far as a question needs them.

    compressed   ##########|##########|####......      in pieces, one after the other
    text                   [........................]  from the last line start that may still be asked for

Questions come in ascending order, so text before the last one's start is let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isal import isal_zlib

from cdxmill.formats.zipnum_index import BlockRef
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

ReadShard = Callable[[bytes, int, int], bytes]
"""(shard, offset, size) -> the bytes of the shard; fewer where it ends."""

_PIECE = 1 << 14
"""Compressed bytes at a time, about 80 KiB of text: from 8 to 16 KiB cost the same; smaller ones cost more calls,
larger ones inflate more behind the answer (24 KiB: 2 %, 32 KiB: 5 % of the time)."""
_MAX_BLOCK = 1 << 30
"""Bytes of a block, packed or plain: more is a length that lies."""


class BlockText:
    """The block at `block`, read by `read`; wrong ones raise DamagedCluster, at once or where it shows."""

    def __init__(self, block: BlockRef, read: ReadShard) -> None:
        check_length(block)
        self.block = block
        self._read = read
        self._pieces = self._checked()
        self._text = bytearray()
        self._is_whole = False
        self._floor = b""

    def can_answer(self, low: bytes) -> bool:
        """Whether the text from `low` on is still there."""
        return low >= self._floor

    def between(self, low: bytes, high: bytes) -> tuple[list[bytes], bool]:
        """The lines from `low` on and below `high`, and whether the block has one that is not below.

        Requires that `low` is not below that of any question before.
        """
        first, last = self._find(low, high)
        lines = bytes(self._text[first:last]).split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines, last < len(self._text)

    def count(self, low: bytes, high: bytes) -> tuple[int, bool]:
        """How many lines `between` would give; none is made."""
        first, last = self._find(low, high)
        end = last == len(self._text) and last > first and not self._text.endswith(b"\n")
        return self._text.count(b"\n", first, last) + end, last < len(self._text)

    def _find(self, low: bytes, high: bytes) -> tuple[int, int]:
        """Where in the text, which is inflated so far, the lines from `low` on and below `high` begin and end."""
        self._floor = low
        if not self._is_whole and not self._reaches(high):
            self._go_on(low, high)
        first = self._first_at(low, 0)
        return first, self._first_at(high, first)

    def _go_on(self, low: bytes, high: bytes) -> None:
        """Inflate up to a whole line that is not below `high`; let go of pieces whose lines are below `low`."""
        for piece in self._pieces:
            end = piece.rfind(b"\n")
            start = piece.rfind(b"\n", 0, end) + 1 if end > 0 else 0
            if start and piece[start:end] < low:
                self._text = bytearray(piece[end + 1 :])
                continue
            self._text += piece
            if self._reaches(high):
                return
        if not self._is_whole:
            raise self._damaged("as was told before")

    def _reaches(self, high: bytes) -> bool:
        """Whether a whole line that is not below `high` is there."""
        end = self._text.rfind(b"\n")
        return end >= 0 and self._text[self._text.rfind(b"\n", 0, end) + 1 : end] >= high

    def _checked(self) -> Iterator[bytes]:
        """The block's text in pieces, of which the first begins with the block's key."""
        key, start = self.block.key, b""
        pieces = self._inflated()
        while not self._is_whole and len(start) <= len(key):
            start += next(pieces)
        if not start.startswith(key):
            why = f"the block does not begin with its key, {key[:80]!r}"
            raise _damaged(self.block, f"{why}: index and shard are not of one cluster")
        yield start
        yield from pieces

    def _inflated(self) -> Iterator[bytes]:
        """The text in pieces as they come."""
        inflater, size = isal_zlib.decompressobj(wbits=31), 0
        _, shard, offset, length = self.block
        for pos in range(0, max(length, 1), _PIECE):
            wanted = min(_PIECE, length - pos)
            data = self._read(shard, offset + pos, wanted)
            if len(data) < wanted:
                raise self._damaged(f"the shard ends before its {length} bytes do")
            try:
                piece: bytes = inflater.decompress(data)
            except isal_zlib.IsalError as error:  # type: ignore[misc]
                raise self._damaged(str(error)) from None
            size += len(piece)
            if size > _MAX_BLOCK:
                raise self._damaged("more than a gigabyte of lines")
            self._is_whole = inflater.eof
            if self._is_whole != (pos + wanted == length) or inflater.unused_data:
                raise self._damaged(f"{length} bytes are no gzip member")
            yield piece

    def _first_at(self, key: bytes, left: int) -> int:
        """Where the first line from `left` on begins that is not below `key`; the end where there is none."""
        text, size = self._text, len(key)
        right = len(text)  # lines before `left` are below, those from `right` on are not
        while left < right:
            start = text.rfind(b"\n", left, (left + right) // 2) + 1 or left
            end = text.find(b"\n", start, start + size)
            if text[start : end if end >= 0 else start + size] < key:
                left = text.find(b"\n", start) + 1 or len(text)
            else:
                right = start
        return left

    def _damaged(self, why: str) -> DamagedCluster:
        return _damaged(self.block, f"the block is damaged ({why})")


def check_length(block: BlockRef) -> None:
    """Raise DamagedCluster where a block cannot be so long: it is not even read."""
    if block.length > _MAX_BLOCK:
        raise _damaged(block, f"the block is damaged ({block.length} bytes are no gzip member)")


def _damaged(block: BlockRef, why: str) -> DamagedCluster:
    return DamagedCluster(f"{block.shard.decode(errors='replace')}@{block.offset}: {why}")
