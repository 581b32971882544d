"""The content of a record, or of a capture's records -> one gzip member or Zstandard frame, which is checked.

A frame is as IIPC's WARC-Zstd 1.0 requires: with content size, checksum and, if it needs one, the id of its dictionary,
which is in the first frame of the file. Readers need a window of at most 8 MiB.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol

from cdxmill.capture import Damage, Headers
from cdxmill.errors import StoppedError
from cdxmill.formats.archives.warc_header import HeaderShapes, fields_of
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.stages.records.parse_header import RecordError, parse_header
from cdxmill.stages.records.read_contents import HELD, Content

_WINDOW_LOG = 23
"""Of the largest window that every reader has."""
_HIGHEST_ZLIB = 9
_TRIED = 8 << 20
"""Bytes of contents that are packed in two ways to find out whether a dictionary pays. They are held in memory."""
Write = Callable[[bytes], object]


def group_contents(contents: Iterable[Content | Damage]) -> Iterator[Content | Damage]:
    """Join records of which one names the other in WARC-Concurrent-To, up to HELD bytes. All else passes through."""
    group: list[Content] = []
    ids: set[bytes | None] = set()
    about: set[bytes | None] = set()
    shapes = HeaderShapes()
    for item in contents:
        headers = {} if isinstance(item, Damage) else _headers(item, shapes)
        own, concurrent = headers.get(b"warc-record-id"), headers.get(b"warc-concurrent-to")
        belongs = bool(own) and (own in about or concurrent in ids)
        if group and not (belongs and _has_room(group, item)):
            yield _joined(group)
            group, ids, about = [], set(), set()
        if isinstance(item, Damage) or item.data is None or not own:
            yield item
            continue
        group.append(item)
        ids.add(own)
        about.add(concurrent)
    if group:
        yield _joined(group)


def _has_room(group: list[Content], item: Content | Damage) -> bool:
    return not isinstance(item, Damage) and sum(one.size for one in group) + item.size <= HELD


def _headers(item: Content, shapes: HeaderShapes) -> Headers:
    if item.data is None:
        return {}
    found = shapes.match(item.data)
    if found is not None:
        return fields_of(found)
    try:
        return parse_header(item.data, shapes.parse)[0]
    except RecordError:  # blank lines
        return {}


def _joined(group: list[Content]) -> Content:
    first, last = group[0], group[-1]
    data = b"".join(one.data or b"" for one in group) if len(group) > 1 else first.data
    length = last.offset + last.length - first.offset
    return Content(first.offset, length, len(data or b""), data, records=len(group))


class _Stream(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class Packer(ABC):
    """Packs contents into members or frames. `head` has the bytes that a file starts with; `library` makes them."""

    head = b""
    library = ""
    _compress: Callable[[bytes | bytearray], bytes]
    _decompress: Callable[[bytes], bytes | bytearray]

    @abstractmethod
    def _streams(self, size: int) -> tuple[_Stream, Callable[[bytes], bytes]]:
        """A compressor for a content of `size` bytes, and what decompresses its result."""

    def pack(self, data: bytes | bytearray) -> bytes:
        """The member or frame with the content `data`. Raises StoppedError if it does not give that content again."""
        packed = self._compress(data)
        if self._decompress(packed) != data:
            raise _differs()
        return packed

    def pack_large(self, content: Content, write: Write) -> int:
        """As `pack`, piece by piece with `write`. Returns the length."""
        packer, unpack = self._streams(content.size)
        length, given, got = 0, (0, 0), (0, 0)

        def copy(packed: bytes) -> None:
            nonlocal length, got
            if packed:
                write(packed)
                length += len(packed)
                got = _counted(got, unpack(packed))

        for piece in content.pieces():
            given = _counted(given, piece)
            copy(packer.compress(piece))
        copy(packer.flush())
        if given != got or given[0] != content.size:
            raise _differs()
        return length


class GzipPacker(Packer):
    """Packs by libdeflate, and large contents by zlib, which needs no memory for all of it."""

    def __init__(self, level: int) -> None:
        compressor = Compressor("libdeflate", level)
        self._compress, self._decompress = compressor.compress, compressor.decompress
        self._level = min(level, _HIGHEST_ZLIB)
        self.library = f"libdeflate, {compressor.version()}"

    def _streams(self, size: int) -> tuple[_Stream, Callable[[bytes], bytes]]:
        deflater = zlib.compressobj(self._level, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        return deflater, zlib.decompressobj(zlib.MAX_WBITS | 16).decompress


class ZstPacker(Packer):
    """Packs with a `dictionary`, if it is not empty. Requires: it has a `dictionary_id`."""

    def __init__(self, level: int, dictionary: bytes = b"") -> None:
        import zstandard

        from cdxmill.formats.archives.zstd_dictionary import dictionary_frame  # slow to import

        given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self.head = dictionary_frame(dictionary) if dictionary else b""
        self.library = "zstd " + ".".join(map(str, zstandard.ZSTD_VERSION))
        written: dict[str, Any] = {"write_checksum": True, "write_content_size": True, "write_dict_id": True}
        window_log = zstandard.ZstdCompressionParameters.from_level(level).window_log
        settings = zstandard.ZstdCompressionParameters.from_level(
            level, window_log=min(window_log, _WINDOW_LOG), **written
        )
        self._large = zstandard.ZstdCompressor(dict_data=given, compression_params=settings)
        self._inflater = zstandard.ZstdDecompressor(given, max_window_size=1 << _WINDOW_LOG)
        self._compress = zstandard.ZstdCompressor(level, given, **written).compress
        self._decompress = self._inflater.decompress

    def _streams(self, size: int) -> tuple[_Stream, Callable[[bytes], bytes]]:
        return self._large.compressobj(size=size), self._inflater.decompressobj().decompress


def _counted(before: tuple[int, int], data: bytes) -> tuple[int, int]:
    size, checksum = before
    return size + len(data), zlib.crc32(data, checksum)


def _differs() -> StoppedError:
    return StoppedError(
        "a record that was compressed does not decompress to the same bytes; check the memory of this machine"
    )


def packed_size(content: Content, packer: Packer) -> int:
    """The length of a content's member or frame."""
    if content.data is None:
        return packer.pack_large(content, len)
    return len(packer.pack(content.data))


def choose_packer(
    contents: Iterator[Content | Damage], packer: Packer, plain: Packer, size: int
) -> tuple[Packer, Iterator[Content | Damage]]:
    """`packer`, or `plain` if the `head` of the first takes more bytes than it saves; and all contents.

    Packs the first contents in both ways, until it has saved as much as its head takes, or is expected not to for all
    `size` bytes of the archive. So the same archive always gets the same packer.
    """
    held: list[Content | Damage] = []
    saved = seen = 0
    chosen: Packer | None = None
    for item in contents:
        held.append(item)
        if isinstance(item, Damage):
            continue
        if item.data is None:  # it is valid until the next one is asked for
            chosen = packer if _pays(saved, item.offset, size, packer) else plain
        else:
            saved += len(plain.pack(item.data)) - len(packer.pack(item.data))
            seen += item.size
            if saved > len(packer.head):
                chosen = packer
            elif seen >= _TRIED:
                chosen = packer if _pays(saved, item.offset + item.length, size, packer) else plain
        if chosen is not None:
            break
    return chosen or plain, chain(held, contents)


def _pays(saved: int, read: int, size: int, packer: Packer) -> bool:
    """Whether a packer saves more than its head takes, if it saves as much everywhere as in the first `read` bytes."""
    return saved * size > len(packer.head) * read


class Packed(NamedTuple):
    """A content that was written, and its byte range in the new archive."""

    content: Content
    offset: int
    length: int


def write_contents(
    contents: Iterable[Content | Damage], packer: Packer, write: Write
) -> Iterator[Packed | Damage]:
    """Write each content as a member or frame of its own. Damage passes through."""
    offset = 0
    for item in contents:
        if isinstance(item, Damage):
            yield item
            continue
        if not offset:
            write(packer.head)
            offset = len(packer.head)
        if item.data is None:
            length = packer.pack_large(item, write)
        else:
            packed = packer.pack(item.data)
            write(packed)
            length = len(packed)
        yield Packed(item, offset, length)
        offset += length
