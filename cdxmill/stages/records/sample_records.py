"""A uniform sample of the records of any number of archives, with a limit on its bytes.

Each record gets a random priority. The sample is the records of lowest priority, as many as the limit allows.
So the chance of a record depends neither on its archive nor on the size of the record.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from cdxmill.capture import Damage, Record
from cdxmill.formats.archives.http_head import parse_http_head
from cdxmill.stages.records.payload_digest import is_http
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.window import CHUNK, ReadAt

MAX_SAMPLE = 128 << 10
"""Bytes of a record that are used. zstd's trainer uses no more of a sample."""
_LONGEST_KIND = 60


class Candidate(NamedTuple):
    """A record that may be in the sample. `size` is the number of its bytes that would be used."""

    priority: float
    offset: int
    length: int
    size: int
    kind: str


class Candidates:
    """The records of lowest priority whose sizes add up to at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._ceiling = 1.0
        self._heap: list[tuple[float, Candidate]] = []

    def wants(self, priority: float) -> bool:
        """Whether a record with this priority may be among them."""
        return priority < self._ceiling

    def add(self, candidate: Candidate) -> None:
        """Add a record. Others are dropped if there are too many bytes."""
        heapq.heappush(self._heap, (-candidate.priority, candidate))
        self._left -= candidate.size
        while self._left < 0:
            _, dropped = heapq.heappop(self._heap)
            self._left += dropped.size
            self._ceiling = dropped.priority

    def sorted(self) -> list[Candidate]:
        """The records, lowest priority first."""
        return sorted(candidate for _, candidate in self._heap)


class Sampled(NamedTuple):
    """The candidates of an archive, the number of its records, and what is damaged."""

    candidates: list[Candidate]
    records: int
    damage: list[Damage]


def sample_archive(read_at: ReadAt, seed: str, limit: int, chunk: int = CHUNK) -> Sampled:
    """The candidates among all whole records of the archive that `read_at` reads; `limit` is in bytes."""
    draw, candidates, records, damage = Random(seed).random, Candidates(limit), 0, []
    for item in read_records(read_at, chunk=chunk):
        if isinstance(item, Record):
            records += 1
            priority = draw()
            if candidates.wants(priority):
                candidates.add(_candidate(priority, item))
        elif isinstance(item, Damage):
            damage.append(item)
    return Sampled(candidates.sorted(), records, damage)


def _candidate(priority: float, record: Record) -> Candidate:
    # the record's header is no part of `size`; it is short, and Record does not have its length
    size = min(record.size + sum(map(len, record.headers.values())), MAX_SAMPLE)
    return Candidate(priority, record.offset, record.length, size, kind_of(record))


def kind_of(record: Record) -> str:
    """The type of a record and the media type of its payload: `response text/html`."""
    kind = record.headers.get(b"warc-type", b"arc")
    url = record.headers.get(b"warc-target-uri", b"")
    mime = record.headers.get(b"content-type")
    if kind != b"request" and is_http(kind, url):
        mime = parse_http_head(record.block)[1]
    text = kind + b" " + ((mime or b"").partition(b";")[0].strip() or b"-")
    return text[:_LONGEST_KIND].decode("utf-8", "replace").lower()


def first_bytes(content: Iterable[bytes]) -> bytes:
    """The bytes of a record that are used, from the pieces of its content."""
    parts, have = [], 0
    pieces: Iterator[bytes] = iter(content)
    while have < MAX_SAMPLE and (piece := next(pieces, b"")):
        parts.append(piece)
        have += len(piece)
    return b"".join(parts)[:MAX_SAMPLE]
