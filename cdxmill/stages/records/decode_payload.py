"""A payload as it was sent -> the payload with transfer and content encodings undone (RFC 9110, RFC 9112).

Many crawlers decode payloads before they write them, but do not change the HTTP head. So a payload that does not begin
like its encoding is returned unchanged.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from itertools import chain
from typing import Any, NamedTuple

from cdxmill.regex import regex
from cdxmill.stages.records.record_parts import MAX_BODY

_CHUNK = regex(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_LINE = 1 << 12
"""Maximum bytes of the line before a chunk."""
_PAYLOAD_PIECE = 1 << 18
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_NOTHING = ("", "identity", "none")
_SALVAGED = 1 << 12
"""Bytes of a corrupt stream that are decompressed at once. Near the error, they are fewer."""

_ZSTD_WINDOW = 8 << 20
"""Bytes. HTTP allows no larger window (RFC 9659)."""

Pieces = Iterator[bytes]
Stream = Generator[bytes, None, Pieces]
"""The pieces of a stream. The return value is the rest of the input."""
_ENCODINGS = regex(rb"\n(content|transfer)-encoding[ \t]*:([^\n]*(?:\n[ \t][^\n]*)*)", re.I)


class PayloadError(ValueError):
    """The payload cannot be decoded. The pieces before the error are correct."""


def decode_payload(http_head: bytes, payload: Pieces) -> Pieces:
    """`payload`, decoded as its HTTP head says. Raises PayloadError, at once or during iteration."""
    known, unknown = _codings(http_head)
    if unknown:
        raise PayloadError(f"unknown content encoding {unknown[0][:40]!r}; omit --decode")
    for coding in reversed(known):
        payload = _DECODERS[coding](payload)
    return payload


def _codings(http_head: bytes) -> tuple[list[str], list[str]]:
    """The codings of all fields, in the order in which they were applied, and those of them that are unknown."""
    of_fields: dict[bytes, list[str]] = {b"content": [], b"transfer": []}
    for name, value in _ENCODINGS.findall(http_head):
        words = [word.strip().decode("latin-1") for word in value.lower().split(b",")]
        of_fields[name.lower()] += [word for word in words if word not in _NOTHING]
    found = of_fields[b"content"] + of_fields[b"transfer"]
    return [name for name in found if name in _DECODERS], [name for name in found if name not in _DECODERS]


def dechunk(pieces: Pieces) -> Pieces:
    """A chunked body without the lines between the chunks.

    >>> b"".join(dechunk(iter([b"3\\r\\nab", b"c\\r\\n0\\r\\n\\r\\n"]))), b"".join(dechunk(iter([b"<p>"])))
    (b'abc', b'<p>')
    """
    body = _Body(pieces)
    match = _CHUNK.fullmatch(line := body.line())
    if match is None:
        yield line
        yield from body.rest()
        return
    while size := int(match[1], 16):
        yield from body.take(size)
        if body.line() not in (b"\r\n", b"\n"):
            raise PayloadError("the chunked payload is corrupt (a chunk does not end after its length)")
        match = _CHUNK.fullmatch(body.line())
        if match is None:
            raise PayloadError("the chunked payload is truncated or corrupt")


class _Body:
    """Pieces, read by line and by size."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._data = b""

    def line(self) -> bytes:
        """The bytes up to and including the next LF. Without a near LF, the bytes read so far."""
        while (end := self._data.find(b"\n")) < 0 and len(self._data) < _LINE:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._data += piece
        line = self._data[: end + 1] if end >= 0 else self._data
        self._data = self._data[len(line) :]
        return line

    def take(self, size: int) -> Pieces:
        while size:
            if not self._data:
                self._data = next(filter(None, self._pieces), b"")
                if not self._data:
                    raise PayloadError(
                        f"the chunked payload is truncated ({size} bytes of a chunk are missing)"
                    )
            piece, self._data = self._data[:size], self._data[size:]
            size -= len(piece)
            yield piece

    def rest(self) -> Pieces:
        yield self._data
        yield from self._pieces


def gunzip(pieces: Pieces) -> Pieces:
    """The content of gzip members. Anything else is returned unchanged."""
    return _members(pieces, _GZIP, lambda rest: _zlib_stream(rest, zlib.MAX_WBITS | 16))


def unzstd(pieces: Pieces) -> Pieces:
    """The content of zstd frames. Anything else is returned unchanged."""
    return _members(pieces, _ZSTD, _zstd_frame)


def inflate(pieces: Pieces) -> Pieces:
    """The content of zlib data, or of raw deflate data, which many servers send instead."""
    start, pieces = _start(pieces, 2)
    if not start:
        return pieces
    is_zlib = start[0] & 15 == 8 and int.from_bytes(start[:2], "big") % 31 == 0
    return _zlib_stream(pieces, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)


def _members(pieces: Pieces, magic: bytes, inflate_one: Callable[[Pieces], Stream]) -> Pieces:
    """The content of consecutive streams. Bytes after the last one are skipped, as in browsers."""
    start, pieces = _start(pieces, len(magic))
    if start and start != magic and magic.startswith(start):
        raise PayloadError("the payload is truncated within its compressed data")
    if not start.startswith(magic):
        yield from pieces
    while start.startswith(magic):
        pieces = yield from inflate_one(pieces)
        start, pieces = _start(pieces, len(magic))


def _zlib_stream(pieces: Pieces, wbits: int) -> Stream:
    """The content of one stream. Of a corrupt one, what comes before the error, if the first piece has the error."""
    inflater = zlib.decompressobj(wbits)
    piece = first = b""
    size = 0
    try:
        for piece in pieces:
            first = first or piece
            data = piece
            while data:
                found = inflater.decompress(data, _PAYLOAD_PIECE)
                size += len(found)
                yield found
                data = inflater.unconsumed_tail
            if inflater.eof:
                return chain((inflater.unused_data,), pieces)
        yield inflater.flush()
    except zlib.error as error:
        if piece is first:
            yield from _salvaged(piece, wbits, size)
        raise PayloadError(f"the payload is corrupt ({error})") from None
    if not inflater.eof:
        raise PayloadError("the payload is truncated within its compressed data")
    return pieces


def _salvaged(data: bytes, wbits: int, skip: int) -> Pieces:
    """What a corrupt stream has before its error, without the first `skip` bytes."""
    inflater, at, step = zlib.decompressobj(wbits), 0, _SALVAGED
    while step and at < len(data):
        before = inflater.copy()
        try:
            found = inflater.decompress(data[at : at + step])
        except zlib.error:
            inflater, step = before, step // 16
            continue
        at += step
        yield found[skip:]
        skip = max(0, skip - len(found))


def _zstd_frame(pieces: Pieces) -> Stream:
    import zstandard  # slow to import

    inflater = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    try:
        for piece in pieces:
            yield inflater.decompress(piece)
            if inflater.eof:
                return chain((inflater.unused_data,), pieces)
    except zstandard.ZstdError as error:
        raise PayloadError(f"the payload is corrupt ({error})") from None
    raise PayloadError("the payload is truncated within its compressed data")


def unbrotli(pieces: Pieces) -> Pieces:
    """The content of brotli data. Data that cannot be decoded as brotli is returned unchanged."""
    try:
        import brotli  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise PayloadError("brotli is not installed; run pip install brotli") from None
    inflater = brotli.Decompressor()
    first = next((piece for piece in pieces if piece), b"")
    try:
        content = _brotli_step(inflater)(first)
    except brotli.error:
        return chain((first,), pieces)
    return chain((content,), _unbrotli(pieces, inflater, brotli.error)) if first else iter(())


def _brotli_step(inflater: Any) -> Callable[[bytes], bytes]:
    step: Callable[[bytes], bytes] = (
        getattr(inflater, "process", None) or inflater.decompress
    )  # brotli, brotlipy
    return step


def _unbrotli(pieces: Pieces, inflater: Any, error: type[Exception]) -> Pieces:
    step = _brotli_step(inflater)
    try:
        for piece in pieces:
            yield step(piece)
    except error:
        raise PayloadError("the payload is corrupt (brotli)") from None
    if not _is_finished(inflater, error):
        raise PayloadError("the payload is truncated within its compressed data")


def _is_finished(inflater: Any, error: type[Exception]) -> bool:
    if hasattr(inflater, "is_finished"):
        return bool(inflater.is_finished())
    try:
        inflater.finish()  # brotlipy: it raises one of these errors if the end is missing
    except (error, AssertionError):
        return False
    return True


def _start(pieces: Pieces, size: int) -> tuple[bytes, Pieces]:
    """At least `size` first bytes, if there are that many, and all pieces."""
    data = b""
    for piece in pieces:
        data += piece
        if len(data) >= size:
            break
    return data, chain((data,), pieces)


_DECODERS: dict[str, Callable[[Pieces], Pieces]] = {
    "chunked": dechunk,
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": inflate,
    "br": unbrotli,
    "zstd": unzstd,
}


class Body(NamedTuple):
    """The bytes of a decoded body. `problem` says why they are not all of it; "" if they are."""

    data: bytes
    problem: str = ""


def decode_body(http_head: bytes, payload: bytes, max_body: int = MAX_BODY) -> Body:
    """`payload` as its HTTP head says. As in browsers, what comes before an error is kept, and an unknown encoding is none.

    Raises PayloadError if a library is missing.

    >>> decode_body(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n", b"2\\r\\nab\\r\\n5\\r\\nc").data
    b'abc'
    """
    if _ENCODINGS.search(http_head) is None:
        return Body(payload)
    codings, unknown = _codings(http_head)
    problems = [f"unknown content encoding {unknown[0][:40]!r}, taken as none"] if unknown else []
    for coding in reversed(codings):
        payload, problem = _decoded_body(coding, payload, max_body)
        problems += [problem] if problem else []
    return Body(payload, "; ".join(problems))


def _decoded_body(coding: str, payload: bytes, max_body: int) -> Body:
    """`payload` with one encoding undone, up to an error or `max_body` bytes."""
    parts: list[bytes] = []
    size = 0
    pieces = _DECODERS[coding](iter((payload,)))
    try:
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > max_body:
                return Body(b"".join(parts)[:max_body], f"the decoded body is larger than {max_body} bytes")
    except PayloadError as error:
        return Body(b"".join(parts), str(error))
    return Body(b"".join(parts))
