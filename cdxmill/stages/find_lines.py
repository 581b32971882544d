"""A range of keys -> the lines of a ZipNum cluster that lie in it.

The secondary index is searched by bisection over byte offsets, so it is never read whole;
then one block after the other is inflated until the range ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice

from cdxmill.formats.gzip_member import inflate_whole
from cdxmill.formats.zipnum_index import BlockRef, parse_index_line
from cdxmill.stages.window import ReadAt, Window

_LINE = 1 << 16
_MAX_BLOCK = 1 << 30


class DamagedCluster(ValueError):
    """A block or the index of a cluster is not what it should be."""


def find_lines(
    read_index: ReadAt, index_size: int, read_block: Callable[[BlockRef], bytes], low: bytes, high: bytes
) -> Iterator[bytes]:
    """The lines from `low` on and below `high`, in order. Raises DamagedCluster."""
    for block in _blocks(read_index, index_size, low):
        if block.key >= high:
            return
        data = inflate_whole(read_block(block), _MAX_BLOCK)
        if data is None:
            where = f"{block.shard.decode()}@{block.offset}"
            raise DamagedCluster(f"{where}: the block is damaged ({block.length} bytes are no gzip member)")
        lines = bytes(data).split(b"\n")
        lines.pop()
        first = bisect_left(lines, low)
        last = bisect_left(lines, high)
        yield from islice(lines, first, last)
        if last < len(lines):
            return


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
    if pos == 0:
        return 0
    data = window.get(pos - 1, _LINE)
    end = data.find(b"\n")
    return pos + end if end >= 0 else size


def _line_at(window: Window, pos: int) -> tuple[bytes, int]:
    data = window.get(pos, _LINE)
    end = data.find(b"\n")
    line = data if end < 0 else data[:end]
    return line, pos + len(line) + 1


def _parsed(line: bytes) -> BlockRef:
    try:
        return parse_index_line(line)
    except ValueError as error:
        raise DamagedCluster(f"the index is damaged: {error}") from None
