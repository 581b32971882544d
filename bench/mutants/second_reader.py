"""What other readers find in the same bytes: warcio, FastWARC, zlib and python-zstandard."""

from __future__ import annotations

import contextlib
import io
import logging
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import zstandard
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from .containers import CRLF, DICTIONARY_MAGIC

_WITH_LINES = ("response", "revisit", "resource", "conversion", "metadata")


logging.getLogger("warcio").setLevel(logging.ERROR)  # it warns of URLs with spaces


class Seen(NamedTuple):
    """A record as warcio reads it."""

    kind: str
    url: str
    date: str
    name: str


def read_alone(content: bytes) -> Seen | None:
    """The one record that `content` is; None if warcio reads none, or more than one."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            records = list(_records(content))
    except Exception:  # any refusal is one
        return None
    return records[0][1] if len(records) == 1 else None


def read_ended(content: bytes) -> Seen | None:
    """As `read_alone`, also if the closing line ends are missing: the range of an uncompressed record has none."""
    end = CRLF if content[:5].upper() == b"WARC/" else b"\n"
    return read_alone(content) or read_alone(content + end)


def _records(content: bytes) -> Iterator[tuple[int, Seen, str]]:
    """Offset, fields and content type of each record. Raises if one is not whole."""
    iterator = ArchiveIterator(io.BytesIO(content), no_record_parse=True, arc2warc=True)
    for record in iterator:
        head = record.rec_headers.get_header
        seen = Seen(
            record.rec_type or "",
            *(head(name) or "" for name in ("WARC-Target-URI", "WARC-Date", "WARC-Record-ID")),
        )
        size = sum(map(len, iter(record.raw_stream.read, b"")))
        if record.length is not None and size != int(record.length):
            raise ValueError("the record is not whole")
        offset = iterator.get_record_offset()  # reads to the end of the record, so it is asked last
        yield offset, seen, (head("Content-Type") or "").lower()


def read_by_both(data: bytes, is_arc: bool) -> set[int]:
    """Offsets of the records that get lines and that warcio and FastWARC both read in one go. ARC: warcio alone."""
    found: dict[int, str] = {}
    with (
        contextlib.suppress(Exception),
        contextlib.redirect_stderr(io.StringIO()),
    ):  # what was read before counts
        for offset, seen, content_type in _records(data):
            is_note = seen.kind in ("resource", "metadata") and content_type.startswith(
                ("application/warc-fields", "text/anvl")
            )
            if seen.url and seen.kind in _WITH_LINES and not is_note:
                found[offset] = seen.name
    if is_arc:
        return set(found)
    theirs = set(_fastwarc_names(data))
    return {offset for offset, name in found.items() if name in theirs}


def _fastwarc_names(data: bytes) -> Iterator[str]:
    try:
        for record in FastIterator(io.BytesIO(data), parse_http=False):
            fields: dict[str, Any] = dict(record.headers)
            if len(record.reader.read()) != record.content_length:
                return
            yield str(fields.get("WARC-Record-ID") or "").strip()
    except Exception:  # what was read before counts
        return


def unpacked(data: bytes, dictionary: zstandard.ZstdCompressionDict | None) -> bytes | None:
    """The content of one gzip member, or of zstd frames, that `data` is exactly; of plain text itself."""
    if data.startswith(b"\x1f\x8b"):
        inflater = zlib.decompressobj(31)
        try:
            content = inflater.decompress(data)
        except zlib.error:
            return None
        return content if inflater.eof and not inflater.unused_data else None
    return _from_frames(data, dictionary) if data.startswith(b"\x28\xb5\x2f\xfd") else data


def _from_frames(data: bytes, dictionary: zstandard.ZstdCompressionDict | None) -> bytes | None:
    content = b""
    while data:
        inflater = zstandard.ZstdDecompressor(dict_data=dictionary).decompressobj()
        try:
            content += inflater.decompress(data)
        except zstandard.ZstdError:
            return None
        if not inflater.eof:
            return None
        data = inflater.unused_data
    return content


def dictionary_of(data: bytes) -> zstandard.ZstdCompressionDict | None:
    """The dictionary that a file begins with."""
    if not data.startswith(DICTIONARY_MAGIC):
        return None
    try:
        return zstandard.ZstdCompressionDict(data[8 : 8 + int.from_bytes(data[4:8], "little")])
    except zstandard.ZstdError:
        return None
