"""A zstd dictionary (RFC 8878, 5): trained, read from an archive's first frame, used to decompress, and what it saves.

dictionary        37 A4 30 EC | id, 4 bytes | tables of probabilities | content
skippable frame   5D 2A 4D 18 | length, 4 bytes | the dictionary, as it is or compressed as a frame
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

import zstandard

from cdxmill.formats.archives.framing import DICTIONARY_MAGIC, ZSTD_MAGIC

DICTIONARY = (0xEC30A437).to_bytes(4, "little")
MIN_ID, MAX_ID = 32768, 2**31 - 1
"""Ids that a private dictionary may have."""
MIN_SIZE, MAX_DICTIONARY = 256, 16 << 20
"""Bytes. zstd's trainer refuses less; readers refuse more, which bounds the memory for a wrong length."""
LARGEST_READ = 8 << 20
"""Bytes of the largest dictionary that every reader accepts. FastWARC 2.0.1 refuses larger ones, so cdxmill writes none."""
MAX_WINDOW = 128 << 20
"""Bytes. The limit of the program zstd, too. The specification of WARC-Zstd asks readers for 8 MiB."""

_SEGMENT, _MATCH = 1000, 8
_TABLE = 22
_PREPARED = 8
"""Dictionaries that are kept. The archives of a crawl have one or a few."""
_FRAME_LEVEL = 19
_FRAME_HEADER = 8


class TooFewSamples(ValueError):
    """No dictionary can be made from these samples."""


def train(samples: Sequence[bytes], size: int, level: int) -> bytes:
    """A dictionary of at most `size` bytes for frames of this level. Raises TooFewSamples."""
    try:
        trained = zstandard.train_dictionary(
            size, list(samples), k=_SEGMENT, d=_MATCH, f=_TABLE, level=level, dict_id=MIN_ID
        )
    except zstandard.ZstdError as error:
        raise TooFewSamples(str(error).rpartition(": ")[2].lower()) from None
    return trained.as_bytes()


def with_own_id(data: bytes, number: int | None) -> bytes:
    """The dictionary with another id; by default with one that depends on its content alone.

    >>> with_own_id(DICTIONARY + bytes(4) + b"x", 40000).hex()
    '37a430ec409c000078'
    """
    if number is None:
        number = MIN_ID + zlib.crc32(data[8:]) % (MAX_ID - MIN_ID + 1)
    return data[:4] + number.to_bytes(4, "little") + data[8:]


def dictionary_id(data: bytes) -> int:
    """The id of a dictionary. Raises ValueError if `data` is not a trained dictionary that readers accept."""
    if len(data) > MAX_DICTIONARY:
        raise ValueError(f"is larger than {MAX_DICTIONARY >> 20} MiB")
    if data[:4] != DICTIONARY or len(data) < 8:
        raise ValueError("is not a zstd dictionary (it does not start with 37 A4 30 EC)")
    try:
        zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_FULLDICT).precompute_compress(1)
    except zstandard.ZstdError:
        raise ValueError("is a corrupt zstd dictionary") from None
    return int.from_bytes(data[4:8], "little")


def dictionary_frame(dictionary: bytes) -> bytes:
    """The skippable frame that makes a dictionary part of a file. The dictionary is compressed in it."""
    packer = zstandard.ZstdCompressor(_FRAME_LEVEL, write_checksum=True, write_content_size=True)
    packed = packer.compress(dictionary)
    return DICTIONARY_MAGIC + len(packed).to_bytes(4, "little") + packed


@lru_cache(maxsize=_PREPARED)
def dictionary_of(frame: bytes) -> zstandard.ZstdCompressionDict:
    """The dictionary in a skippable frame. Raises ZstdError or ValueError if it contains none.

    A process keeps a few by their content. With 110 KiB, a record is fetched in 0.07 ms instead of 0.2.
    """
    content = frame[_FRAME_HEADER:]
    if content[:4] == ZSTD_MAGIC:
        inflater = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        with inflater.stream_reader(content, read_across_frames=False) as reader:
            content = reader.read(MAX_DICTIONARY + 1)
        if len(content) > MAX_DICTIONARY:
            raise zstandard.ZstdError(f"larger than {MAX_DICTIONARY >> 20} MiB")
    return zstandard.ZstdCompressionDict(content)


_KNOWN: dict[int, zstandard.ZstdCompressionDict] = {}


def know(data: bytes) -> None:
    """Keep a dictionary for archives that do not contain it. They name it by its id."""
    found = zstandard.ZstdCompressionDict(data)
    _KNOWN[found.dict_id()] = found


def all_known() -> list[bytes]:
    """The dictionaries that were kept, to be sent to other processes."""
    return [found.as_bytes() for found in _KNOWN.values()]


def known(frame: bytes) -> zstandard.ZstdCompressionDict | None:
    """The dictionary that a frame names, from its first bytes; None if nobody gave it."""
    if not _KNOWN or not frame.startswith(ZSTD_MAGIC):
        return None
    try:
        return _KNOWN.get(zstandard.get_frame_parameters(frame).dict_id)
    except zstandard.ZstdError:
        return None


class Inflater:
    """Decompressors with one dictionary, which is prepared once. Raises ZstdError if it is corrupt.

    Frames that need a window of more than `max_window` bytes are refused. `dictionary_id` is 0 without a dictionary.
    """

    def __init__(
        self, dictionary: zstandard.ZstdCompressionDict | None = None, max_window: int | None = None
    ) -> None:
        self.dictionary, self.max_window = dictionary, max_window or MAX_WINDOW
        self.dictionary_id = dictionary.dict_id() if dictionary is not None else 0
        self.whole = self.new()
        """The one for whole frames. Only one thread may use it."""

    @property
    def dictionary_bytes(self) -> bytes:
        """The dictionary, b"" for none."""
        return b"" if self.dictionary is None else self.dictionary.as_bytes()

    def new(self) -> zstandard.ZstdDecompressor:
        """Return one more decompressor."""
        return zstandard.ZstdDecompressor(dict_data=self.dictionary, max_window_size=self.max_window)
