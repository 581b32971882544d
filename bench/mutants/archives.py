"""Real archives, split into records by zlib and by Content-Length alone, and repacked in every container.

None of cdxmill's code is used here: these records are the truth that its lines are compared with.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import zstandard

from .containers import CRLF, dictionary_frame, frame, gzip_member, split_members
from .second_reader import read_alone

_LEAST = 50
_MOST_RECORDS = 60
_LENGTH = re.compile(rb"\r\nContent-Length: *(\d+)\r\n", re.I)


class Source(NamedTuple):
    """An archive as parts: `parts[i]` is the record `records[i]` as packed; b"" is no record (a dictionary)."""

    name: str
    kind: str
    parts: list[bytes]
    records: list[bytes]
    dictionary: zstandard.ZstdCompressionDict | None = None

    def edges(self) -> list[int]:
        """Where the parts start, and the end of the last one."""
        found = [0]
        for part in self.parts:
            found.append(found[-1] + len(part))
        return found

    def pack(self, content: bytes, level: int = 6) -> bytes:
        """`content` as a part of this container."""
        if self.kind in ("gz", "arc.gz"):
            return gzip_member(content, level)
        if self.kind.startswith("zst"):
            return frame(content, self.dictionary, self.kind != "zst-nosum")
        return content


def load(directories: Iterable[Path], most_bytes: int) -> list[Source]:
    """All archives of the directories whose records warcio reads, in every container that they can have."""
    found: list[Source] = []
    seen = set()
    for path in sorted(path for directory in directories for path in directory.rglob("*")):
        if not path.is_file() or not _LEAST < path.stat().st_size <= most_bytes:
            continue
        data = path.read_bytes()
        digest = hashlib.sha256(data).digest()
        if digest not in seen:
            seen.add(digest)
            found += _sources(path.as_posix(), data)
    return found


def _sources(name: str, data: bytes) -> Iterator[Source]:
    records = _split(data)
    if not records or len(records) > _MOST_RECORDS or not all(map(read_alone, records)):
        return
    if records[0].startswith(b"filedesc://"):
        yield Source(name, "arc.gz", [gzip_member(record) for record in records], records)
        if all(record.endswith(b"\n") for record in records):
            yield Source(name, "arc", records, records)
        return
    yield Source(name, "gz", [gzip_member(record) for record in records], records)
    if all(record.endswith(CRLF) for record in records):
        yield Source(name, "plain", records, records)
    yield Source(name, "zst", [frame(record) for record in records], records)
    yield Source(name, "zst-nosum", [frame(record, None, False) for record in records], records)
    yield from _with_dictionary(name, records)


def _with_dictionary(name: str, records: list[bytes]) -> Iterator[Source]:
    if len(records) <= 3 or sum(map(len, records)) >= 200_000:
        return
    samples: list[bytes | bytearray | memoryview[int]] = [*records] * 20
    try:
        dictionary = zstandard.train_dictionary(2048, samples)
    except zstandard.ZstdError:
        return
    frames = [frame(record, dictionary) for record in records]
    yield Source(
        name, "zst-dict", [dictionary_frame(dictionary.as_bytes()), *frames], [b"", *records], dictionary
    )


def _split(data: bytes) -> list[bytes] | None:
    if data.startswith(b"\x1f\x8b\x08"):
        try:
            return split_members(data)
        except zlib.error:
            return None
    if data.startswith(b"WARC/"):
        return _split_warc(data)
    return _split_arc(data) if data.startswith(b"filedesc://") else None


def _split_warc(data: bytes) -> list[bytes] | None:
    records, pos = [], 0
    while pos < len(data):
        head = data.find(CRLF, pos)
        length = _LENGTH.search(data, pos, max(head + 2, pos))
        if data[pos : pos + 5] != b"WARC/" or length is None:
            return None
        end = head + len(CRLF) + int(length[1])
        if data[end : end + len(CRLF)] != CRLF:
            return None
        records.append(data[pos : end + len(CRLF)])
        pos = end + len(CRLF)
    return records


def _split_arc(data: bytes) -> list[bytes] | None:
    records, pos = [], 0
    while pos < len(data):
        block = data.find(b"\n", pos) + 1
        fields = data[pos:block].split()
        if not block or len(fields) < 5 or not fields[-1].isdigit():
            return None
        end = block + int(fields[-1])
        rest = len(data[end:]) - len(data[end:].lstrip(b"\r\n"))
        if end > len(data) or (end < len(data) and not rest):
            return None
        records.append(data[pos : end + rest])
        pos = end + rest
    return records
