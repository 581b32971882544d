"""Whatever happens to an archive's bytes: no line is wrong, and nothing is lost silently."""

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
from .sources import CRLF, Source, dictionary_frame, field, places, split_members

ROUNDS = 500


class Archive(NamedTuple):
    """An archive, where its records lie, and whether its container has checksums.

    Without checksums a record's line also hangs on the `margin` bytes behind it, which show
    that its length is right: closing line ends in WARC, the next record's header line in ARC.
    """

    data: bytes
    places: list[tuple[int, int]]
    names: list[str]
    is_checked: bool
    margin: int = 0
    dictionary: zstandard.ZstdCompressionDict | None = None


def _packed(parts: list[bytes], source: Source) -> Archive:
    return Archive(b"".join(parts), places(parts), source.names(), True)


def _plain(source: Source) -> Archive:
    ends = [(begin, end - len(source.end)) for begin, end in places(source.parts())]
    margin = (
        len(source.end) if source.end == CRLF else 1 + max(record.index(b"\n") for record in source.records)
    )
    return Archive(b"".join(source.parts()), ends, source.names(), False, margin)


def _with_dictionary(source: Source) -> Archive:
    dictionary = source.dictionary()
    frame = dictionary_frame(dictionary.as_bytes())
    frames = source.frames(dictionary)
    return Archive(frame + b"".join(frames), places(frames, len(frame)), source.names(), True, 0, dictionary)


@pytest.fixture(
    scope="module",
    params=["crawl", "warc.gz", "warc.zst", "warc.zst with dictionary", "warc", "arc.gz", "arc"],
)
def archive(request: pytest.FixtureRequest, warc: Source, arc: Source, pywb_warcs: Path) -> Archive:
    """One of each kind."""
    if request.param == "crawl":
        return _as_crawled(pywb_warcs / "example.warc.gz")
    source = warc if "warc" in request.param else arc
    if "dictionary" in request.param:
        return _with_dictionary(source)
    if ".zst" in request.param:
        return _packed(source.frames(), source)
    return _packed(source.members(), source) if ".gz" in request.param else _plain(source)


def _as_crawled(path: Path) -> Archive:
    """A crawl's file as it is, with requests and others that get no line between the captures."""
    members = split_members(path.read_bytes())
    kinds = [field(content, "WARC-Type") for _, content in members]
    captures = [number for number, kind in enumerate(kinds) if kind in ("response", "revisit")]
    all_places = places([member for member, _ in members])
    names = [field(members[number][1], "WARC-Record-ID") for number in captures]
    return Archive(path.read_bytes(), [all_places[number] for number in captures], names, True)


def test_undamaged_every_record_has_its_line(archive: Archive) -> None:
    found = findings(archive.data)
    assert found.lines == [(begin, end - begin) for begin, end in archive.places]
    assert found.damage == [] and found.notes == []
    assert _names(archive.data, found.lines, archive) == archive.names


def test_a_cut_at_any_offset(archive: Archive) -> None:
    for at in range(len(archive.data)):
        _check(damage.cut(archive.data, at), archive)


def test_flipped_bits(archive: Archive) -> None:
    rng = random.Random(2024)
    for _ in range(ROUNDS):
        _check(damage.flip(archive.data, rng.randrange(8 * len(archive.data))), archive)


def test_flipped_bits_in_the_first_bytes_of_records(archive: Archive) -> None:
    for begin, _ in archive.places:
        for bit in range(8 * begin, 8 * (begin + 12)):
            _check(damage.flip(archive.data, bit), archive)


def test_ranges_deleted_inserted_copied_and_overwritten(archive: Archive) -> None:
    for damaged in _at_random(archive, ROUNDS):
        _check(damaged, archive)


def _at_random(archive: Archive, rounds: int) -> Iterator[Damaged]:
    rng = random.Random(7)
    edges = [0, *(end for _, end in archive.places)]
    for _ in range(rounds):
        yield damage.at_random(archive.data, rng, edges)


def _check(damaged: Damaged, archive: Archive) -> None:
    try:
        found = findings(damaged.data)
        names = dict(zip(found.lines, _names(damaged.data, found.lines, archive), strict=True))
        _check_names(damaged, archive, names)
        for record, name in zip(archive.places, archive.names, strict=True):
            place = damaged.place(record[0], record[1] + archive.margin)
            if place is not None and names.get((place, record[1] - record[0])) != name:
                assert _may_be_lost(place, damaged, archive, found), name
    except Exception as error:
        error.add_note(damaged.what)
        raise


def _may_be_lost(place: int, damaged: Damaged, archive: Archive, found: Findings) -> bool:
    """Damage to the dictionary reaches every record; without checksums a record can swallow another."""
    if archive.is_checked:
        return archive.dictionary is not None and damaged.begin < archive.places[0][0]
    touched = damaged.begin + damaged.size
    return any(begin <= touched and begin < place < begin + length for begin, length in found.lines)


def _names(data: bytes, lines: list[tuple[int, int]], archive: Archive) -> list[str]:
    return [name_in(data[begin : begin + length], archive.dictionary) for begin, length in lines]


def _check_names(damaged: Damaged, archive: Archive, names: dict[tuple[int, int], str]) -> None:
    """No line is for another record than one of the archive's.

    Only damage to a header that no checksum protects can change what it says.
    """
    for (begin, length), name in names.items():
        is_touched = begin < damaged.begin + damaged.size + archive.margin and damaged.begin < begin + length
        if archive.is_checked or not is_touched:
            assert name in archive.names, f"the line at {begin} is for {name}"
