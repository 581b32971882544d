"""Sorted runs -> the blocks of a shard, as text: compiled, or by way of lists where nothing was compiled.

Both ways give the same blocks. The compiled one (`native/merger.h`) makes no line an object, which
is two thirds of what a merge of lists takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import TextBlock, cut_blocks
from cdxmill.stages.lines.merge_lines import merge_slices
from cdxmill.stages.lines.sorted_runs import BLOCK, OpenRun, Slice, read_text


def merge_blocks(slices: Sequence[Slice], open_run: OpenRun, lines: int) -> Iterator[TextBlock]:
    """The lines of slices of runs, sorted, equal ones collapsed, in blocks of so many `lines`.

    A block's text may be changed when the next one is asked for: to give back a megabyte and get it
    anew takes longer than to fill it. Raises StoppedError where a sorted input is not what it was;
    what lies beyond the slices' bounds may go unread.
    """
    if native.Merger is None:
        yield from cut_blocks(merge_slices(slices, open_run), lines)
        return
    merger = native.Merger([(read_text(open_run, part, BLOCK), part.low, part.high) for part in slices])
    text = bytearray()
    while count := merger.fill(text, lines):
        yield TextBlock(count, text)
