"""The decompressor for the frames of a Zstandard archive, with the dictionary in its first frame, if it has one.

skippable frame   5D 2A 4D 18, length, dictionary     the dictionary, as it is or compressed as a frame
"""

from __future__ import annotations

import zstandard

from cdxmill.formats.archives.zstd_frame import MAGIC

MAX_DICTIONARY = 16 << 20
"""Bytes. zstd trains dictionaries of 110 KiB; the limit bounds the memory for a wrong length."""
MAX_WINDOW = 128 << 20
"""Bytes. The limit of the program zstd, too. The specification of WARC-Zstd asks readers for 8 MiB."""
_HEADER = 8


def dictionary_of(frame: bytes) -> zstandard.ZstdCompressionDict:
    """The dictionary in the skippable `frame`. Raises ZstdError or ValueError if it contains none."""
    return zstandard.ZstdCompressionDict(_unpacked(frame[_HEADER:]))


class Inflater:
    """Decompressors with one dictionary, which is prepared once. Raises ZstdError if it is corrupt.

    Frames that need a window of more than `max_window` bytes are refused. `dictionary_id` is 0 without a dictionary.
    """

    def __init__(
        self, dictionary: zstandard.ZstdCompressionDict | None = None, max_window: int = MAX_WINDOW
    ) -> None:
        self._dictionary, self.max_window = dictionary, max_window
        self.dictionary_id = dictionary.dict_id() if dictionary is not None else 0
        self.whole = self.new()
        """The one for whole frames. Only one thread may use it."""

    def new(self) -> zstandard.ZstdDecompressor:
        """Return one more decompressor."""
        return zstandard.ZstdDecompressor(dict_data=self._dictionary, max_window_size=self.max_window)


def _unpacked(data: bytes) -> bytes:
    if data[:4] != MAGIC:
        return data
    inflater = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    with inflater.stream_reader(data, read_across_frames=False) as reader:
        content = reader.read(MAX_DICTIONARY + 1)
    if len(content) > MAX_DICTIONARY:
        raise zstandard.ZstdError(f"larger than {MAX_DICTIONARY >> 20} MiB")
    return content
