"""The offsets of the gzip members of a WARC, kept in a file beside it, and the facts that a table states."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isal import isal_zlib

FIRST_READ = 4096  # most members are small: little is copied back
NEXT_READ = 65_536


class Facts(NamedTuple):
    """Counts of one or more WARCs."""

    size: int
    plain: int
    records: int
    captures: int
    digests: int

    def __str__(self) -> str:
        return (
            f"{self.size / 1e6:.1f} MB of WARC, "
            f"{self.records:,} records of {self.plain / self.records:,.0f} bytes "
            f"({self.size / self.records:,.0f} compressed), {self.captures:,} captures "
            f"({self.captures / self.size * 1e6:.0f} per MB), "
            f"{100 * self.digests / self.captures:.0f} % of them with a payload digest"
        )


def walk(data: memoryview) -> Iterator[tuple[int, int, bytes]]:
    """(offset, end, uncompressed bytes) of each member."""
    start = 0
    while start < len(data):
        inflater, position, step, parts = isal_zlib.decompressobj(31), start, FIRST_READ, []
        while not inflater.eof and position < len(data):
            parts.append(inflater.decompress(data[position : position + step]))
            position, step = position + step, NEXT_READ
        end = min(position, len(data)) - len(inflater.unused_data)
        yield start, end, b"".join(parts)
        start = end


def scan(path: Path) -> tuple[array[int], Facts]:
    """Offset, end and uncompressed size of each member, one after the other, and the facts."""
    table, plain, captures, digests = array("Q"), 0, 0, 0
    for start, end, record in walk(memoryview(path.read_bytes())):
        table.extend((start, end, len(record)))
        plain += len(record)
        head = record[: record.index(b"\r\n\r\n")]
        if b"\r\nWARC-Type: response\r\n" in head:
            captures += 1
            digests += b"\r\nWARC-Payload-Digest: " in head
    return table, Facts(path.stat().st_size, plain, len(table) // 3, captures, digests)


def table_path(path: Path) -> Path:
    return path.with_name(path.name + ".members")


def prepare(path: Path) -> Facts:
    """Write the member table of `path`, unless a newer one exists, and return the facts."""
    kept, note = table_path(path), path.with_name(path.name + ".facts")
    if not note.exists() or note.stat().st_mtime < path.stat().st_mtime:
        table, facts = scan(path)
        kept.write_bytes(table.tobytes())
        note.write_text(json.dumps(facts))
    return Facts(*json.loads(note.read_text()))


def load(path: Path) -> Iterator[tuple[int, int, int]]:
    numbers = iter(array("Q", table_path(path).read_bytes()))
    return zip(numbers, numbers, numbers, strict=True)
