"""A ZipNum block: up to N sorted CDX lines as one gzip member (docs/formats/zipnum.md).

The same lines give the same bytes only with the same compressor: the same library, version and level.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

LIBRARIES = ("libdeflate", "zlib")
DEFAULT_LEVEL = 6
BLOCK_LINES = 3000
"""Lines of a full block, in the clusters of all tools."""


class Compressor(NamedTuple):
    """The compression library and its level."""

    library: str = "libdeflate"
    level: int = DEFAULT_LEVEL

    def version(self) -> str:
        """The installed version of the library. Raises ValueError if it is not installed."""
        if self.library == "zlib":
            return zlib.ZLIB_RUNTIME_VERSION
        return _libdeflate_version()

    def compress(self, data: bytes | bytearray) -> bytes:
        """Compress to one gzip member without name and time, so that equal data gives equal bytes.

        >>> zlib.decompress(Compressor("zlib").compress(b"a line"), 31)
        b'a line'
        """
        if self.library == "zlib":
            packer = zlib.compressobj(self.level, zlib.DEFLATED, zlib.MAX_WBITS | 16)
            return packer.compress(data) + packer.flush()
        import deflate  # not installed on nodes that use zlib

        return bytes(deflate.gzip_compress(data, self.level))

    def decompress(self, data: bytes) -> bytes:
        """Decompress the result of `compress`.

        >>> Compressor("zlib").decompress(Compressor("zlib").compress(b"a line"))
        b'a line'
        """
        if self.library == "zlib":
            return zlib.decompress(data, zlib.MAX_WBITS | 16)
        import deflate

        return bytes(deflate.gzip_decompress(data))


def checked_compressor(library: str, level: int) -> Compressor:
    """The compressor of this library and level. Raises ValueError if there is none or it is not installed.

    >>> checked_compressor("zlib", 9)
    Compressor(library='zlib', level=9)
    """
    if library not in LIBRARIES:
        raise ValueError(f"invalid compressor {library!r}: expected {' or '.join(LIBRARIES)}")
    highest = 9 if library == "zlib" else 12
    if not 1 <= level <= highest:
        raise ValueError(f"invalid level {level}: {library} has levels 1 to {highest}")
    compressor = Compressor(library, level)
    compressor.version()
    return compressor


def _libdeflate_version() -> str:
    try:
        import deflate
    except ImportError:
        raise ValueError("the compressor libdeflate is not installed (pip install deflate)") from None
    return f"deflate {deflate.__version__}"
