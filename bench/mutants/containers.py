"""Members and frames, made and split with zlib and python-zstandard."""

from __future__ import annotations

import zlib

import zstandard

CRLF = b"\r\n\r\n"
DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"


def gzip_member(content: bytes, level: int = 6) -> bytes:
    deflater = zlib.compressobj(level, zlib.DEFLATED, 31)
    return deflater.compress(content) + deflater.flush()


def frame(
    content: bytes, dictionary: zstandard.ZstdCompressionDict | None = None, has_sum: bool = True
) -> bytes:
    return zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=has_sum).compress(content)


def dictionary_frame(content: bytes) -> bytes:
    return DICTIONARY_MAGIC + len(content).to_bytes(4, "little") + content


def split_members(data: bytes) -> list[bytes]:
    """The content of each gzip member. Raises zlib.error."""
    found = []
    while data:
        inflater = zlib.decompressobj(31)
        found.append(inflater.decompress(data))
        data = inflater.unused_data
    return found
