"""The compressor of ZipNum blocks and of CDX files. The same text gives the same bytes only with the same library,
version, level and sections."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from cdxmill.formats.clusters.sections import (
    SECTION_LINES,
    cut_sections,
    format_header,
    format_trailer,
    section_keys,
)

LEVELS = {"zlib-ng": 9, "libdeflate": 12, "zlib": 9}
"""The libraries, and their highest levels."""
_DEFAULT_LEVELS = {"zlib-ng": 5, "libdeflate": 6, "zlib": 6}
_GZIP, _RAW = zlib.MAX_WBITS | 16, -zlib.MAX_WBITS
_MEMORY = 9
"""The largest buffer of deflate: blocks are 0.1 % smaller than with the usual 8, in the same time."""


class Compressor(NamedTuple):
    """The compression library and its level; and the lines of a section of a block, 0 for blocks without sections."""

    library: str = "libdeflate"
    level: int = 6
    section_lines: int = 0

    def version(self) -> str:
        """The installed version of the library. Raises ValueError if it is not installed."""
        try:
            if self.library == "zlib-ng":
                from zlib_ng import zlib_ng

                return f"zlib-ng {zlib_ng.ZLIBNG_RUNTIME_VERSION}"
            if self.library == "libdeflate":
                import deflate

                return f"deflate {deflate.__version__}"
        except ImportError:
            package = {"zlib-ng": "zlib-ng", "libdeflate": "deflate"}[self.library]
            raise ValueError(
                f"the compressor {self.library} is not installed (pip install {package})"
            ) from None
        return zlib.ZLIB_RUNTIME_VERSION

    def compress(self, data: bytes | bytearray) -> bytes:
        """Compress to one gzip member without name and time, so that equal data gives equal bytes.

        >>> zlib.decompress(Compressor("zlib").compress(b"a line"), 31)
        b'a line'
        """
        if self.library == "libdeflate":
            import deflate  # not installed on nodes that use another library

            return bytes(deflate.gzip_compress(data, self.level))
        packer = self._module().compressobj(self.level, zlib.DEFLATED, _GZIP, _MEMORY)
        return bytes(packer.compress(data) + packer.flush())

    def compress_block(self, lines: int, text: bytes | bytearray, key: bytes) -> bytes:
        r"""Compress a block of `lines` lines, whose first line has this `key`, to one gzip member with sections.

        >>> block = Compressor("zlib", 6, 1).compress_block(2, b"a 1\nb 2\n", b"a 1")
        >>> block[3], zlib.decompress(block, 31)
        (4, b'a 1\nb 2\n')
        """
        starts = cut_sections(text, lines, self.section_lines)
        if len(starts) == 1:
            return self.compress(text)
        module, view = self._module(), memoryview(text)
        packer = module.compressobj(self.level, zlib.DEFLATED, _RAW, _MEMORY)
        sections = [
            packer.compress(view[start:end]) + packer.flush(zlib.Z_FULL_FLUSH)
            for start, end in zip(starts, starts[1:])  # noqa: B905, RUF007 - nodes may have Python 3.9
        ]
        sections.append(packer.compress(view[starts[-1] :]) + packer.flush())
        header = format_header(sections, section_keys(text, starts, key), list(map(module.crc32, sections)))
        return b"".join((header, *sections, format_trailer(module.crc32(text), len(text))))

    def decompress(self, data: bytes) -> bytes:
        """Decompress the result of `compress`.

        >>> Compressor("zlib").decompress(Compressor("zlib").compress(b"a line"))
        b'a line'
        """
        if self.library == "libdeflate":
            import deflate

            return bytes(deflate.gzip_decompress(data))
        return bytes(self._module().decompress(data, _GZIP))

    def _module(self) -> Any:
        """The library's module, which has the functions of zlib. Requires: it is not libdeflate."""
        if self.library == "zlib":
            return zlib
        from zlib_ng import zlib_ng

        return zlib_ng


BLOCKS = Compressor("zlib-ng", _DEFAULT_LEVELS["zlib-ng"], SECTION_LINES)
"""How the blocks of a cluster are compressed, unless an option says otherwise."""


def checked_compressor(
    library: str, level: int | None = None, section_lines: int | None = None
) -> Compressor:
    """The compressor of this library. Without a level, it is the usual one; without `section_lines`, sections are usual.

    Raises ValueError if there is none, it is not installed, or it cannot make sections.

    >>> checked_compressor("zlib", 9)
    Compressor(library='zlib', level=9, section_lines=500)
    """
    if library not in LEVELS:
        *others, last = LEVELS
        raise ValueError(f"invalid compressor {library!r}: expected {', '.join(others)} or {last}")
    if level is None:
        level = _DEFAULT_LEVELS[library]
    if not 1 <= level <= LEVELS[library]:
        raise ValueError(f"invalid level {level}: {library} has levels 1 to {LEVELS[library]}")
    if library == "libdeflate" and section_lines:
        raise ValueError("libdeflate cannot make sections; use --section-lines 0, zlib-ng or zlib")
    if section_lines is None:
        section_lines = 0 if library == "libdeflate" else SECTION_LINES
    compressor = Compressor(library, level, section_lines)
    compressor.version()
    return compressor
