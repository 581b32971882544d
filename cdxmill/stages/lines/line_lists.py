"""Lists of lines: cut a stream into them, drop headers and duplicates, divide and group them, join them to text, write them.

Lines are bytes without their line end. This module needs nothing but Python, so that it runs on
any node of a Hadoop cluster.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, islice
from operator import eq, ne
from typing import IO, NamedTuple, TypeVar

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.lines.cdx_lines import convert_line

Piece = TypeVar("Piece", bytes, "bytes | bytearray")

BATCH = 1 << 20
"""Approximate number of bytes of lines in a list."""


class TextBlock(NamedTuple):
    """A number of lines, and their text, each line with its LF."""

    lines: int
    text: bytes | bytearray


def is_capture_line(line: bytes) -> bool:
    """False for an empty line and for a CDX header line."""
    return bool(line) and not line.startswith(b" CDX")


def split_lines(pieces: Iterable[bytes | bytearray], size: int = 0) -> Iterator[list[bytes]]:
    """The lines of a stream that comes in `pieces`, in non-empty lists of about `size` bytes, or else BATCH."""
    parts: list[bytes | bytearray] = []
    have, wanted = 0, size or BATCH
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        have += len(piece)
        if not cut or have < wanted:
            parts.append(piece)
            continue
        parts.append(piece[:cut])
        lines = b"".join(parts).split(b"\n")
        lines.pop()
        yield lines
        parts, have = [piece[cut:]], len(piece) - cut
    rest = b"".join(parts)
    if rest:
        lines = rest.split(b"\n")
        if not lines[-1]:
            lines.pop()
        yield lines


def text_of(lines: list[bytes]) -> bytes:
    """`lines`, each with its LF.

    >>> text_of([b"a", b"b"]), text_of([])
    (b'a\\nb\\n', b'')
    """
    return b"\n".join([*lines, b""])  # to add the last LF to a megabyte would copy it


def cut_blocks(lists: Iterable[list[bytes]], lines: int) -> Iterator[TextBlock]:
    """Lists of lines -> blocks of `lines` lines; the last block may have fewer.

    >>> [block.text for block in cut_blocks([[b"a"], [b"b", b"c"]], 2)]
    [b'a\\nb\\n', b'c\\n']
    """
    held: list[bytes] = []
    for given in lists:
        held += given
        whole = len(held) - len(held) % lines
        for start in range(0, whole, lines):
            yield TextBlock(lines, text_of(held[start : start + lines]))
        del held[:whole]
    if held:
        yield TextBlock(len(held), text_of(held))


def distinct(lines: list[bytes]) -> list[bytes]:
    """Sorted `lines` without duplicates."""
    if any(map(eq, lines, islice(lines, 1, None))):
        return list(compress(lines, chain((True,), map(ne, lines, islice(lines, 1, None)))))
    return lines


def distinct_captures(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The lines of sorted lists, without duplicates, empty lines and CDX headers.

    >>> list(distinct_captures([[b"", b" CDX N", b"a"], [b"a", b"b", b"b"], [b"b"]]))
    [[b'a'], [b'b']]
    """
    last = b""  # so that empty lines are dropped, too
    for given in lists:
        lines = distinct(given)
        if lines and lines[0] == last:
            del lines[0]
        if lines and lines[0] < b" CDY":
            lines = without_headers(lines)
        if lines:
            last = lines[-1]
            yield lines


def convert_captures(lines: list[bytes]) -> list[bytes]:
    """CDX lines with 6 fields as CDXJ lines, without empty lines and headers. Raises ValueError for any other line."""
    return [convert_line(line) for line in lines if is_capture_line(line)]


def without_headers(lines: list[bytes]) -> list[bytes]:
    """Sorted `lines` without empty lines and CDX headers."""
    start = bisect_left(lines, b"\0") if lines and not lines[0] else 0
    low = bisect_left(lines, b" CDX", start)
    high = bisect_left(lines, b" CDY", low)
    return lines[start:low] + lines[high:] if start or high > low else lines


def lines_between(lines: list[bytes], low: bytes | None, high: bytes | None) -> list[bytes]:
    """The sorted `lines` that are >= `low` and < `high` (None: no bound)."""
    if low is not None and lines and lines[0] < low:
        lines = lines[bisect_left(lines, low) :]
    if high is not None and lines and lines[-1] >= high:
        lines = lines[: bisect_left(lines, high)]
    return lines


def divide(lines: list[bytes], points: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Sorted `lines` as (shard, its lines). `points` are the split points: where shards after the first begin.

    >>> list(divide([b"a", b"b", b"c"], [b"b"]))
    [(0, [b'a']), (1, [b'b', b'c'])]
    """
    start = 0
    while start < len(lines):
        number = bisect_right(points, lines[start])
        end = bisect_left(lines, points[number], start) if number < len(points) else len(lines)
        yield number, lines[start:end]
        start = end


def group_lines(lines: list[bytes], size: int) -> Iterator[list[bytes]]:
    """`lines` in groups of at most `size` bytes, without line ends; a longer line is a group of its own.

    >>> list(group_lines([b"a", b"bb", b"c", b"dddd", b"e"], 3))
    [[b'a', b'bb'], [b'c'], [b'dddd'], [b'e']]
    """
    ends = list(accumulate(map(len, lines)))
    start = before = 0
    while start < len(lines):
        stop = max(bisect_right(ends, before + size, start), start + 1)
        yield lines[start:stop]
        start, before = stop, ends[stop - 1]


MEMBER = 1 << 20


def write_lines(lists: Iterable[list[bytes]], file: IO[bytes], name: str) -> int:
    """Write lines, each with an LF, to `file`, which gets the name `name`: gzipped if that ends in `.gz`.

    Returns the number of lines.
    """
    number = 0

    def counted() -> Iterator[list[bytes]]:
        nonlocal number
        for lines in lists:
            number += len(lines)
            yield lines

    if name.lower().endswith(".gz"):
        write_gzip_lines(counted(), file)
    else:
        for some in counted():
            file.write(text_of(some))
    return number


def write_gzip_lines(lists: Iterable[list[bytes]], file: IO[bytes]) -> int:
    """Write lines, each with an LF, to `file`. Returns the number of compressed bytes.

    If there are no lines, one empty member is written.
    """
    size, compressor = 0, Compressor()
    for lines in lists:
        for group in group_lines(lines, MEMBER):
            size += file.write(compressor.compress(text_of(group)))
    return size or file.write(compressor.compress(b""))
