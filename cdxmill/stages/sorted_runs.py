"""Sorted runs of lines on scratch space: what an external sort spills, and reads again.

    block...   4-byte length (little endian), zstd data: about 64 KiB of lines joined by LF
    footer     zstd data: `<offset of a block> <its first line>` for each block, joined by LF

A range of lines can so be read without the rest of the run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import zstandard

from cdxmill.stages.group_lines import group_lines
from cdxmill.stages.line_lists import distinct
from cdxmill.stages.window import ReadAt, Window

BLOCK = 1 << 16
"""Plain bytes a block: a merge holds one block of each run at the least."""
LEVEL = 1
"""zstd 1 packs 5:1 at 750 MB/s here; writing the lines as they are took longer."""

_RATIO = 5
_AHEAD = 1 << 14


class Run(NamedTuple):
    """A run's name on scratch space, where its footer starts and ends, and what it holds.

    `lines` counts the lines, `duplicates` the equal ones that were collapsed.
    """

    name: str
    footer: int
    end: int
    lines: int
    duplicates: int


def write_run(file: IO[bytes], name: str, lists: Iterator[list[bytes]]) -> Run:
    """Write sorted lines to `file` as the run `name`; equal ones within a list are collapsed."""
    pack = zstandard.ZstdCompressor(level=LEVEL).compress
    index: list[bytes] = []
    offset = count = duplicates = 0
    for given in lists:
        lines = distinct(given)
        duplicates += len(given) - len(lines)
        count += len(lines)
        for block in group_lines(lines, BLOCK):
            data = pack(b"\n".join(block))
            index.append(b"%d %b" % (offset, block[0]))
            file.write(len(data).to_bytes(4, "little") + data)
            offset += 4 + len(data)
    footer = pack(b"\n".join(index))
    file.write(footer)
    return Run(name, offset, offset + len(footer), count, duplicates)


def cut_run(read_at: ReadAt, run: Run, points: Sequence[bytes]) -> list[tuple[int, int]]:
    """For each part that `points` divide the run into: the offsets between which its blocks lie."""
    footer = zstandard.ZstdDecompressor().decompress(read_at(run.footer, run.end - run.footer))
    entries = [entry.split(b" ", 1) for entry in footer.split(b"\n")]
    firsts = [first for _, first in entries]
    bounds = [*(int(offset) for offset, _ in entries), run.footer]
    lows = [0, *(max(bisect_right(firsts, point) - 1, 0) for point in points)]
    highs = [*(bisect_left(firsts, point) for point in points), len(firsts)]
    return [(bounds[low], bounds[max(low, high)]) for low, high in zip(lows, highs, strict=True)]


class Slice(NamedTuple):
    """The lines of a run from `low` on and below `high` (None: no bound), in the blocks at start..end."""

    run: Run
    start: int
    end: int
    low: bytes | None = None
    high: bytes | None = None


def read_slice(read_at: ReadAt, part: Slice, size: int) -> Iterator[list[bytes]]:
    """The lines of a slice, in sorted, non-empty lists of about `size` plain bytes."""
    inflate = zstandard.ZstdDecompressor().decompress
    have = 0
    lines: list[bytes] = []
    for packed, is_last in _packed_blocks(read_at, part, size // _RATIO):
        data = inflate(packed)
        lines += data.split(b"\n")
        have += len(data)
        if have >= size or is_last:
            lines = _between(lines, part.low, part.high)
            if lines:
                yield lines
            lines, have = [], 0


def _packed_blocks(read_at: ReadAt, part: Slice, ahead: int) -> Iterator[tuple[bytes, bool]]:
    """Each block of a slice, and whether it is the last; `ahead` bytes are read at a time."""
    window = Window(read_at, max(ahead, _AHEAD))
    pos = part.start
    while pos < part.end:
        length = int.from_bytes(window.get(pos, 4), "little")
        data = window.get(pos + 4, length)
        pos += 4 + length
        yield data, pos >= part.end


def _between(lines: list[bytes], low: bytes | None, high: bytes | None) -> list[bytes]:
    if low is not None and lines[0] < low:
        lines = lines[bisect_left(lines, low) :]
    if high is not None and lines and lines[-1] >= high:
        lines = lines[: bisect_left(lines, high)]
    return lines
