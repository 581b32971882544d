"""Sorted lines <-> lines with the number of their shard: `<shard> TAB <line>`.

For a shuffle that does not know the split points and groups lines by the text before the first tab
(docs/jobs.md). Every shard gets one line without content, so that empty shards come out, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from cdxmill.stages.lines.line_lists import divide


def mark_shards(lists: Iterable[list[bytes]], points: Sequence[bytes]) -> Iterator[bytes]:
    """Marked lines with their line ends, joined. `points` are the split points: where shards after the first begin.

    Requires: each list is sorted.

    >>> list(mark_shards([[b"a", b"b", b"c"]], [b"b"]))
    [b'00000\\t\\n00001\\t\\n', b'00000\\ta\\n', b'00001\\tb\\n00001\\tc\\n']
    """
    yield b"".join(b"%05d\t\n" % number for number in range(len(points) + 1))
    for lines in lists:
        for number, part in divide(lines, points):
            mark = b"%05d\t" % number
            yield mark + (b"\n" + mark).join(part) + b"\n"


def unmark_shards(lists: Iterable[list[bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """(shard, some of its lines, without their marks).

    Requires: the lines are sorted by their marks, each as text.

    >>> list(unmark_shards([[b"00000\\t", b"00000\\ta", b"00001\\tb"]]))
    [(0, [b'', b'a']), (1, [b'b'])]
    """
    for lines in lists:
        start = 0
        while start < len(lines):
            mark = lines[start].split(b"\t", 1)[0]
            end = bisect_left(lines, mark + b"\n", start)  # LF is the byte after the tab
            yield int(mark), [line[len(mark) + 1 :] for line in lines[start:end]]
            start = end
