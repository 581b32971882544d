"""The lines of one block, inflated only as far as a question needs them.

    compressed   ##########|##########|####......      in pieces, one after the other
    text                   [........................]  from the last line start that may still be asked for

Questions come in ascending order, so text before the last one's start is let go.
"""

from __future__ import annotations

from collections.abc import Callable

from isal import isal_zlib

from cdxmill.formats.zipnum_index import BlockRef
from cdxmill.stages.secondary_index import DamagedCluster

ReadShard = Callable[[bytes, int, int], bytes]
"""(shard, offset, size) -> the bytes of the shard; fewer where it ends."""

_PIECE = 1 << 14
"""Compressed bytes at a time, about 80 KiB of text: smaller ones cost more calls (4 KiB: 10 % of the time),
larger ones inflate more behind the answer."""
_MAX_BLOCK = 1 << 30
"""Bytes of a block, packed or plain: more is a length that lies."""


class BlockText:
    """The block at `block`, read by `read`; wrong ones raise DamagedCluster, at once or where it shows."""

    def __init__(self, block: BlockRef, read: ReadShard) -> None:
        self.block = block
        self._read = read
        check_length(block)
        self._pos = 0
        self._inflater = isal_zlib.decompressobj(wbits=31)
        self._text = bytearray()
        self._size = 0
        self._is_whole = self._is_right = False
        self._floor = b""

    def can_answer(self, low: bytes) -> bool:
        """Whether the text from `low` on is still there."""
        return low >= self._floor

    def between(self, low: bytes, high: bytes) -> tuple[list[bytes], bool]:
        """The lines from `low` on and below `high`, and whether the block has one that is not below.

        Requires that `low` is not below that of any question before.
        """
        self._floor = low
        while not self._reaches(high):
            self._more(low)
        first, last = self._first_at(low), self._first_at(high)
        lines = bytes(self._text[first:last]).split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines, last < len(self._text)

    def count(self, low: bytes, high: bytes) -> tuple[int, bool]:
        """How many lines `between` would give; none is made."""
        self._floor = low
        while not self._reaches(high):
            self._more(low)
        first, last = self._first_at(low), self._first_at(high)
        end = last == len(self._text) and last > first and not self._text.endswith(b"\n")
        return self._text.count(b"\n", first, last) + end, last < len(self._text)

    def _reaches(self, high: bytes) -> bool:
        """Whether a whole line that is not below `high` is there."""
        if self._is_whole:
            return True
        end = self._text.rfind(b"\n")
        return end >= 0 and self._is_right and self._text[self._text.rfind(b"\n", 0, end) + 1 : end] >= high

    def _more(self, low: bytes) -> None:
        """Inflate one piece; let go of what is before `low`."""
        piece = self._inflated()
        self._size += len(piece)
        if self._size > _MAX_BLOCK:
            raise self._damaged("more than a gigabyte of lines")
        end = piece.rfind(b"\n")
        start = piece.rfind(b"\n", 0, end) + 1 if end > 0 else 0
        if self._is_right and start and not self._is_whole and piece[start:end] < low:
            self._text = bytearray(piece[end + 1 :])
            return
        self._text += piece
        if not self._is_right and (self._is_whole or len(self._text) > len(self.block.key)):
            if not self._text.startswith(self.block.key):
                why = f"the block does not begin with its key, {self.block.key[:80]!r}"
                raise _damaged(self.block, f"{why}: index and shard are not of one cluster")
            self._is_right = True

    def _inflated(self) -> bytes:
        shard, offset, length = self.block[1:]
        wanted = min(_PIECE, length - self._pos)
        data = self._read(shard, offset + self._pos, wanted)
        if len(data) < wanted:
            raise self._damaged(f"the shard ends before its {length} bytes do")
        self._pos += wanted
        try:
            piece: bytes = self._inflater.decompress(data)
        except isal_zlib.IsalError as error:  # type: ignore[misc]
            raise self._damaged(str(error)) from None
        self._is_whole = self._inflater.eof
        if self._is_whole != (self._pos == length) or self._inflater.unused_data:
            raise self._damaged(f"{length} bytes are no gzip member")
        return piece

    def _first_at(self, key: bytes) -> int:
        """Where the first line begins that is not below `key`; the end where there is none."""
        text, size = self._text, len(key)
        left, right = (
            0,
            len(text),
        )  # line starts; lines before `left` are below, those from `right` on are not
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
