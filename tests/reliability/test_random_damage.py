"""Random damage to archives: no line is wrong, and nothing is lost silently."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from . import damage
from .accounting import Findings, findings
from .damage import Damaged
from .read_back import name_in
from .sources import CRLF, Source, dictionary_frame, field, ranges, split_members

ROUNDS = 250


class Archive(NamedTuple):
    """An archive, the ranges of its records, and whether its container has checksums.

    Without checksums, the line of a record also depends on the `margin` bytes after it. They prove
    its length: closing line ends in WARC, the next record's header line in ARC.
    """

    data: bytes
    ranges: list[tuple[int, int]]
    names: list[str]
    is_checked: bool
    margin: int = 0
    dictionary: zstandard.ZstdCompressionDict | None = None


def _packed(parts: list[bytes], source: Source) -> Archive:
    return Archive(b"".join(parts), ranges(parts), source.names(), True)


def _plain(source: Source) -> Archive:
    ends = [(begin, end - len(source.end)) for begin, end in ranges(source.parts())]
    margin = (
        len(source.end) if source.end == CRLF else 1 + max(record.index(b"\n") for record in source.records)
    )
    return Archive(b"".join(source.parts()), ends, source.names(), False, margin)


def _with_dictionary(source: Source) -> Archive:
    dictionary = source.dictionary()
    frame = dictionary_frame(dictionary.as_bytes())
    frames = source.frames(dictionary)
    return Archive(frame + b"".join(frames), ranges(frames, len(frame)), source.names(), True, 0, dictionary)


@pytest.fixture(
    scope="module",
    params=["crawl", "warc.gz", "warc.zst", "warc.zst with dictionary", "warc", "arc.gz", "arc"],
)
def archive(request: pytest.FixtureRequest, warc: Source, arc: Source, pywb_warcs: Path) -> Archive:
    """One archive of each kind. A response, a revisit and a resource; of ARC, a DNS record and two responses."""
    if request.param == "crawl":
        return _as_crawled(pywb_warcs / "example.warc.gz")
    records, end = warc if "warc" in request.param else arc
    source = Source(records[2:5], end)
    if "dictionary" in request.param:
        return _with_dictionary(source)
    if ".zst" in request.param:
        return _packed(source.frames(), source)
    return _packed(source.members(), source) if ".gz" in request.param else _plain(source)


def _as_crawled(path: Path) -> Archive:
    """An unchanged file of a crawl, with requests and other records without lines between the captures."""
    members = split_members(path.read_bytes())
    kinds = [field(content, "WARC-Type") for _, content in members]
    captures = [number for number, kind in enumerate(kinds) if kind in ("response", "revisit")]
    all_ranges = ranges([member for member, _ in members])
    names = [field(members[number][1], "WARC-Record-ID") for number in captures]
    return Archive(path.read_bytes(), [all_ranges[number] for number in captures], names, True)


def test_every_record_of_an_intact_archive_has_its_line(archive: Archive) -> None:
    found = findings(archive.data)
    assert found.lines == [(begin, end - begin) for begin, end in archive.ranges]
    assert found.damage == [] and found.notes == []
    assert _names(archive.data, found.lines, archive) == archive.names


def test_truncation_at_any_offset(archive: Archive) -> None:
    for at in range(len(archive.data)):
        _check(damage.cut(archive.data, at), archive)


def test_flipped_bits(archive: Archive) -> None:
    rng = random.Random(2024)
    for _ in range(ROUNDS):
        _check(damage.flip(archive.data, rng.randrange(8 * len(archive.data))), archive)


def test_flipped_bits_in_the_first_bytes_of_records(archive: Archive) -> None:
    for begin, _ in archive.ranges:
        for bit in range(8 * begin, 8 * (begin + 12)):
            _check(damage.flip(archive.data, bit), archive)


def test_ranges_deleted_inserted_copied_and_overwritten(archive: Archive) -> None:
    for damaged in _at_random(archive, ROUNDS):
        _check(damaged, archive)


def _at_random(archive: Archive, rounds: int) -> Iterator[Damaged]:
    rng = random.Random(7)
    edges = [0, *(end for _, end in archive.ranges)]
    for _ in range(rounds):
        yield damage.at_random(archive.data, rng, edges)


def _check(damaged: Damaged, archive: Archive) -> None:
    try:
        found = findings(damaged.data)
        names = dict(zip(found.lines, _names(damaged.data, found.lines, archive), strict=True))
        _check_names(damaged, archive, names)
        for record, name in zip(archive.ranges, archive.names, strict=True):
            offset = damaged.new_offset(record[0], record[1] + archive.margin)
            if offset is not None and names.get((offset, record[1] - record[0])) != name:
                assert _may_be_lost(offset, damaged, archive, found), name
    except Exception as error:
        error.add_note(damaged.what)
        raise


def _may_be_lost(offset: int, damaged: Damaged, archive: Archive, found: Findings) -> bool:
    """Whether the record may be lost: by damage to the dictionary, or swallowed by another one for lack of checksums."""
    if archive.is_checked:
        return archive.dictionary is not None and damaged.begin < archive.ranges[0][0]
    touched = damaged.begin + damaged.size
    return any(begin <= touched and begin < offset < begin + length for begin, length in found.lines)


def _names(data: bytes, lines: list[tuple[int, int]], archive: Archive) -> list[str]:
    return [name_in(data[begin : begin + length], archive.dictionary) for begin, length in lines]


def _check_names(damaged: Damaged, archive: Archive, names: dict[tuple[int, int], str]) -> None:
    """Check that each line is for a record of the archive.

    Only damage to a header without a checksum can change the record's name.
    """
    for (begin, length), name in names.items():
        is_touched = begin < damaged.begin + damaged.size + archive.margin and damaged.begin < begin + length
        if archive.is_checked or not is_touched:
            assert name in archive.names, f"the line at {begin} is for {name}"
