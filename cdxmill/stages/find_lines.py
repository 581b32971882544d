"""A range of keys -> the lines of a ZipNum cluster that lie in it.

The secondary index is searched by bisection over byte offsets, so it is never read whole;
then one block after the other is inflated until the range ends.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice

from cdxmill.formats.gzip_member import inflate_next
from cdxmill.formats.zipnum_index import BlockRef, parse_index_line
from cdxmill.stages.window import ReadAt, Window

_LINE = 1 << 16
"""Bytes that most index lines have less than."""
_MAX_BLOCK = 1 << 30
"""Bytes of a block, packed or plain: more is a length that lies."""


class DamagedCluster(ValueError):
    """A block or the index of a cluster is not what it should be."""


def find_lines(
    read_index: ReadAt, index_size: int, read_block: Callable[[BlockRef], bytes], low: bytes, high: bytes
) -> Iterator[bytes]:
    """The lines from `low` on and below `high`, in order. Raises DamagedCluster."""
    for block in _blocks(read_index, index_size, low):
        if block.key >= high:
            return
        lines = _lines_of(block, read_block)
        first = bisect_left(lines, low)
        last = bisect_left(lines, high)
        yield from islice(lines, first, last)
        if last < len(lines):
            return


def _lines_of(block: BlockRef, read_block: Callable[[BlockRef], bytes]) -> list[bytes]:
    where = f"{block.shard.decode(errors='replace')}@{block.offset}"
    data = _inflate(read_block(block)) if block.length <= _MAX_BLOCK else None
    if data is None:
        raise DamagedCluster(f"{where}: the block is damaged ({block.length} bytes are no gzip member)")
    if not data.startswith(block.key):
        raise DamagedCluster(f"{where}: the block does not begin with its key, {block.key[:80]!r}")
    lines = bytes(data).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _inflate(member: bytes) -> bytes | bytearray | None:
    """The content, if `member` is exactly one sound gzip member."""
    found = inflate_next(member, 0, _MAX_BLOCK)
    if found is not None and found[1] == len(member):
        return found[0]
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = inflater.decompress(member, _MAX_BLOCK)
    except zlib.error:
        return None
    return data if inflater.eof and not inflater.unused_data else None


def _blocks(read_at: ReadAt, size: int, low: bytes) -> Iterator[BlockRef]:
    """The blocks from the one that `low` may lie in."""
    window = Window(read_at, _LINE)
    pos = _block_before(window, size, low)
    while pos < size:
        line, pos = _line_at(window, pos)
        yield _parsed(line)


def _block_before(window: Window, size: int, low: bytes) -> int:
    """The offset of the last index line whose key is below `low`; 0 where there is none."""
    found, left, right = 0, 0, size
    while left < right:
        middle = (left + right) // 2
        start = _line_start(window, middle, size)
        if start < size and _parsed(_line_at(window, start)[0]).key < low:
            found, left = start, middle + 1
        else:
            right = middle
    return found


def _line_start(window: Window, pos: int, size: int) -> int:
    """The first line start at or behind `pos`."""
    return min(_line_at(window, pos - 1)[1], size) if pos else 0


def _line_at(window: Window, pos: int) -> tuple[bytes, int]:
    """What is left of the line at `pos`, and the offset behind its line end."""
    wanted = _LINE
    data = window.get(pos, wanted)
    while (end := data.find(b"\n")) < 0 and len(data) == wanted:
        wanted *= 4
        data = window.get(pos, wanted)
    line = data if end < 0 else data[:end]
    return line, pos + len(line) + 1


def _parsed(line: bytes) -> BlockRef:
    try:
        return parse_index_line(line)
    except ValueError as error:
        raise DamagedCluster(f"the index is damaged: {error}") from None
