"""Lines in sorted chunks, the form in which Hadoop's mappers send them to the reducers.

A chunk is a few sorted lines of one shard; its key in the shuffle is its first line. So the shuffle
moves and sorts thousands of chunks instead of millions of lines. A reducer can merge chunks as they
come, because no later chunk has a line below its own first line.

Chunks are sent as Hadoop streaming's `rawbytes`: key and value, each after its length (4 bytes, big
endian). The lines are compressed to a fourth of their size, on disk and on the network.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import IO

from cdxmill.formats.zipnum_block import Compressor
from cdxmill.stages.lines.line_lists import divide

_LENGTH = struct.Struct(">I")


def sort_chunks(
    lists: Iterable[list[bytes]], points: Sequence[bytes], chunk: int, held: int
) -> Iterator[list[bytes]]:
    """Lines in any order -> sorted chunks of about `chunk` bytes, each for one shard.

    `points` are the split points. About `held` bytes of lines are sorted at a time; the chunks of
    one time overlap with those of the others.
    """
    batch: list[bytes] = []
    size = 0
    for lines in lists:
        batch += lines
        size += _size(lines)
        if size >= held:
            yield from _cut(batch, points, chunk)
            batch, size = [], 0
    yield from _cut(batch, points, chunk)


def _cut(batch: list[bytes], points: Sequence[bytes], chunk: int) -> Iterator[list[bytes]]:
    batch.sort()
    for _, lines in divide(batch, points):
        ends = list(accumulate(map(len, lines)))
        start = 0
        while start < len(lines):
            before = ends[start - 1] if start else 0
            end = max(start + 1, bisect_right(ends, before + chunk, start))
            yield lines[start:end]
            start = end


def merge_chunks(chunks: Iterable[list[bytes]], held: int) -> Iterator[list[bytes]]:
    """Chunks in the order of their first lines -> all their lines, sorted, in lists.

    Memory: `held` bytes of lines, or twice the size of the chunks that overlap, whichever is more.

    >>> list(merge_chunks([[b"a", b"d"], [b"b", b"b"], [b"c"]], 3))
    [[b'a'], [b'b', b'b'], [b'c', b'd']]
    """
    lines: list[bytes] = []
    size, limit = 0, held
    for chunk in chunks:
        if size >= limit:
            lines.sort()
            whole = bisect_left(lines, chunk[0])
            yield lines[:whole]
            del lines[:whole]
            size = _size(lines)
            limit = max(held, 2 * size)
        lines += chunk
        size += _size(chunk)
    lines.sort()
    yield lines


def _size(lines: list[bytes]) -> int:
    return sum(map(len, lines)) + len(lines)


def format_chunk(chunk: list[bytes], packer: Compressor) -> bytes:
    """A chunk as key and value: its first line, and all its lines, compressed."""
    key, value = chunk[0], packer.compress(b"\n".join(chunk))
    return b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value))


def read_chunks(stream: IO[bytes], packer: Compressor) -> Iterator[list[bytes]]:
    """The chunks of a stream as `format_chunk` writes it. Raises ValueError if it is truncated."""
    while head := stream.read(_LENGTH.size):
        _take(stream, head)
        yield packer.decompress(_take(stream, stream.read(_LENGTH.size))).split(b"\n")


def _take(stream: IO[bytes], head: bytes) -> bytes:
    if len(head) == _LENGTH.size:
        (size,) = _LENGTH.unpack(head)
        data = stream.read(size)
        if len(data) == size:
            return data
    raise ValueError("the output of the mappers is truncated")
