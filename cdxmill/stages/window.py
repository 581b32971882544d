"""A sliding view of a file: any range without reading bytes twice, a gzip member in pieces, a range as a file."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

from cdxmill.formats.archives.framing import MAX_HEADER, TRAILER_SIZE, header_size
from cdxmill.regex import regex

ReadAt = Callable[[int, int], bytes]

CHUNK = 4 << 20
"""Bytes per read. A read copies the unused rest of the buffer, so it is several times larger than a usual range."""
LOCAL_CHUNK = 1 << 19
"""The same for local files: the bytes are still in the processor's cache when they are used, and no new memory is needed each time."""
_GROWTH = 4
OVERLAP = 1 << 16
"""Bytes of the longest match that a search is certain to find where two reads meet."""
_FARTHEST = 1 << 62
"""Larger than any file. Offsets from wrong lengths can be larger still, and systems refuse to read there."""
_RANGE_PIECE = 1 << 18
_MEMBER_PIECE = 1 << 16
_ALWAYS = regex(r"^error -?\d+ (?:while decompressing data: )?")
_FIRST = 1 << 9
"""Compressed bytes that are enough for the first bytes of content: deflate's longest tables are smaller."""


def chunk_of(is_remote: bool) -> int:
    """Bytes per read of a file that is read from its start to its end."""
    return CHUNK if is_remote else LOCAL_CHUNK


class Window:
    """Bytes of a file by offset. `read_at(offset, size)` returns fewer bytes only at the end of the file.

    It is read in chunks of `chunk` bytes; each is _GROWTH times as long as the one before, up to `most` bytes.
    """

    def __init__(self, read_at: ReadAt, chunk: int = CHUNK, most: int = 0) -> None:
        self._read_at = read_at
        self._chunk, self._most = chunk, max(chunk, most)
        self._start = 0
        self._buffer = b""
        self._size = _FARTHEST  # until a read returns fewer bytes than asked for
        self._reached = 0

    def at(self, offset: int, size: int) -> tuple[bytes, int]:
        """(buffer, index): the bytes from `offset` on are at `index`, at least `size`; fewer only at the file's end."""
        index = offset - self._start
        if index >= 0 and len(self._buffer) - index >= size:
            return self._buffer, index
        return self._move(offset, size)

    def _move(self, offset: int, size: int) -> tuple[bytes, int]:
        index, have = offset - self._start, len(self._buffer)
        if 0 <= index <= have and self._start + have >= self._size:
            return self._buffer, index
        if offset >= self._size:
            return b"", 0
        kept = self._buffer[index:] if 0 <= index < have else b""
        wanted = max(self._chunk, size - len(kept))
        self._chunk = min(self._chunk * _GROWTH, self._most)
        more = self._read_at(offset + len(kept), wanted)
        self._buffer, self._start = kept + more, offset
        if self._buffer:
            self._reached = max(self._reached, offset + len(self._buffer))
            if len(more) < wanted:
                self._size = self._reached
        return self._buffer, 0

    def get(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; fewer only at the end of the file."""
        buffer, index = self.at(offset, size)
        return buffer[index : index + size]

    def pieces(self, offset: int, size: int) -> Iterator[bytes]:
        """The `size` bytes at `offset`, piece by piece; fewer only at the end of the file."""
        while size and (piece := self.get(offset, min(_RANGE_PIECE, size))):
            yield piece
            offset += len(piece)
            size -= len(piece)

    def peek(self, offset: int, size: int) -> bytes:
        """As `get`, but the view does not move."""
        index, have = offset - self._start, len(self._buffer)
        if index >= 0 and (index + size <= have or self._start + have >= self._size):
            return self._buffer[index : index + size]
        return self._read_at(offset, size) if offset < self._size else b""

    def search(self, pattern: re.Pattern[bytes], offset: int) -> int:
        """The start of the next match of `pattern` from `offset` on; -1 if there is none."""
        while True:
            before = min(offset, 1)  # a pattern may look behind at one byte
            buffer, index = self.at(offset - before, 2 * OVERLAP)
            match = pattern.search(buffer, index + before)
            if match is not None:
                return offset + match.start() - index - before
            if len(buffer) - index < 2 * OVERLAP:
                return -1
            offset += len(buffer) - index - OVERLAP

    def end(self) -> int:
        """The file's size in bytes. If it is not known yet, a few reads find it.

        If the file is truncated while it is read, bytes that were read count, so that readers never go back.
        """
        if self._size == _FARTHEST:
            low, high = self._reached, self._reached + self._chunk
            while self._read_at(high - 1, 1):
                low, high = high, high * 2
            while low < high - 1:  # the byte before `low` exists, the byte before `high` does not
                middle = (low + high) // 2
                low, high = (middle, high) if self._read_at(middle - 1, 1) else (low, middle)
            self._size = low
        return self._size


class MemberError(ValueError):
    """A compressed member is corrupt. It was read up to the offset `reached`.

    `truncated`: the file ends inside the member. `ended`: the member was read to its end, and only then found corrupt.
    `hint` is what the user can do, if it is not to fetch the file again.
    """

    def __init__(
        self, reason: str, reached: int, truncated: bool = False, ended: bool = False, hint: str = ""
    ) -> None:
        super().__init__(reason)
        self.reached, self.truncated, self.ended, self.hint = reached, truncated, ended, hint


class Pieces:
    """An iterator over pieces of content. After the last, `end` is what the generator returned: where the member ends."""

    def __init__(self, pieces: Generator[bytes, None, int]) -> None:
        self.end = -1
        self._pieces = self._until_end(pieces)

    def _until_end(self, pieces: Generator[bytes, None, int]) -> Iterator[bytes]:
        self.end = yield from pieces

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)


def inflate(window: Window, offset: int) -> Pieces:
    """The content of the gzip member at `offset`, in pieces of at most 256 KiB. Iterating raises MemberError."""
    return Pieces(_inflate(window, offset))


def inflate_start(window: Window, offset: int, size: int) -> bytes:
    """The first `size` bytes of the content, unchecked; b"" if no member starts at `offset`."""
    try:
        head = window.get(offset, _FIRST + size)
        start = header_size(head) or _skip_header(window, offset)
        data = window.get(offset + start, _FIRST + size)
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size)
    except (ValueError, zlib.error):
        return b""


def _inflate(window: Window, offset: int) -> Generator[bytes, None, int]:
    pos = offset + _skip_header(window, offset)
    library, library_error = inflating_library()
    inflater = library.decompressobj(wbits=-zlib.MAX_WBITS)
    crc, size, data = 0, 0, b""
    while not inflater.eof:
        if not data:
            data = window.get(pos, _MEMBER_PIECE)
            pos += len(data)
            if not data:
                raise MemberError("the file is truncated inside a gzip member", pos, truncated=True)
        try:
            piece = inflater.decompress(data, _MEMBER_PIECE * 4)
        except library_error as error:
            raise MemberError(f"corrupt gzip data ({_reason(error)})", pos) from None
        data = inflater.unconsumed_tail
        crc, size = library.crc32(piece, crc), size + len(piece)
        if piece:
            yield piece
    return _check_trailer(window, pos - len(inflater.unused_data), crc, size)


def inflating_library() -> tuple[Any, Any]:
    """The module with the functions of zlib, and its error. isal takes half of zlib's time, but a node may not have it."""
    try:
        from isal import isal_zlib  # slow to import, and most members are read another way
    except ImportError:
        return zlib, zlib.error
    return isal_zlib, isal_zlib.IsalError


def _reason(error: Exception) -> str:
    """The text of a message such as isal's `Error -1 Invalid deflate block found`, without its start."""
    return _ALWAYS.sub("", str(error).lower())


def _skip_header(window: Window, offset: int) -> int:
    head = window.get(offset, MAX_HEADER)
    try:
        size = header_size(head)
    except ValueError as error:
        raise MemberError(str(error), offset) from None
    if size is not None:
        return size
    if len(head) < MAX_HEADER:
        reached = offset + len(head)
        raise MemberError("the file is truncated inside a gzip header", reached, truncated=True)
    raise MemberError("gzip header longer than 128 KiB", offset + len(head))


def _check_trailer(window: Window, pos: int, crc: int, size: int) -> int:
    trailer = window.get(pos, TRAILER_SIZE)
    end = pos + len(trailer)
    if len(trailer) < TRAILER_SIZE:
        raise MemberError("the file is truncated inside a gzip trailer", end, truncated=True)
    if int.from_bytes(trailer[:4], "little") != crc:
        raise MemberError("gzip CRC32 mismatch", end, ended=True)
    if int.from_bytes(trailer[4:], "little") != size & 0xFFFFFFFF:
        raise MemberError("gzip length mismatch (ISIZE)", end, ended=True)
    return end


class WindowFile(io.RawIOBase):
    """The bytes from `pos` to `end` of a window."""

    def __init__(self, window: Window, pos: int, end: int) -> None:
        self._window, self._pos, self._end = window, pos, end

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes; fewer at the end of the range or of the file."""
        left = self._end - self._pos
        data = self._window.get(self._pos, min(size, left) if size >= 0 else left)
        self._pos += len(data)
        return data


_PIECE = 4 << 20
"""Bytes per read of the rest of a file."""


class SummedReads:
    """Reads of a file from which the SHA-256 of the whole file comes, mostly without reading any byte twice."""

    def __init__(self, read_at: ReadAt) -> None:
        import hashlib

        self._read_at, self._sum, self.size = read_at, hashlib.sha256(), 0

    def __call__(self, offset: int, size: int) -> bytes:
        """Read, and add what follows the bytes that were added before."""
        data = self._read_at(offset, size)
        if offset <= self.size < offset + len(data):
            self._sum.update(memoryview(data)[self.size - offset :])
            self.size = offset + len(data)
        return data

    def sha256(self) -> str:
        """The SHA-256 of the file, of which the rest is read now. `size` is then its size."""
        while self(self.size, _PIECE):
            pass
        return self.sha256_so_far()

    def sha256_so_far(self) -> str:
        """The SHA-256 of the first `size` bytes."""
        return self._sum.hexdigest()
