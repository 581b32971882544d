"""Whole records -> what they take in gzip, and in Zstandard without and with a dictionary; and so what whole archives would take."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cdxmill.stages.records.fetch_record import FetchedRecord
from cdxmill.stages.records.pack_contents import Packer, ZstPacker, packed_size
from cdxmill.stages.records.read_contents import HELD, Content
from cdxmill.tasks.record_sampling import Candidate


class Savings(NamedTuple):
    """The bytes of records, and of their gzip members (zlib, level 6) and frames without and with a dictionary."""

    plain: int
    gzip: int
    without: int
    compressed: int


class MeasuredRecord(NamedTuple):
    """A record: its kind, its bytes in the archive, and what it takes."""

    kind: str
    old: int
    sizes: Savings


class Measure:
    """Measures records with a dictionary at a level."""

    def __init__(self, dictionary: bytes, level: int) -> None:
        self._packers: tuple[Packer, Packer] = ZstPacker(level), ZstPacker(level, dictionary)

    def __call__(self, one: Candidate, record: FetchedRecord) -> MeasuredRecord:
        """Measure a whole record, piece by piece if it is large."""
        content = _content_of(one, record)
        gzip, size = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16), 0
        for piece in content.pieces():
            size += len(gzip.compress(piece))
        size += len(gzip.flush())
        without, compressed = (packed_size(content, packer) for packer in self._packers)
        return MeasuredRecord(one.kind, one.length, Savings(content.size, size, without, compressed))


def _content_of(one: Candidate, record: FetchedRecord) -> Content:
    size, held = 0, bytearray()
    for piece in record.content():
        size += len(piece)
        if size <= HELD:
            held += piece
    data = held if size <= HELD else None
    return Content(one.offset, one.length, size, data, record.content)


def sum_of(records: Iterable[MeasuredRecord]) -> Savings:
    """The sizes of all records together."""
    found = [one.sizes for one in records]
    return Savings(*map(sum, zip(*found, strict=True))) if found else Savings(0, 0, 0, 0)


class Promise(NamedTuple):
    """What `recompress` would leave of 1 byte of archives, and the share of their bytes that was not measured."""

    ratio: float
    unknown: float


def promise_of(
    records: Iterable[MeasuredRecord], archives: Iterable[Mapping[str, int]], frame: int
) -> Promise | None:
    """What `recompress` would make of `archives`, each given by the bytes of its records by kind.

    Each kind is measured by its own records: a few large images or videos in a sample say little about how many there are.
    Of a kind that was not measured, nothing is promised: it counts as no smaller.
    An archive gets the dictionary, of `frame` bytes, if that pays. None if no record was measured.
    """
    old, without, packed = Counter[str](), Counter[str](), Counter[str]()
    for one in records:
        old[one.kind] += one.old
        without[one.kind] += one.sizes.without
        packed[one.kind] += one.sizes.compressed
    archives = list(archives)
    total = sum(sum(sizes.values()) for sizes in archives)
    if not old.total() or not total:
        return None

    def size(sizes: Mapping[str, int], new: Counter[str]) -> float:
        return sum(size * (new[kind] / old[kind] if old[kind] else 1) for kind, size in sizes.items())

    unknown = sum(size for sizes in archives for kind, size in sizes.items() if not old[kind])
    left = sum(min(size(sizes, packed) + frame, size(sizes, without)) for sizes in archives)
    return Promise(left / total, unknown / total)
