"""Lines in sorted chunks, the form in which Hadoop's mappers send them to the reducers.

A chunk is a few sorted lines of one shard; its key in the shuffle is its first line. So the shuffle
moves and sorts thousands of chunks instead of millions of lines. A reducer can merge chunks as they
come, because no later chunk has a line below its own first line.

Chunks are sent as Hadoop streaming's `rawbytes`: key and value, each after its length (4 bytes, big
endian). The lines are compressed to a fourth of their size, on disk and on the network.

With the compiled module, lines of large sorted files never become objects, neither in the mapper nor in the reducer.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import IO, NamedTuple, Protocol

from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import TextBlock, divide, split_lines, without_headers
from cdxmill.stages.lines.sorted_start import SortedStart

_LENGTH = struct.Struct(">I")


class ChunkPacker(Protocol):
    """Compresses a chunk to one gzip member."""

    def compress(self, data: bytes, /) -> bytes:
        """The member."""


class ChunkSizes(NamedTuple):
    """Bytes of lines: of a chunk, and held at a time."""

    chunk: int
    held: int


class ChunkSender:
    """Takes the lines of files in any order, and writes sorted chunks of about `chunk` bytes, each for one shard.

    `points` are the split points. About `held` bytes of lines are sorted at a time; the chunks of one time
    overlap with those of the others. Nothing is written of a file before it is complete: `spool` holds its
    chunks until then.
    """

    def __init__(
        self,
        out: IO[bytes],
        spool: IO[bytes],
        packer: ChunkPacker,
        points: Sequence[bytes],
        sizes: ChunkSizes,
    ) -> None:
        self._out, self._spool, self._packer, self._points, self._sizes = out, spool, packer, points, sizes
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
        if size >= self._sizes.held:
            self._write_texts(begun)
            begun = []
        return chain(begun, start.rest())

    def _write_texts(self, texts: Iterable[bytes]) -> None:
        for text in texts:
            for first, part in cut_text(text, self._points, self._sizes.chunk):
                self._spool.write(format_record(first, part, self._packer))

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
            file.write(format_chunk(chunk, self._packer))


def sort_chunks(lines: list[bytes], points: Sequence[bytes], chunk: int) -> Iterator[list[bytes]]:
    """Sort `lines` and cut them into chunks, without empty lines and CDX headers."""
    lines.sort()
    for _, ours in divide(without_headers(lines), points):
        ends = list(accumulate(map(len, ours)))
        start = 0
        while start < len(ours):
            before = ends[start - 1] if start else 0
            end = max(start + 1, bisect_right(ends, before + chunk, start))
            yield ours[start:end]
            start = end


def cut_text(text: bytes, points: Sequence[bytes], chunk: int) -> Iterator[tuple[bytes, bytes]]:
    """Cut sorted lines, each with its LF, into parts of about `chunk` bytes, each for one shard: its first line, and its text.

    >>> list(cut_text(b"a\\nb\\nc\\nd\\n", [b"d"], 4))
    [(b'a', b'a\\nb'), (b'c', b'c'), (b'd', b'd')]
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


def merge_texts(chunks: Iterable[bytes], held: int, lines: int) -> Iterator[TextBlock]:
    """Texts of chunks in the order of their first lines -> distinct lines in blocks of `lines` lines, in compiled code.

    Memory: as `merge_chunks`. The text of a block may change when the next block is asked for.
    """
    blocks = _Blocks(lines)
    texts: list[bytes] = []
    low: bytes | None = None
    size, limit = 0, held
    for chunk in chunks:
        if size >= limit:
            first = chunk.partition(b"\n")[0]
            yield from blocks.merge(texts, low, first)
            texts = [text for text in texts if text[text.rfind(b"\n") + 1 :] >= first]
            low, size = first, sum(map(len, texts))
            limit = max(held, 2 * size)
        texts.append(chunk)
        size += len(chunk)
    yield from blocks.merge(texts, low, None)
    if blocks.begun.lines:
        yield blocks.begun


class _Blocks:
    """Cuts the lines of several merges into blocks. `begun` is the last one, which is not full."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self.begun = TextBlock(0, b"")

    def merge(self, texts: Sequence[bytes], low: bytes | None, high: bytes | None) -> Iterator[TextBlock]:
        assert native.Merger is not None
        merger = native.Merger([(iter((text,)), low, high) for text in texts])
        text = bytearray()
        while count := merger.fill(text, self._lines - self.begun.lines):
            block = TextBlock(self.begun.lines + count, self.begun.text + text if self.begun.lines else text)
            if block.lines < self._lines:
                self.begun = TextBlock(block.lines, bytes(block.text))
                return
            self.begun = TextBlock(0, b"")
            yield block


def _size(lines: list[bytes]) -> int:
    return sum(map(len, lines)) + len(lines)


def format_chunk(chunk: list[bytes], packer: ChunkPacker) -> bytes:
    """A chunk as key and value: its first line, and all its lines, compressed."""
    return format_record(chunk[0], b"\n".join(chunk), packer)


def format_record(key: bytes, value: bytes, packer: ChunkPacker) -> bytes:
    """A key and a value. A message has the empty key, which no line has: it goes to the first reducer."""
    data = packer.compress(value)
    return b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(data)), data))


def read_chunks(stream: IO[bytes], packer: Compressor, messages: list[bytes]) -> Iterator[bytes]:
    """The texts of the chunks of a stream as `format_record` writes it; messages are added to the list.

    The last line of a text has no LF. Raises ValueError if the stream is truncated.
    """
    while head := stream.read(_LENGTH.size):
        key = _take(stream, head)
        value = packer.decompress(_take(stream, stream.read(_LENGTH.size)))
        if key:
            yield value
        else:
            messages.append(value)


def _take(stream: IO[bytes], head: bytes) -> bytes:
    if len(head) == _LENGTH.size:
        (size,) = _LENGTH.unpack(head)
        data = stream.read(size)
        if len(data) == size:
            return data
    raise ValueError("the output of the mappers is truncated")
