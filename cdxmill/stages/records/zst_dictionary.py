"""The decompressor for the frames of a Zstandard archive, with the dictionary in its first frame, if it has one.

skippable frame   5D 2A 4D 18, length, dictionary     the dictionary, as it is or compressed as a frame
"""

from __future__ import annotations

import zstandard

from cdxmill.formats.zstd_frame import MAGIC

MAX_DICTIONARY = 16 << 20
"""Bytes. zstd trains dictionaries of 110 KiB; the limit bounds the memory for a wrong length."""
_MAX_WINDOW = 128 << 20
_HEADER = 8


def inflater_with(frame: bytes) -> zstandard.ZstdDecompressor:
    """A decompressor with the dictionary in the skippable `frame`; without a dictionary if `frame` is b"".

    Raises ZstdError or ValueError if the frame contains no dictionary.
    """
    if not frame:
        return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    dictionary = zstandard.ZstdCompressionDict(_unpacked(frame[_HEADER:]))
    return zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=_MAX_WINDOW)


def _unpacked(data: bytes) -> bytes:
    if data[:4] != MAGIC:
        return data
    inflater = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    with inflater.stream_reader(data, read_across_frames=False) as reader:
        content = reader.read(MAX_DICTIONARY + 1)
    if len(content) > MAX_DICTIONARY:
        raise zstandard.ZstdError(f"larger than {MAX_DICTIONARY >> 20} MiB")
    return content
