"""Payloads as servers send them, with their HTTP header fields and the decoded payload."""

from __future__ import annotations

import gzip
import zlib

import zstandard

TEXT = b"<p>" + b"so many words, " * 400 + b"</p>"


def chunked(data: bytes, size: int = 100, extension: bytes = b"") -> bytes:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n\r\n"


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


ENCODED: dict[str, tuple[bytes, bytes]] = {
    "identity": (b"", TEXT),
    "chunked": (b"Transfer-Encoding: chunked\r\n", chunked(TEXT)),
    "chunks with extensions": (b"Transfer-Encoding: Chunked\r\n", chunked(TEXT, 7, b";a=b")),
    "chunked by name only": (b"Transfer-Encoding: chunked\r\n", TEXT),
    "gzip": (b"Content-Encoding: gzip\r\n", gzip.compress(TEXT)),
    "gzip of two members": (
        b"Content-Encoding: x-gzip\r\n",
        gzip.compress(TEXT[:90]) + gzip.compress(TEXT[90:]),
    ),
    "gzip by name only": (b"Content-Encoding: gzip\r\n", TEXT),
    "gzip and more": (b"Content-Encoding: gzip\r\n", gzip.compress(TEXT) + b"<!-- -->"),
    "chunked gzip": (
        b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        chunked(gzip.compress(TEXT), 9),
    ),
    "deflate": (b"Content-Encoding: deflate\r\n", zlib.compress(TEXT)),
    "bare deflate": (b"Content-Encoding: deflate\r\n", deflated(TEXT)),
    "zstd": (b"Content-Encoding: zstd\r\n", zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)),
    "twice": (b"Content-Encoding: deflate, gzip\r\n", gzip.compress(zlib.compress(TEXT))),
    "no content": (b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", b""),
    "no deflated content": (b"Content-Encoding: deflate\r\n", b""),
}
PAYLOADS = {name: b"" if name.startswith("no ") else TEXT for name in ENCODED}
