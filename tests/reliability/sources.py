"""Real records from pywb's archives and the samples, and archives of every kind built from them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard

CRLF = b"\r\n\r\n"
_ARC = "@history/f1897b6d/**/42-117-20051212141241-00001-sb-test-har-001.statsbiblioteket.dk.arc"
DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"


class Source(NamedTuple):
    """Records that get index lines, without their closing line ends; `end` closes a record."""

    records: list[bytes]
    end: bytes

    def names(self) -> list[str]:
        """The names of the records: WARC-Record-ID, or URL and date in ARC."""
        return [name_of(record) for record in self.records]

    def parts(self) -> list[bytes]:
        """The records as an uncompressed archive contains them."""
        return [record + self.end for record in self.records]

    def members(self) -> list[bytes]:
        """One gzip member for each record."""
        return [gzip_member(part) for part in self.parts()]

    def frames(self, dictionary: zstandard.ZstdCompressionDict | None = None) -> list[bytes]:
        """One Zstandard frame for each record."""
        return [zstd_frame(part, dictionary) for part in self.parts()]

    def dictionary(self) -> zstandard.ZstdCompressionDict:
        """A dictionary that is trained on the records."""
        parts: list[bytes | bytearray | memoryview[int]] = [*self.parts()] * 50
        return zstandard.train_dictionary(2048, parts)


def name_of(record: bytes) -> str:
    """The name of a record: WARC-Record-ID, or URL and date in ARC."""
    if record.startswith(b"WARC/"):
        return field(record, "WARC-Record-ID")
    url, _, date, _, _ = record[: record.index(b"\n")].decode().split(" ")
    return f"{url} {date}"


def field(record: bytes, name: str) -> str:
    """A field of a WARC record's header."""
    header = record[: record.index(CRLF)].decode()
    return next(line[len(name) + 2 :] for line in header.split("\r\n") if line.startswith(f"{name}: "))


def warc_source(pywb_warcs: Path) -> Source:
    """Six small captures of pywb's samples: responses, revisits, a resource."""
    names = (
        "example.warc.gz",
        "example-url-agnostic-revisit.warc.gz",
        "httpbin-resource.warc.gz",
        "post-test.warc.gz",
    )
    contents = [content for name in names for _, content in split_members((pywb_warcs / name).read_bytes())]
    kinds = ("response", "revisit", "resource")
    records = [
        content.removesuffix(CRLF)
        for content in contents
        if field(content, "WARC-Type") in kinds and len(content) < 3000
    ]
    return Source(records[:6], CRLF)


def arc_source(samples: Path) -> Source:
    """Captures of a small ARC file of the samples, without its file description."""
    found = sorted((samples / "netarchivesuite+netarchivesuite").rglob(_ARC))
    by_url = {name_of(record).split()[0]: record for record in split_arc(found[0].read_bytes())[1:]}
    return Source(list(by_url.values())[-6:], b"\n")


def split_members(data: bytes) -> list[tuple[bytes, bytes]]:
    """Each gzip member, and its content."""
    found = []
    while data:
        inflater = zlib.decompressobj(31)
        content = inflater.decompress(data)
        rest = inflater.unused_data
        found.append((data[: len(data) - len(rest)], content))
        data = rest
    return found


def split_arc(data: bytes) -> list[bytes]:
    """The records of an ARC file, without the line ends that follow them."""
    records, pos = [], 0
    while pos < len(data):
        block = data.index(b"\n", pos) + 1
        end = block + int(data[pos:block].split(b" ")[-1])
        records.append(data[pos:end])
        pos = end + len(data[end:]) - len(data[end:].lstrip(b"\n"))
    return records


def gzip_member(content: bytes, level: int = 9) -> bytes:
    """`content` as one gzip member, with the shortest possible header."""
    deflater = zlib.compressobj(level, zlib.DEFLATED, 31)
    return deflater.compress(content) + deflater.flush()


def zstd_frame(content: bytes, dictionary: zstandard.ZstdCompressionDict | None = None) -> bytes:
    """`content` as one Zstandard frame, with size and checksum, as IIPC's WARC-Zstd requires."""
    compressor = zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True, write_content_size=True)
    return compressor.compress(content)


def dictionary_frame(content: bytes) -> bytes:
    """The skippable frame with a dictionary, for the start of an archive."""
    return DICTIONARY_MAGIC + len(content).to_bytes(4, "little") + content


def ranges(parts: Sequence[bytes], start: int = 0) -> list[tuple[int, int]]:
    """The range of each part in the joined bytes: (begin, end)."""
    found = []
    for part in parts:
        found.append((start, start + len(part)))
        start += len(part)
    return found
