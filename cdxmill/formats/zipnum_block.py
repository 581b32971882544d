"""A ZipNum block: up to N sorted CDX lines as one gzip member (docs/formats/zipnum.md).

The compressor is part of a cluster's identity: the same lines give the same bytes only
with the same library and level.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

LIBRARIES = ("libdeflate", "zlib")
DEFAULT_LEVEL = 6


class Compressor(NamedTuple):
    """Which library packs the blocks, and how hard."""

    library: str = "libdeflate"
    level: int = DEFAULT_LEVEL

    def version(self) -> str:
        """The version that is installed. Raises ValueError where the library is not."""
        if self.library == "zlib":
            return zlib.ZLIB_RUNTIME_VERSION
        return _libdeflate_version()

    def compress(self, data: bytes | bytearray) -> bytes:
        """One gzip member without name and time, so that equal data give equal bytes.

        >>> zlib.decompress(Compressor("zlib").compress(b"a line"), 31)
        b'a line'
        """
        if self.library == "zlib":
            packer = zlib.compressobj(self.level, zlib.DEFLATED, zlib.MAX_WBITS | 16)
            return packer.compress(data) + packer.flush()
        import deflate  # a node that packs with zlib need not have it

        return bytes(deflate.gzip_compress(data, self.level))

    def decompress(self, data: bytes) -> bytes:
        """What `compress` has packed.

        >>> Compressor("zlib").decompress(Compressor("zlib").compress(b"a line"))
        b'a line'
        """
        if self.library == "zlib":
            return zlib.decompress(data, zlib.MAX_WBITS | 16)
        import deflate

        return bytes(deflate.gzip_decompress(data))


def _libdeflate_version() -> str:
    try:
        import deflate
    except ImportError:
        raise ValueError("the compressor libdeflate is not installed (pip install deflate)") from None
    return f"deflate {deflate.__version__}"
