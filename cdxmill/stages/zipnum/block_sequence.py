"""Consecutive lines of a secondary index -> their blocks, if each follows the one before."""

from __future__ import annotations

from cdxmill.formats.clusters.zipnum_index import BlockRef, NumberedBlock, parse_numbered_line


class BlockSequence:
    """Parses lines and compares each with the one before. `last` is the last line's block, None before the first."""

    def __init__(self) -> None:
        self.last: NumberedBlock | None = None

    def take(self, line: bytes) -> BlockRef:
        """The block of the next line.

        Raises ValueError if the line is corrupt or out of order, or if lines before it are missing: by the
        numbers of the lines, or by the byte ranges of the blocks of one shard.
        """
        found = parse_numbered_line(line)
        if self.last is not None:
            reason = _fault(self.last, found)
            if reason is not None:
                raise ValueError(reason)
        self.last = found
        return found.block


def _fault(last: NumberedBlock, found: NumberedBlock) -> str | None:
    (key, shard, offset, length), number = last
    block = found.block
    if block.key < key:
        return f"out of order: {block.key[:80]!r} comes after {key[:80]!r}"
    if number is not None and found.number != number + 1:
        return f"{block.key[:80]!r} has the number {found.number}, expected {number + 1}"
    if block.shard == shard and block.offset != offset + length:
        expected = offset + length
        return (
            f"{block.key[:80]!r} is at {block.offset} of its shard, but the block before ends at {expected}"
        )
    return None
