"""Lines in sorted chunks, the form in which Hadoop's mappers send them to the reducers.

A chunk is a few sorted lines of one shard; its key in the shuffle is its first line. So the shuffle
moves and sorts thousands of chunks instead of millions of lines. A reducer can merge chunks as they
come, because no later chunk has a line below its own first line.

Hadoop sends records as its streaming's `rawbytes`: key and lines, each after its length (4 bytes, big
endian). mrjob's local runners send lines: `<shard> TAB <key in hex> TAB <lines in base64>`, which sort as the keys do.
The lines of a chunk are compressed to a fourth of their size, on disk and on the network.

With the compiled module, lines of large sorted files never become objects, neither in the mapper nor in the reducer.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64, hexlify, unhexlify
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import IO, NamedTuple

from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import (
    TextBlock,
    cut_blocks,
    distinct,
    divide,
    group_lines,
    lines_between,
    split_lines,
    without_headers,
)
from cdxmill.stages.lines.sorted_input import SortedStart

_LENGTH = struct.Struct(">I")


Pack = Callable[[bytes], bytes]
"""Compresses a chunk to one gzip member."""
Record = tuple[bytes, bytes]
"""A key of the shuffle, and compressed lines. A message has the empty key, which no line has."""
FormatRecord = Callable[[bytes, bytes], bytes]
"""Makes a record of a key and lines, in the form in which the shuffle sends it."""


class ChunkSizes(NamedTuple):
    """Bytes of lines: of a chunk, and held at a time."""

    chunk: int
    held: int


class ChunkSender:
    """Takes the lines of files in any order, and writes sorted chunks of about `chunk` bytes, each for one shard.

    `points` are the split points. About `held` bytes of lines are sorted at a time; the chunks of one time overlap
    with those of the others. Nothing is written of a file before it is complete: `spool` holds its chunks until then.
    """

    def __init__(
        self, out: IO[bytes], spool: IO[bytes], form: FormatRecord, points: Sequence[bytes], sizes: ChunkSizes
    ) -> None:
        self._out, self._spool, self._form, self._points, self._sizes = out, spool, form, points, sizes
        self._lines: list[bytes] = []
        self._size = 0
        self._mark = (0, 0)

    def begin(self) -> None:
        """Mark the start of a file."""
        self._mark = len(self._lines), self._size

    def undo(self) -> None:
        """Forget all lines since `begin`."""
        held, self._size = self._mark
        del self._lines[held:]
        self._spool.seek(0)
        self._spool.truncate()

    def add_text(self, pieces: Iterable[bytes]) -> None:
        """Take the text of the file, which comes in pieces. If more than `held` bytes are in order, they become chunks as they are."""
        if native.lines_in_order is not None:
            pieces = self._add_sorted(SortedStart(pieces))
        for lines in split_lines(pieces):
            self.add(lines)

    def _add_sorted(self, start: SortedStart) -> Iterator[bytes]:
        """Take the start of a text that is in order. Returns the pieces that are left, all of them if that is short."""
        begun: list[bytes] = []
        size = 0
        for _, text in start:
            begun.append(bytes(text))
            size += len(text)
            if size >= self._sizes.held:
                self._write_texts(begun)
                begun = []
        return chain(begun, start.rest())

    def _write_texts(self, texts: Iterable[bytes]) -> None:
        for text in texts:
            for first, part in cut_text(text, self._points, self._sizes.chunk):
                self._spool.write(self._form(first, part))

    def add(self, lines: list[bytes]) -> None:
        """Take lines of the file."""
        self._lines += lines
        self._size += _size(lines)
        if self._size >= self._sizes.held:
            held, _ = self._mark
            self._write(self._lines[:held], self._out)
            self._write(self._lines[held:], self._spool)
            self._lines, self._size, self._mark = [], 0, (0, 0)

    def keep(self) -> None:
        """The file is complete."""
        self._spool.seek(0)
        self._out.writelines(iter(partial(self._spool.read, 1 << 20), b""))
        self._spool.seek(0)
        self._spool.truncate()

    def end(self) -> None:
        """Write what is still held."""
        self._write(self._lines, self._out)
        self._lines, self._size = [], 0
        self._out.flush()

    def _write(self, lines: list[bytes], file: IO[bytes]) -> None:
        for chunk in sort_chunks(lines, self._points, self._sizes.chunk):
            file.write(self._form(chunk[0], b"\n".join(chunk)))


def sort_chunks(lines: list[bytes], points: Sequence[bytes], chunk: int) -> Iterator[list[bytes]]:
    """Sort `lines` and cut them into chunks, without empty lines and CDX headers."""
    lines.sort()
    for _, ours in divide(without_headers(lines), points):
        yield from group_lines(ours, chunk)


def cut_text(text: bytes, points: Sequence[bytes], chunk: int) -> Iterator[tuple[bytes, bytes]]:
    """Cut sorted lines, each with its LF, into parts of about `chunk` bytes, each for one shard: its first line, and its text.

    >>> list(cut_text(b"a\\nb\\nc\\nd\\n", [b"d"], 4))
    [(b'a', b'a\\nb'), (b'c', b'c'), (b'd', b'd')]
    >>> list(cut_text(b"a\\nlong\\n", [], 3))
    [(b'a', b'a'), (b'long', b'long')]
    """
    start = 0
    while start < len(text):
        first = text[start : text.index(b"\n", start)]
        end = text.rfind(b"\n", start, start + chunk) + 1 or start + len(first) + 1
        number = bisect_right(points, first)
        last = text.rfind(b"\n", start, end - 1) + 1 or start
        if number < len(points) and text[last : end - 1] >= points[number]:
            lines = text[start : end - 1].split(b"\n")
            end = start + _size(lines[: bisect_left(lines, points[number])])
        yield first, text[start : end - 1]
        start = end


def merge_texts(chunks: Iterable[bytes], held: int, lines: int) -> Iterator[TextBlock]:
    """Texts of chunks in the order of their first lines -> distinct lines in blocks of `lines` lines.

    Memory: `held` bytes of lines, or twice the size of the chunks that overlap, whichever is more. The text of a block
    may change when the next block is asked for.
    """
    rounds = _rounds(chunks, held)
    if native.Merger is None:
        yield from cut_blocks((_merged(*one) for one in rounds), lines)
        return
    begun = TextBlock(0, b"")
    for texts, low, high in rounds:
        merger = native.Merger([(iter((text,)), low, high) for text in texts])
        text = bytearray()
        while count := merger.fill(text, lines - begun.lines):
            block = TextBlock(begun.lines + count, begun.text + text if begun.lines else text)
            begun = TextBlock(0, b"")
            if block.lines == lines:
                yield block
            else:
                begun = TextBlock(block.lines, bytes(block.text))
    if begun.lines:
        yield begun


def _rounds(
    chunks: Iterable[bytes], held: int
) -> Iterator[tuple[Sequence[bytes], bytes | None, bytes | None]]:
    """Texts, of which the lines >= the first bound and < the second are merged."""
    texts: list[bytes] = []
    low: bytes | None = None
    size, limit = 0, held
    for chunk in chunks:
        if size >= limit:
            first = chunk.partition(b"\n")[0]
            yield texts, low, first
            texts = [text for text in texts if text[text.rfind(b"\n") + 1 :] >= first]
            low, size = first, sum(map(len, texts))
            limit = max(held, 2 * size)
        texts.append(chunk)
        size += len(chunk)
    yield texts, low, None


def _merged(texts: Sequence[bytes], low: bytes | None, high: bytes | None) -> list[bytes]:
    lines = sorted(chain.from_iterable(text.split(b"\n") for text in texts))
    return distinct(lines_between(lines, low, high))


def _size(lines: list[bytes]) -> int:
    return sum(map(len, lines)) + len(lines)


def format_record(key: bytes, lines: bytes, pack: Pack) -> bytes:
    """A record as Hadoop sends it. One with the empty key goes to the first reducer."""
    data = pack(lines)
    return b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(data)), data))


def read_records(stream: IO[bytes]) -> Iterator[Record]:
    """The records in a stream of `format_record`. Raises ValueError if the stream is truncated."""
    while head := stream.read(_LENGTH.size):
        key = _take(stream, head)
        yield key, _take(stream, stream.read(_LENGTH.size))


def _take(stream: IO[bytes], head: bytes) -> bytes:
    if len(head) == _LENGTH.size:
        (size,) = _LENGTH.unpack(head)
        data = stream.read(size)
        if len(data) == size:
            return data
    raise ValueError("the output of the mappers is truncated")


def format_line(key: bytes, lines: bytes, points: Sequence[bytes], pack: Pack) -> bytes:
    """A record for a shuffle of lines that sorts them as they are, and keeps lines with the same text before the first tab together.

    `points` are the split points: the first field is the number of the shard.
    """
    shard = bisect_right(points, key) if key else 0
    return b"%05d\t%b\t%b\n" % (shard, hexlify(key), b2a_base64(pack(lines), newline=False))


def format_marks(shards: int) -> bytes:
    """Lines that make each shard appear, also those that get no record."""
    return b"".join(b"%05d\t\n" % number for number in range(shards))


def read_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, Iterator[Record]]]:
    """The records of each shard, from lines of `format_line` and `format_marks`, each with its line end."""
    rows = (line[:-1].split(b"\t") for line in lines)
    for shard, ours in groupby(rows, itemgetter(0)):
        yield int(shard), ((unhexlify(row[1]), a2b_base64(row[2])) for row in ours if len(row) == 3)
