"""Sorted runs -> the blocks of a shard, as text: in C, or with lists of lines if nothing was compiled.

Both ways give the same blocks. In C (`native/merger.c`) no line becomes an object, which takes two
thirds of the time of a merge of lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import TextBlock, cut_blocks
from cdxmill.stages.lines.merge_lines import merge_slices
from cdxmill.stages.lines.sorted_runs import BLOCK, OpenRun, Slice, read_text

_AHEAD = 32 << 20
"""Plain bytes that are read ahead, about, over all runs: small reads cost more."""


def merge_blocks(slices: Sequence[Slice], open_run: OpenRun, lines: int) -> Iterator[TextBlock]:
    """The lines of slices of runs, sorted, without duplicates, in blocks of `lines` lines.

    The text of a block may change when the next block is asked for: to free and allocate a megabyte
    takes longer than to fill it. Raises StoppedError if a sorted input has changed; lines beyond the
    bounds of the slices may not be read.
    """
    if native.Merger is None:
        yield from cut_blocks(merge_slices(slices, open_run), lines)
        return
    size = max(BLOCK, _AHEAD // max(len(slices), 1))
    merger = native.Merger([(read_text(open_run, part, size), part.low, part.high) for part in slices])
    text = bytearray()
    while count := merger.fill(text, lines):
        yield TextBlock(count, text)
