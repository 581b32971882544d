"""Runs of counts: the lines of tallies in several processes, and their sums.

A line of a run is `<item> TAB <count> TAB <name of the run>`. So the lines of different runs differ, and the merge of
runs, which removes equal lines, keeps them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdxmill.stages.counting.tally import Tally
from cdxmill.stages.lines.line_lists import TextBlock
from cdxmill.stages.lines.sort_lines import Create
from cdxmill.stages.lines.sorted_runs import Run, write_run

_LIST = 1 << 12
"""Lines per list."""


def spill(tally: Tally, create: Create, name: str) -> Run:
    """Write the counts of a tally as the run `name`. The tally is empty then."""
    lines = len(tally)
    text = tally.take(b"\t%b\n" % name.encode())
    with create(name) as file:
        return write_run(file, name, [TextBlock(lines, text)] if lines else [])


def sum_lines(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The sorted lines of runs -> lines `<item> TAB <count>`, one per item, in lists.

    >>> list(sum_lines([[b"a\\t1\\t0", b"a\\t2\\t1"], [b"b\\t1\\t0"]]))
    [[b'a\\t3', b'b\\t1']]
    """
    return sum_counts([line.rpartition(b"\t")[0] for line in lines] for lines in lists)


def sum_counts(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Sorted lines `<item> TAB <count>` -> such lines, one per item, in lists."""
    last, total = b"", 0
    lines: list[bytes] = []
    for given in lists:
        for line in given:
            item, _, count = line.partition(b"\t")
            if item == last:
                total += int(count)
                continue
            if last:
                lines.append(b"%b\t%d" % (last, total))
            last, total = item, int(count)
        if len(lines) >= _LIST:
            yield lines
            lines = []
    if last:
        yield [*lines, b"%b\t%d" % (last, total)]
