"""Reads the byte range of a line with warcio: it must be exactly one record."""

from __future__ import annotations

import functools

import zstandard

from ..second_opinion.seen import ReadError, seen_alone
from .sources import CRLF

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@functools.lru_cache(maxsize=10_000)
def name_in(data: bytes, dictionary: zstandard.ZstdCompressionDict | None = None) -> str:
    """The name of the only record in `data`: WARC-Record-ID, or URL and date in ARC. Raises ReadError."""
    if data.startswith(ZSTD_MAGIC):
        data = _from_frames(data, dictionary).removesuffix(CRLF)
    record = seen_alone(data)
    return f"{record.url} {record.date}" if record.is_arc else record.identity


def _from_frames(data: bytes, dictionary: zstandard.ZstdCompressionDict | None) -> bytes:
    """The content of the frames in `data`, read by python-zstandard."""
    decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
    content = b""
    while data:
        inflater = decompressor.decompressobj()
        try:
            content += inflater.decompress(data)
        except zstandard.ZstdError as error:
            raise ReadError(str(error)) from error
        if not inflater.eof:
            raise ReadError("a frame is cut")
        data = inflater.unused_data
    return content
